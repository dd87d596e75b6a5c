"""The cgroup adapter on recorded trees of v1 and v2."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from services.stats.adapters.cgroup import LIMIT_EVERY, CgroupTree
from services.stats.adapters.procfs import Procfs
from services.stats.core.cgroup_paths import container_candidates, path_of_parent
from services.stats.core.model import CgroupPath, CgroupUsage, ContainerTarget, MemoryInfo, MemoryUsage

FIXTURES = Path(__file__).parents[2] / "fixtures/stats"
UID = "5f3c2a7e-0b1d-4e8a-9c55-7d2f60a1b3c4"
PODS = {
    1: f"/kubepods/burstable/pod{UID}",
    2: path_of_parent(f"kubepods-burstable-pod{UID.replace('-', '_')}.slice"),
}
CONTAINER = ContainerTarget(
    id="169b71f28218d4fee63e2776e7d176e7a1893f43019722175d307c126e645cf4",
    name="web",
    pid=9925,
    started_at=1.0,
)
INFO = MemoryInfo(total=1 << 40, free=1 << 39)


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def root(version: int, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(FIXTURES / f"v{version}/cgroup", tmp_path / "cgroup"))


def candidates(version: int) -> list[CgroupPath]:
    text = Procfs(FIXTURES / f"v{version}/proc").cgroup_text(CONTAINER.pid)
    return container_candidates(CONTAINER, PODS[version], text)


def container_directories(root: Path, version: int) -> list[Path]:
    path = candidates(version)[0].cpu.lstrip("/")
    return [root / path] if version == 2 else [root / "cpuacct" / path, root / "memory" / path]


def read(tree: CgroupTree, *paths: CgroupPath) -> CgroupUsage:
    cgroup = tree.open(paths)
    assert cgroup is not None
    usage = cgroup.read()
    cgroup.close()
    assert usage is not None
    return usage


def test_the_version_is_told_by_the_tree(root: Path, version: int) -> None:
    assert CgroupTree(root).version == version


def test_a_containers_numbers_are_the_same_from_v1_and_v2(root: Path, version: int) -> None:
    """But for the nanoseconds, which v2 cuts to microseconds."""
    usage = read(CgroupTree(root), *candidates(version))
    assert usage.cpu_ns is not None
    cpu_ns = int((FIXTURES / "v1/cgroup/cpuacct" / PODS[1][1:] / CONTAINER.id / "cpuacct.usage").read_text())
    assert usage.cpu_ns == (cpu_ns if version == 1 else cpu_ns // 1000 * 1000)
    assert usage.memory == MemoryUsage(
        usage=11_341_824,
        working_set=11_341_824 - 217_088,
        rss=53_248,
        page_faults=1_759,
        major_page_faults=1,
        limit=67_108_864,
        swap=0,
    )


def test_a_pods_cgroup_holds_its_sandbox_and_containers(root: Path, version: int) -> None:
    tree = CgroupTree(root)
    pod, container = read(tree, CgroupPath.same(PODS[version])), read(tree, *candidates(version))
    assert pod.memory is not None and container.memory is not None
    assert pod.cpu_ns is not None and container.cpu_ns is not None
    assert pod.memory.usage > container.memory.usage
    assert pod.cpu_ns > container.cpu_ns
    assert pod.memory.limit is None


def test_the_node_is_the_root_with_memtotal_as_its_limit(root: Path, version: int) -> None:
    """v2 has no memory.current there: MemTotal - MemFree."""
    usage = CgroupTree(root).root_usage(INFO)
    assert usage.memory is not None
    assert usage.memory.limit == INFO.total
    v1_usage = int((FIXTURES / "v1/cgroup/memory/memory.usage_in_bytes").read_text())
    assert usage.memory.usage == (v1_usage if version == 1 else INFO.total - INFO.free)
    assert usage.memory.rss is not None and usage.memory.rss > 0
    assert usage.cpu_ns is not None and usage.cpu_ns > 0


def test_without_meminfo_the_node_has_what_the_root_cgroup_tells(root: Path, version: int) -> None:
    memory = CgroupTree(root).root_usage(None).memory
    assert (memory is None) is (version == 2)


def test_a_tree_that_is_not_there_yields_nothing(tmp_path: Path) -> None:
    """No cgroups mounted: the node's memory still comes from /proc."""
    tree = CgroupTree(tmp_path / "missing")
    assert tree.open([CgroupPath.same("/kubepods")]) is None
    usage = tree.root_usage(INFO)
    assert usage.cpu_ns is None
    assert usage.memory is not None and usage.memory.usage == INFO.total - INFO.free


def test_the_first_candidate_that_exists_is_taken(root: Path, version: int) -> None:
    missing = CgroupPath.same("/elsewhere")
    assert read(CgroupTree(root), missing, *candidates(version)).cpu_ns is not None
    assert CgroupTree(root).open([missing]) is None


def test_counters_are_read_anew_from_the_open_files(root: Path, version: int) -> None:
    tree = CgroupTree(root)
    cgroup = tree.open(candidates(version))
    assert cgroup is not None and cgroup.read() is not None
    cpu = container_directories(root, version)[0] / ("cpuacct.usage" if version == 1 else "cpu.stat")
    cpu.write_text("7000\n" if version == 1 else "usage_usec 7\n")
    usage = cgroup.read()
    assert usage is not None and usage.cpu_ns == 7_000
    cgroup.close()


def test_a_cgroup_that_disappeared_is_none_and_gives_its_files_back(root: Path, version: int) -> None:
    """Beyond the budget files are opened for each reading, so their absence shows as ENOENT; the kernel's
    ENODEV on an open file of a removed cgroup takes the same way."""
    cgroup = CgroupTree(root, max_open=0).open(candidates(version))
    assert cgroup is not None and cgroup.read() is not None
    for directory in container_directories(root, version):
        shutil.rmtree(directory)
    assert cgroup.read() is None
    assert cgroup.is_closed
    assert cgroup.read() is None


def test_files_stay_open_within_the_budget_only(root: Path, version: int) -> None:
    """The rest is opened for each reading and gives the same numbers."""
    tree = CgroupTree(root, max_open=4)
    before = len(os.listdir("/proc/self/fd"))
    first, second = tree.open(candidates(version)), tree.open(candidates(version))
    assert first is not None and second is not None
    assert len(os.listdir("/proc/self/fd")) - before == 4
    assert first.read() == second.read()
    first.close()
    first.close()
    third = tree.open(candidates(version))
    assert third is not None
    assert len(os.listdir("/proc/self/fd")) - before == 4
    second.close()
    third.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_changed_limit_is_seen_within_six_readings(root: Path, version: int) -> None:
    """`docker update` changes it in place."""
    cgroup = CgroupTree(root).open(candidates(version))
    assert cgroup is not None and cgroup.read() is not None
    name = "memory.limit_in_bytes" if version == 1 else "memory.max"
    (container_directories(root, version)[-1] / name).write_text("99999999\n")
    readings = [cgroup.read() for _ in range(LIMIT_EVERY)]
    assert readings[-1] is not None and readings[-1].memory is not None
    assert readings[-1].memory.limit == 99_999_999
    cgroup.close()


def test_without_the_memory_controller_cpu_is_still_told(root: Path, version: int) -> None:
    """A kernel may have it switched off; then memory is absent."""
    for file in container_directories(root, version)[-1].glob("memory.*"):
        file.unlink()
    usage = read(CgroupTree(root), *candidates(version))
    assert usage.cpu_ns is not None
    assert usage.memory is None


def test_joint_v1_controllers_are_found_without_their_links(tmp_path: Path) -> None:
    """systemd mounts `cpu,cpuacct` and links the single names to it."""
    shutil.copytree(FIXTURES / "v1/cgroup", tmp_path / "cgroup")
    (tmp_path / "cgroup/cpuacct").rename(tmp_path / "cgroup/cpu,cpuacct")
    assert read(CgroupTree(tmp_path / "cgroup"), *candidates(1)).cpu_ns is not None


def test_a_cgroups_age_is_the_earliest_time_it_shows(root: Path, version: int) -> None:
    """The directory's own time moves with each child that is made (cAdvisor 0.60)."""
    for directory in container_directories(root, version):
        (directory / "cgroup.clone_children").touch()
        for path in directory.iterdir():
            os.utime(path, (50.0, 50.0))
        os.utime(directory, (90.0, 90.0))
    cgroup = CgroupTree(root).open(candidates(version))
    assert cgroup is not None
    assert cgroup.created_at == 50.0
    cgroup.close()
