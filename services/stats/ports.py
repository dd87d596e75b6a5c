"""What the collector needs from outside. A thing that is gone is None or an empty answer, never an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from services.stats.core.model import (
    CgroupPath,
    CgroupUsage,
    FilesystemUsage,
    Interface,
    MemoryInfo,
    TaskLimits,
)


class Cgroup(Protocol):
    """One cgroup, held open until it disappears or `close` is called."""

    created_at: float | None
    """Seconds since the epoch, as far as the filesystem tells."""

    def read(self) -> CgroupUsage | None:
        """Its counters now; None (and closed) when the cgroup is gone."""
        ...

    def close(self) -> None:
        """Give the file descriptors back. May be called twice."""
        ...


class Cgroups(Protocol):
    def open(self, candidates: Sequence[CgroupPath]) -> Cgroup | None:
        """The first of the paths that exists; None when none does."""
        ...

    def root_usage(self, info: MemoryInfo | None) -> CgroupUsage:
        """The whole node's counters; where the root cgroup has none, memory is told from `info`."""
        ...


class Processes(Protocol):
    """The kernel's view of the node and its processes."""

    def cgroup_text(self, pid: int) -> str | None:
        """/proc/<pid>/cgroup; None when there is no such process."""
        ...

    def interfaces(self, pid: int) -> tuple[Interface, ...] | None:
        """The network interfaces that the process sees; None when there is no such process."""
        ...

    def memory_info(self) -> MemoryInfo | None: ...
    def boot_time(self) -> float | None: ...
    def cpu_total_ns(self) -> int | None:
        """Busy time of all CPUs since boot."""
        ...

    def task_limits(self) -> TaskLimits | None: ...


class Filesystems(Protocol):
    def usage(self, path: str) -> FilesystemUsage | None:
        """Of the filesystem that holds `path`; None when there is no such path."""
        ...
