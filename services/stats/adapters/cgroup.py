"""cgroup v1 and v2 trees, read through file descriptors that stay open.

Opening a file costs more than reading it, so each cgroup's files are opened once and read by pread. When a
cgroup is removed, its open files answer ENODEV: that is how a container's end is noticed, and it is no
error.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from pathlib import Path

from services.stats.adapters.cgroup_files import DetailFiles, HeldFile, read_once
from services.stats.core.model import CgroupPath, CgroupUsage, MemoryInfo, MemoryUsage, Pressures, Texts
from services.stats.core.parse_cgroup import (
    node_memory,
    parse_cpu_v1,
    parse_cpu_v2,
    parse_limit,
    parse_memory_v1,
    parse_memory_v2,
    parse_number,
    parse_pressure,
)

CGROUP_ROOT = Path("/sys/fs/cgroup")
LIMIT_EVERY = 6
"""The limit changes only by an update of the container: it is read at first and then each sixth time (a
minute)."""
SPARE_FILES = 256
"""File descriptors left to the rest of the process."""


class CgroupTree:
    """The tree below `root`, the mount point. Version 2 is told by `cgroup.controllers` there; a hybrid
    tree, which has v2 in `unified` beside the v1 controllers, counts as v1. `max_open`: how many files to
    keep open; a cgroup beyond that is opened for each reading."""

    def __init__(self, root: Path = CGROUP_ROOT, max_open: int | None = None) -> None:
        self.version = 2 if (root / "cgroup.controllers").exists() else 1
        names = ("cpuacct", "memory", "cpu", "pids", "blkio") if self.version == 1 else ("",)
        self._roots = {name: _controller(root, name) if name else root for name in names}
        self._cpu_root = self._roots.get("cpuacct", root)
        self._memory_root = self._roots.get("memory", root)
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
                return self._opened(path)
        return None

    def root_usage(self, info: MemoryInfo | None) -> CgroupUsage:
        """The whole node's counters; memory by `core.parse_cgroup.node_memory`."""
        if self._root_cgroup is None or self._root_cgroup.is_closed:
            self._root_cgroup = self._opened(CgroupPath.same("/"))
        usage = self._root_cgroup.read() or CgroupUsage()
        if info is None:
            return usage
        # Only the root of v2 has memory.stat without a usage beside it; on v1 one isn't there without the
        # other.
        stat = b"" if usage.memory is not None else self._root_cgroup.memory_stat()
        return CgroupUsage(cpu_ns=usage.cpu_ns, memory=node_memory(usage.memory, stat, info))

    def root_texts(self) -> Texts | None:
        """What pages for Prometheus tell of the root cgroup; after `root_usage`."""
        return None if self._root_cgroup is None else self._root_cgroup.texts()

    @property
    def root_created_at(self) -> float | None:
        return None if self._root_cgroup is None else self._root_cgroup.created_at

    def _opened(self, path: CgroupPath) -> OpenCgroup:
        # Docker makes a container's cgroup at the same path below every controller.
        directories = {
            name: root / (path.memory if name == "memory" else path.cpu).lstrip("/")
            for name, root in self._roots.items()
        }
        return OpenCgroup(path.cpu, directories, self.version, self._take, self._give_back)

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


class OpenCgroup:
    """One cgroup. Not thread-safe."""

    def __init__(
        self,
        path: str,
        directories: dict[str, Path],
        version: int,
        take: Callable[[], bool],
        give_back: Callable[[], None],
    ) -> None:
        """`directories`: by controller on v1, the one of "" on v2."""
        cpu, memory = (directories[name if version == 1 else ""] for name in ("cpuacct", "memory"))
        self.created_at = _created_at(cpu, memory)
        self.path = path
        self.is_closed = False
        self._version = version
        usage, limit = (
            ("memory.usage_in_bytes", "memory.limit_in_bytes") if version == 1 else ("memory.current", "memory.max")
        )
        self._cpu = HeldFile(cpu / ("cpuacct.usage" if version == 1 else "cpu.stat"), take, give_back)
        self._usage = HeldFile(memory / usage, take, give_back)
        self._stat = HeldFile(memory / "memory.stat", take, give_back)
        self._limit_path = str(memory / limit)
        self._limit: int | None = None
        self._swap_limit: int | None = None
        self._reads = 0
        self._stat_text = b""
        self._directories = directories
        self._budget = (take, give_back)
        self._details: DetailFiles | None = None
        self._detail_reads = 0
        pids = directories["pids" if version == 1 else ""] / "pids.current"
        self._tasks = HeldFile(pids, take, give_back) if pids.exists() else None
        self._swap: HeldFile | None = None
        self._pressures: dict[str, HeldFile] = {}
        if version == 2:
            if (memory / "memory.swap.current").exists():
                self._swap = HeldFile(memory / "memory.swap.current", take, give_back)
            for name in ("cpu", "memory", "io"):
                if (memory / f"{name}.pressure").exists():
                    self._pressures[name] = HeldFile(memory / f"{name}.pressure", take, give_back)

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
        memory = None if usage is None else self._memory(usage)
        tasks = None if self._tasks is None else self._tasks.read()
        return CgroupUsage(
            cpu_ns=None if cpu is None else parse_cpu(cpu),
            memory=memory,
            pressure=self._pressure() if self._pressures else None,
            swap_limit=self._swap_limit,
            tasks=None if tasks is None else parse_number(tasks),
        )

    def texts(self) -> Texts | None:
        """The files behind the pages for Prometheus, with memory.stat as `read` saw it."""
        if self.is_closed:
            return None
        if self._details is None:
            self._details = DetailFiles(self._directories, self._version, *self._budget)
        files = self._details.read(with_spec=self._detail_reads % LIMIT_EVERY == 0)
        self._detail_reads += 1
        files["memory.stat"] = self._stat_text or self.memory_stat()  # the root of v2 has no usage
        return Texts(version=self._version, files=files)

    def _pressure(self) -> Pressures:
        # EOPNOTSUPP where the kernel was started with psi=0: no text, and so no row
        texts = {name: file.read() for name, file in self._pressures.items()}
        return Pressures(**{name: parse_pressure(text) for name, text in texts.items() if text})

    def memory_stat(self) -> bytes:
        """The text of memory.stat, b"" without one."""
        return self._stat.read() or b""

    def close(self) -> None:
        """Give the file descriptors back. May be called twice."""
        self.is_closed = True
        for file in (self._cpu, self._usage, self._stat, self._tasks, self._swap, self._details):
            if file is not None:
                file.close()
        for pressure in self._pressures.values():
            pressure.close()

    def _memory(self, usage: bytes) -> MemoryUsage | None:
        if self._reads % LIMIT_EVERY == 0:
            self._limit = _limit(self._limit_path)
            if self._swap is not None:
                self._swap_limit = _limit(self._limit_path.removesuffix("max") + "swap.max")
        self._reads += 1
        stat = self._stat.read()
        if stat is None:
            return None
        self._stat_text = stat
        if self._version == 1:
            return parse_memory_v1(usage, stat, self._limit)
        swap = None if self._swap is None else self._swap.read()
        return parse_memory_v2(usage, stat, self._limit, None if swap is None else parse_number(swap))


def _limit(path: str) -> int | None:
    try:
        return parse_limit(read_once(path))
    except OSError:
        return None


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
