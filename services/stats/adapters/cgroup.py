"""cgroup v1 and v2 trees, read through file descriptors that stay open.

Opening a file costs more than reading it, so each cgroup's files are opened once and read by pread. When a
cgroup is removed, its open files answer ENODEV: that is how a container's end is noticed, and it is no
error.
"""

from __future__ import annotations

import logging
import os
import resource
from collections.abc import Callable, Sequence
from pathlib import Path

from services.stats.core.model import CgroupPath, CgroupUsage, MemoryInfo, MemoryUsage
from services.stats.core.parse_cgroup import (
    node_memory,
    parse_cpu_v1,
    parse_cpu_v2,
    parse_limit,
    parse_memory_v1,
    parse_memory_v2,
)

_log = logging.getLogger("podbus.stats.cgroup")

CGROUP_ROOT = Path("/sys/fs/cgroup")
READ_BYTES = 8192
"""memory.stat, the longest of the files, has about 2 KiB."""
LIMIT_EVERY = 6
"""The limit changes only by an update of the container: it is read at first and then each sixth time (a
minute)."""
SPARE_FILES = 256
"""File descriptors left to the rest of the process."""


def raise_file_limit() -> int:
    """Raise this process' soft limit of open files to the hard one; the limit that holds now. Three files a
    cgroup and three hundred cgroups come near the usual 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:
            _log.info("the limit of open files stays: soft=%d hard=%d error=%s", soft, hard, error)
            return soft
    return hard


class CgroupTree:
    """The tree below `root`, the mount point. Version 2 is told by `cgroup.controllers` there; a hybrid
    tree, which has v2 in `unified` beside the v1 controllers, counts as v1. `max_open`: how many files to
    keep open; a cgroup beyond that is opened for each reading."""

    def __init__(self, root: Path = CGROUP_ROOT, max_open: int | None = None) -> None:
        self.version = 2 if (root / "cgroup.controllers").exists() else 1
        if self.version == 1:
            self._cpu_root = _controller(root, "cpuacct")
            self._memory_root = _controller(root, "memory")
        else:
            self._cpu_root = self._memory_root = root
        if max_open is None:
            max_open = max(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE_FILES)
        self._free = max_open
        self._root_cgroup: OpenCgroup | None = None

    def open(self, candidates: Sequence[CgroupPath]) -> OpenCgroup | None:
        """The first of the paths that exists; None when none does."""
        for path in candidates:
            cpu = self._cpu_root / path.cpu.lstrip("/")
            memory = self._memory_root / path.memory.lstrip("/")
            if cpu.is_dir() or memory.is_dir():
                return OpenCgroup(cpu, memory, self.version, self._take, self._give_back)
        return None

    def root_usage(self, info: MemoryInfo | None) -> CgroupUsage:
        """The whole node's counters; memory by `core.parse_cgroup.node_memory`."""
        if self._root_cgroup is None or self._root_cgroup.is_closed:
            self._root_cgroup = OpenCgroup(self._cpu_root, self._memory_root, self.version, self._take, self._give_back)
        usage = self._root_cgroup.read() or CgroupUsage()
        if info is None:
            return usage
        # Only the root of v2 has memory.stat without a usage beside it; on v1 one isn't there without the
        # other.
        stat = b"" if usage.memory is not None else self._root_cgroup.memory_stat()
        return CgroupUsage(cpu_ns=usage.cpu_ns, memory=node_memory(usage.memory, stat, info))

    def close(self) -> None:
        """Close the root's files; each other cgroup is closed by who opened it."""
        if self._root_cgroup is not None:
            self._root_cgroup.close()

    def _take(self) -> bool:
        if self._free <= 0:
            return False
        self._free -= 1
        return True

    def _give_back(self) -> None:
        self._free += 1


class _File:
    """One file: kept open if the tree's budget allows, else opened for each reading."""

    __slots__ = ("_descriptor", "_give_back", "_path")

    def __init__(self, path: Path, take: Callable[[], bool], give_back: Callable[[], None]) -> None:
        self._path = str(path)
        self._give_back = give_back
        self._descriptor: int | None = None
        if take():
            try:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                give_back()

    def read(self) -> bytes | None:
        """The content; None when the file isn't there (any more)."""
        try:
            if self._descriptor is not None:
                return os.pread(self._descriptor, READ_BYTES, 0)
            return _read_once(self._path)
        except OSError:
            return None

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            self._give_back()


class OpenCgroup:
    """One cgroup. Not thread-safe."""

    def __init__(
        self, cpu: Path, memory: Path, version: int, take: Callable[[], bool], give_back: Callable[[], None]
    ) -> None:
        self.created_at = _created_at(cpu, memory)
        self.is_closed = False
        self._version = version
        usage, limit = (
            ("memory.usage_in_bytes", "memory.limit_in_bytes") if version == 1 else ("memory.current", "memory.max")
        )
        self._cpu = _File(cpu / ("cpuacct.usage" if version == 1 else "cpu.stat"), take, give_back)
        self._usage = _File(memory / usage, take, give_back)
        self._stat = _File(memory / "memory.stat", take, give_back)
        self._limit_path = str(memory / limit)
        self._limit: int | None = None
        self._reads = 0

    def read(self) -> CgroupUsage | None:
        """CPU first: whoever calls takes the time just before. None, and closed, when nothing can be read:
        the cgroup is gone."""
        if self.is_closed:
            return None
        cpu = self._cpu.read()
        usage = self._usage.read()
        if cpu is None and usage is None:
            self.close()
            return None
        parse_cpu = parse_cpu_v1 if self._version == 1 else parse_cpu_v2
        return CgroupUsage(
            cpu_ns=None if cpu is None else parse_cpu(cpu),
            memory=None if usage is None else self._memory(usage),
        )

    def memory_stat(self) -> bytes:
        """The text of memory.stat, b"" without one."""
        return self._stat.read() or b""

    def close(self) -> None:
        """Give the file descriptors back. May be called twice."""
        self.is_closed = True
        for file in (self._cpu, self._usage, self._stat):
            file.close()

    def _memory(self, usage: bytes) -> MemoryUsage | None:
        if self._reads % LIMIT_EVERY == 0:
            try:
                self._limit = parse_limit(_read_once(self._limit_path))
            except OSError:
                self._limit = None
        self._reads += 1
        stat = self._stat.read()
        if stat is None:
            return None
        parse = parse_memory_v1 if self._version == 1 else parse_memory_v2
        return parse(usage, stat, self._limit)


def _controller(root: Path, name: str) -> Path:
    """The directory of a v1 controller: its own name, or one that lists it (`cpu,cpuacct`) where the links
    that systemd makes are missing."""
    if not (root / name).is_dir() and root.is_dir():
        for directory in sorted(root.iterdir()):
            if name in directory.name.split(","):
                return directory
    return root / name


def _created_at(*directories: Path) -> float | None:
    """cAdvisor 0.60: the earliest time of the directory and of a file in it that nobody writes, because the
    directory's own time moves with each child that is made."""
    times: list[float] = []
    for directory in directories:
        for path in (directory, directory / "cgroup.clone_children", directory / "cgroup.events"):
            try:
                times.append(path.stat().st_mtime)
            except OSError:
                continue
    return min(times, default=None)


def _read_once(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, READ_BYTES, 0)
    finally:
        os.close(descriptor)
