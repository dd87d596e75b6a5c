"""A pod's own cgroup, on plain directories in place of the kernel's."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from services.podworker.adapters.cgroup_parent import PodCgroups
from services.podworker.core.cgroup_files import cpu_weight
from services.podworker.core.pod_limits import PodLimits

PARENT = "/kubepods/burstable/podu1"
SMALL = PodLimits(cpu_shares=102, cpu_quota=20_000, memory=64 << 20)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for controller in ("cpu", "memory", "pids"):
        (tmp_path / controller).mkdir()
    return tmp_path


def shown(root: Path) -> dict[str, str]:
    """What the pod's cgroup holds."""
    return {
        file.name: file.read_text()
        for controller in ("cpu", "memory")
        for file in (root / controller / PARENT.lstrip("/")).glob("*")
    }


def test_the_pods_cgroup_gets_the_limits_of_the_pod(root: Path) -> None:
    PodCgroups(root).limit(PARENT, SMALL)
    assert shown(root) == {
        "cpu.shares": "102",
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "20000",
        "memory.limit_in_bytes": str(64 << 20),
    }


def test_a_pod_without_limits_gets_shares_alone(root: Path) -> None:
    PodCgroups(root).limit(PARENT, PodLimits(cpu_shares=2))
    assert shown(root) == {"cpu.shares": "2"}
    assert not (root / "memory/kubepods").exists()


def test_changed_resources_change_the_cgroup_that_is_there(root: Path) -> None:
    """A container can't be given a CPU quota above its pod's: with the old one it could never start again."""
    cgroups = PodCgroups(root)
    cgroups.limit(PARENT, SMALL)
    cgroups.limit(PARENT, PodLimits(cpu_shares=204, cpu_quota=40_000, memory=128 << 20))
    assert shown(root)["cpu.cfs_quota_us"] == "40000"
    assert shown(root)["memory.limit_in_bytes"] == str(128 << 20)
    assert shown(root)["cpu.shares"] == "204"


def test_limits_that_are_taken_away_are_lifted(root: Path) -> None:
    cgroups = PodCgroups(root)
    cgroups.limit(PARENT, SMALL)
    cgroups.limit(PARENT, PodLimits(cpu_shares=102))
    assert shown(root)["cpu.cfs_quota_us"] == "-1"
    assert shown(root)["memory.limit_in_bytes"] == "-1"


def test_one_limit_that_is_refused_does_not_keep_the_others(root: Path) -> None:
    (root / "cpu" / PARENT.lstrip("/") / "cpu.cfs_quota_us").mkdir(parents=True)
    PodCgroups(root).limit(PARENT, SMALL)
    assert (root / "memory" / PARENT.lstrip("/") / "memory.limit_in_bytes").read_text() == str(64 << 20)


def test_the_number_of_processes_is_the_whole_pods(root: Path) -> None:
    file = root / "pids" / PARENT.lstrip("/") / "pids.max"
    PodCgroups(root).limit(PARENT, PodLimits(cpu_shares=2, pids=50))
    assert file.read_text() == "50"
    PodCgroups(root).limit(PARENT, PodLimits(cpu_shares=2))
    assert file.read_text() == "max"


def test_huge_pages_that_the_pod_does_not_ask_for_it_may_not_have(root: Path) -> None:
    other = root / "hugetlb" / "other"
    other.mkdir(parents=True)
    for size in ("2MB", "1GB"):
        (other / f"hugetlb.{size}.limit_in_bytes").write_text("-1")
    PodCgroups(root).limit(PARENT, PodLimits(cpu_shares=2, huge_pages={"2Mi": 4 << 20}))
    directory = root / "hugetlb" / PARENT.lstrip("/")
    assert (directory / "hugetlb.2MB.limit_in_bytes").read_text() == str(4 << 20)
    assert (directory / "hugetlb.1GB.limit_in_bytes").read_text() == "0"


def test_systemds_slice_gets_limits_once_it_is_there(root: Path) -> None:
    slices = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu_1.slice"
    name = "kubepods-burstable-podu_1.slice"
    PodCgroups(root).limit(name, SMALL)
    assert not (root / "cpu/kubepods.slice").exists()
    for controller in ("cpu", "memory"):
        (root / controller / slices).mkdir(parents=True)
    PodCgroups(root).limit(name, SMALL)
    assert (root / "cpu" / slices / "cpu.shares").read_text() == "102"
    assert (root / "memory" / slices / "memory.limit_in_bytes").read_text() == str(64 << 20)


def test_one_hierarchy_for_all_has_other_files(tmp_path: Path) -> None:
    """cgroup v2: each controller is handed down to the pod first."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids")
    cgroups = PodCgroups(tmp_path)
    cgroups.limit(PARENT, msgspec.structs.replace(SMALL, pids=9))
    pod = tmp_path / PARENT.lstrip("/")
    found = {file.name: file.read_text() for file in pod.iterdir()}
    assert found == {
        "cpu.weight": "4",
        "cpu.max": "20000 100000",
        "memory.max": str(64 << 20),
        "pids.max": "9",
    }
    for level in (tmp_path, tmp_path / "kubepods", tmp_path / "kubepods/burstable"):
        assert (level / "cgroup.subtree_control").exists()
    cgroups.limit(PARENT, PodLimits(cpu_shares=2))
    assert (pod / "cpu.max").read_text() == "max 100000"
    assert (pod / "memory.max").read_text() == "max"


@pytest.mark.parametrize(("shares", "weight"), [(2, 1), (1024, 39), (262_144, 10_000)])
def test_shares_become_weights(shares: int, weight: int) -> None:
    assert cpu_weight(shares) == weight


def test_a_real_unified_hierarchy_takes_the_limits() -> None:
    """Only huge pages are to be had there on a machine whose other controllers are in v1's hierarchies."""
    root = Path("/sys/fs/cgroup/unified")
    if not (root / "cgroup.controllers").is_file():
        root = Path("/sys/fs/cgroup")
    if "hugetlb" not in (root / "cgroup.controllers").read_text().split() if root.is_dir() else True:
        pytest.skip("no unified hierarchy with huge pages here")
    name = f"podbus-test-{os.getpid()}"
    cgroups = PodCgroups(root, cgroup_root=f"/{name}")
    try:
        (root / name).mkdir()
        if not list((root / name).glob("hugetlb.2MB.max")):
            (root / "cgroup.subtree_control").write_text("+hugetlb")
        cgroups.limit(f"/{name}/kubepods/burstable/podu1", PodLimits(cpu_shares=2, huge_pages={"2Mi": 4 << 20}))
        pod = root / name / "kubepods/burstable/podu1"
        assert (pod / "hugetlb.2MB.max").read_text().strip() == str(4 << 20)
        cgroups.remove("u1")
        assert not pod.exists()
    finally:
        for directory in ("kubepods/burstable/podu1", "kubepods/burstable", "kubepods", ""):
            if (root / name / directory).is_dir():
                (root / name / directory).rmdir()
