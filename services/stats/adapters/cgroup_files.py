"""The files of one cgroup: kept open as far as the budget of descriptors allows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

READ_BYTES = 8192
"""memory.stat, the longest of the files, has about 2 KiB."""
LONG_READ_BYTES = 1 << 16
"""cgroup.procs has a line for each process."""

LIVE_V1 = (
    ("cpuacct", "cpuacct.stat"),
    ("cpu", "cpu.stat"),
    ("memory", "memory.max_usage_in_bytes"),
    ("memory", "memory.failcnt"),
    ("memory", "memory.oom_control"),
    ("memory", "memory.kmem.usage_in_bytes"),
    ("pids", "pids.current"),
    ("blkio", "blkio.throttle.io_service_bytes_recursive"),
    ("blkio", "blkio.throttle.io_serviced_recursive"),
    ("cpuacct", "cgroup.procs"),
)
"""Controller and file, read in each pass while somebody scrapes."""
SPEC_V1 = (
    ("cpu", "cpu.shares"),
    ("cpu", "cpu.cfs_quota_us"),
    ("cpu", "cpu.cfs_period_us"),
    ("memory", "memory.limit_in_bytes"),
    ("memory", "memory.soft_limit_in_bytes"),
    ("memory", "memory.memsw.limit_in_bytes"),
    ("pids", "pids.max"),
)
"""What only an update of the container changes: read once a minute."""
LIVE_V2 = tuple(
    ("", name)
    for name in (
        "cpu.stat",
        "memory.peak",
        "memory.events",
        "memory.swap.current",
        "pids.current",
        "io.stat",
        "cgroup.procs",
        "cpu.pressure",
        "memory.pressure",
        "io.pressure",
    )
)
SPEC_V2 = tuple(
    ("", name) for name in ("cpu.max", "cpu.weight", "memory.max", "memory.low", "memory.swap.max", "pids.max")
)

Take = Callable[[], bool]
GiveBack = Callable[[], None]


class HeldFile:
    """One file: kept open if the tree's budget allows, else opened for each reading."""

    __slots__ = ("_descriptor", "_give_back", "_longest", "_path")

    def __init__(self, path: Path | str, take: Take, give_back: GiveBack, longest: int = READ_BYTES) -> None:
        self._path = str(path)
        self._give_back = give_back
        self._longest = longest
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
                return os.pread(self._descriptor, self._longest, 0)
            return read_once(self._path, self._longest)
        except OSError:
            return None

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            self._give_back()


class DetailFiles:
    """What only a page for Prometheus tells of a cgroup; made when the first one is asked for."""

    def __init__(self, directories: dict[str, Path], version: int, take: Take, give_back: GiveBack) -> None:
        live, self._spec = (LIVE_V1, SPEC_V1) if version == 1 else (LIVE_V2, SPEC_V2)
        self._directories = directories
        self._files: dict[str, HeldFile] = {}
        for controller, name in live:
            path = f"{directories[controller]}/{name}"
            if os.access(path, os.R_OK):  # most kernels lack some: those aren't looked for again
                longest = LONG_READ_BYTES if name == "cgroup.procs" else READ_BYTES
                self._files[name] = HeldFile(path, take, give_back, longest)
        self._spec_texts: dict[str, bytes] = {}

    def read(self, *, with_spec: bool) -> dict[str, bytes]:
        """The texts by file name; without those that aren't there."""
        if with_spec:
            self._spec_texts = dict(self._read_spec())
        found = dict(self._spec_texts)
        for name, file in self._files.items():
            text = file.read()
            if text is not None:
                found[name] = text
        return found

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _read_spec(self) -> Iterable[tuple[str, bytes]]:
        for controller, name in self._spec:
            try:
                yield name, read_once(f"{self._directories[controller]}/{name}")
            except OSError:
                continue


def read_once(path: str, longest: int = READ_BYTES) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, longest, 0)
    finally:
        os.close(descriptor)
