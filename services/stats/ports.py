"""What the collector needs from outside. A thing that is gone is None or an empty answer, never an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from services.stats.core.machine import MachineFacts
from services.stats.core.model import (
    CgroupPath,
    CgroupUsage,
    FilesystemUsage,
    Interface,
    MemoryInfo,
    Pressures,
    ProcessFacts,
    TaskLimits,
    Texts,
    VolumeTarget,
)


class Cgroup(Protocol):
    """One cgroup, held open until it disappears or `close` is called."""

    created_at: float | None
    """Seconds since the epoch, as far as the filesystem tells."""
    path: str
    """As it was found, below the mount point."""

    def read(self) -> CgroupUsage | None:
        """Its counters now; None (and closed) when the cgroup is gone."""
        ...

    def texts(self) -> Texts | None:
        """What only pages for Prometheus tell; None when the cgroup is gone."""
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

    def root_texts(self) -> Texts | None:
        """Of the root cgroup, after `root_usage`."""
        ...

    @property
    def root_created_at(self) -> float | None: ...


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
    def pressure(self) -> Pressures | None:
        """The node's, from /proc/pressure."""
        ...

    def swap(self) -> tuple[int, int] | None:
        """Used and free bytes of all swap; None when there is none."""
        ...

    def facts(self, pids: Sequence[int]) -> ProcessFacts:
        """Descriptors of these processes; one that is gone or not ours to see counts nothing."""
        ...

    def upper_directory(self, pid: int) -> str | None:
        """Where the container's writable layer is, from its mounts; None when it can't be told."""
        ...


class Machine(Protocol):
    """What the machine is."""

    def facts(self) -> MachineFacts:
        """Now; most of it doesn't change."""
        ...

    def device_of(self, path: str) -> str:
        """The block device of the filesystem that holds `path`: /dev/vda; "" when it has none."""
        ...


class Directories(Protocol):
    """Walks, in a thread of their own: each may take seconds."""

    def size(self, path: str) -> tuple[int, int] | None:
        """Bytes on disk and inodes at and below `path`, on its filesystem only; None when it isn't there."""
        ...

    def volumes(self, uid: str) -> tuple[VolumeTarget, ...]:
        """Of a pod, those that are measured by a walk."""
        ...


class KernelRecords(Protocol):
    def oom_records(self) -> list[bytes]:
        """The kernel log's records of kills for want of memory since the last call; at first all that it has."""
        ...


class Filesystems(Protocol):
    def usage(self, path: str) -> FilesystemUsage | None:
        """Of the filesystem that holds `path`; None when there is no such path."""
        ...
