"""Where cgroups are, by name and by the kernel's word."""

from __future__ import annotations

import pytest

from services.stats.core.cgroup_paths import (
    container_candidates,
    parse_proc_cgroup,
    path_of_parent,
    pods_cgroup,
)
from services.stats.core.model import CgroupPath, ContainerTarget

ID = "169b71f28218d4fee63e2776e7d176e7a1893f43019722175d307c126e645cf4"
CONTAINER = ContainerTarget(id=ID, name="web", pid=41, started_at=1.0)


@pytest.mark.parametrize(
    ("parent", "path"),
    [
        ("/kubepods/burstable/podu-1", "/kubepods/burstable/podu-1"),
        ("kubepods.slice", "/kubepods.slice"),
        ("kubepods-podu_1.slice", "/kubepods.slice/kubepods-podu_1.slice"),
        (
            "kubepods-burstable-podu_1.slice",
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu_1.slice",
        ),
        ("", ""),
    ],
)
def test_a_slice_unfolds_into_its_levels_and_a_path_stays(parent: str, path: str) -> None:
    """Docker's CgroupParent is a path with cgroupfs and a bare slice name with systemd."""
    assert path_of_parent(parent) == path


@pytest.mark.parametrize(
    ("driver", "root", "path"),
    [
        ("cgroupfs", "/", "/kubepods"),
        ("cgroupfs", "/edge", "/edge/kubepods"),
        ("systemd", "/", "/kubepods.slice"),
        ("systemd", "/edge.slice", "/edge.slice/edge-kubepods.slice"),
    ],
)
def test_the_cgroup_above_all_pods_follows_driver_and_root(driver: str, root: str, path: str) -> None:
    assert pods_cgroup(driver, root) == path


def test_v1_gives_each_controller_its_own_path() -> None:
    """The lines of a process may name different cgroups, and one line several controllers."""
    text = "9:name=systemd:/a\n4:memory:/b/c\n2:cpu,cpuacct:/d\n0::/e\n"
    assert parse_proc_cgroup(text) == CgroupPath(cpu="/d", memory="/b/c")


def test_v2_gives_both_controllers_the_single_path() -> None:
    assert parse_proc_cgroup("0::/kubepods.slice/x.scope\n") == CgroupPath.same("/kubepods.slice/x.scope")


@pytest.mark.parametrize(
    "text", ["", "0::/\n", "0::/../../docker/x\n", "4:memory:/\n2:cpuacct:/\n", "nonsense", "4:memory:/a\n"]
)
def test_a_path_that_names_nothing_below_our_mount_is_not_told(text: str) -> None:
    """A private cgroup namespace shows "/" or climbs; one controller alone isn't enough."""
    assert parse_proc_cgroup(text) is None


def test_the_kernels_word_comes_before_the_places_by_name() -> None:
    found = container_candidates(CONTAINER, "/kubepods/pod1", f"0::/elsewhere/{ID}\n")
    assert found == [
        CgroupPath.same(f"/elsewhere/{ID}"),
        CgroupPath.same(f"/kubepods/pod1/{ID}"),
        CgroupPath.same(f"/kubepods/pod1/docker-{ID}.scope"),
    ]


def test_the_cgroup_of_another_process_with_the_same_pid_is_not_the_containers() -> None:
    """A pid is used again after its process ended: the path must name the container."""
    found = container_candidates(CONTAINER, "/kubepods/pod1", "0::/system.slice/cron.service\n")
    assert CgroupPath.same("/system.slice/cron.service") not in found


def test_without_a_pod_cgroup_and_a_process_there_is_no_candidate() -> None:
    assert container_candidates(CONTAINER, "", None) == []
