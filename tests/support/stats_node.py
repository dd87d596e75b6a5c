"""A stats collector on fakes: cgroups, processes and a clock that the test moves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from services.stats.core.model import (
    CgroupPath,
    CgroupUsage,
    ContainerTarget,
    FilesystemUsage,
    Interface,
    MemoryInfo,
    MemoryUsage,
    PodTarget,
    Pressures,
    ProcessFacts,
    TaskLimits,
    Texts,
)
from services.stats.core.rates import NANOSECONDS
from services.stats.handlers.collect import Collector

FIXTURES = Path(__file__).parents[1] / "fixtures/stats"
POD_PATH = "/kubepods/podu-1"
WEB = ContainerTarget(id="c" * 64, name="web", pid=41, started_at=1_000.0)
POD = PodTarget(
    uid="u-1",
    name="web",
    namespace="default",
    start_time=999.0,
    cgroup=POD_PATH,
    sandbox_id="s" * 64,
    sandbox_pid=40,
    containers=(WEB,),
)
ETH0 = Interface(name="eth0", rx_bytes=5, rx_errors=0, tx_bytes=6, tx_errors=0)


class FakeClock:
    def __init__(self) -> None:
        self.boot = 500.0

    def now(self) -> float:
        return 1_000.0 + self.boot

    def boot_seconds(self) -> float:
        return self.boot

    def boot_id(self) -> str:
        return "b"


class FakeCgroup:
    created_at: float | None = 700.0

    def __init__(self, tree: FakeCgroups, path: str) -> None:
        self._tree = tree
        self._path = self.path = path
        self.is_closed = False

    def read(self) -> CgroupUsage | None:
        self._tree.reads.append(self._path)
        if self._path not in self._tree.cpu_ns:
            self.close()
            return None
        return CgroupUsage(cpu_ns=self._tree.cpu_ns[self._path], memory=MemoryUsage(usage=10, working_set=9, rss=8))

    def texts(self) -> Texts | None:
        return Texts(version=2, files=dict(self._tree.files))

    def close(self) -> None:
        self.is_closed = True


class FakeCgroups:
    """`cpu_ns`: the cgroups that exist and their counters. "" is the root."""

    def __init__(self) -> None:
        self.cpu_ns: dict[str, int] = {"": 0}
        self.reads: list[str] = []
        self.files: dict[str, bytes] = {}
        self.opened: list[FakeCgroup] = []

    def open(self, candidates: Sequence[CgroupPath]) -> FakeCgroup | None:
        for path in candidates:
            if path.cpu in self.cpu_ns:
                self.opened.append(FakeCgroup(self, path.cpu))
                return self.opened[-1]
        return None

    def root_usage(self, info: MemoryInfo | None) -> CgroupUsage:
        self.reads.append("")
        return CgroupUsage(cpu_ns=self.cpu_ns.get(""), memory=MemoryUsage(usage=100, working_set=90))

    def root_texts(self) -> Texts | None:
        return Texts(version=2, files=dict(self.files))

    @property
    def root_created_at(self) -> float | None:
        return 700.0

    @property
    def open_count(self) -> int:
        return sum(not one.is_closed for one in self.opened)


class FakeProcesses:
    def __init__(self) -> None:
        self.cgroups: dict[int, str] = {}
        self.networks: dict[int, tuple[Interface, ...]] = {}

    def cgroup_text(self, pid: int) -> str | None:
        return self.cgroups.get(pid)

    def interfaces(self, pid: int) -> tuple[Interface, ...] | None:
        return self.networks.get(pid)

    def memory_info(self) -> MemoryInfo | None:
        return MemoryInfo(total=1_000, free=100)

    def boot_time(self) -> float | None:
        return 1_000.0

    def cpu_total_ns(self) -> int | None:
        return 77

    def task_limits(self) -> TaskLimits | None:
        return TaskLimits(maximum=9, running=3)

    def pressure(self) -> Pressures | None:
        return None

    def swap(self) -> tuple[int, int] | None:
        return None

    def facts(self, pids: Sequence[int]) -> ProcessFacts:
        return ProcessFacts(count=len(pids), descriptors=0, sockets=0)

    def upper_directory(self, pid: int) -> str | None:
        return f"/upper/{pid}"


class FakeFilesystems:
    def usage(self, path: str) -> FilesystemUsage | None:
        if path not in ("/data", "/docker"):
            return None
        return FilesystemUsage(capacity=100, available=30, used=60, inodes=7, inodes_free=5)


class Node:
    """A collector on fakes, with one pod that has a sandbox and the container `web`."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.cgroups = FakeCgroups()
        self.processes = FakeProcesses()
        self.collector = Collector(
            node_name="peer",
            root_dir="/data",
            cgroups=self.cgroups,
            processes=self.processes,
            filesystems=FakeFilesystems(),
            clock=self.clock,
        )

    def start_pod(self, pod: PodTarget = POD) -> None:
        """Its cgroups and processes appear."""
        self.processes.cgroups[pod.sandbox_pid] = f"0::{pod.cgroup}/{pod.sandbox_id}\n"
        self.processes.networks[pod.sandbox_pid] = (ETH0,)
        self.cgroups.cpu_ns[pod.cgroup] = 0
        for container in pod.containers:
            self.processes.cgroups[container.pid] = f"0::{pod.cgroup}/{container.id}\n"
            self.cgroups.cpu_ns[f"{pod.cgroup}/{container.id}"] = 0

    def advance(self, seconds: float, busy: dict[str, float] | None = None) -> None:
        """Time goes by; `busy` says which cgroup used how much of a CPU."""
        self.clock.boot += seconds
        for path, share in (busy or {}).items():
            self.cgroups.cpu_ns[path] += int(share * seconds * NANOSECONDS)

    def told(self, **options: bool) -> Any:
        return json.loads(self.collector.summary(**options))

    def container(self) -> Any:
        return self.told()["pods"][0]["containers"][0]
