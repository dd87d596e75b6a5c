"""A pod's own cgroup, on plain directories in place of the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.podworker.adapters.cgroup_parent import PodCgroups
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
