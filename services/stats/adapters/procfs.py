"""/proc: the node and its processes. A process that is gone answers None."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from services.stats.core.model import Interface, MemoryInfo, Pressures, ProcessFacts, TaskLimits
from services.stats.core.parse_cgroup import parse_pressure
from services.stats.core.parse_proc import (
    parse_boot_time,
    parse_cpu_total,
    parse_meminfo,
    parse_net_dev,
    parse_open_files,
    parse_task_limits,
    parse_upper_directory,
)

PROC_ROOT = Path("/proc")
_MOST_PROCESSES = 256
_MOST_LINKS = 1024


class Procfs:
    """Files are opened for each reading: an open /proc/<pid>/net/dev would keep a dead pod's network
    alive."""

    def __init__(self, root: Path = PROC_ROOT) -> None:
        self._root = str(root)

    def cgroup_text(self, pid: int) -> str | None:
        """/proc/<pid>/cgroup."""
        return self._read(f"{pid}/cgroup") if pid > 0 else None

    def interfaces(self, pid: int) -> tuple[Interface, ...] | None:
        """What the process sees, ours left out (`parse_proc.IGNORED_INTERFACES`). Pid 1 sees the node's."""
        text = self._read(f"{pid}/net/dev") if pid > 0 else None
        return None if text is None else parse_net_dev(text)

    def memory_info(self) -> MemoryInfo | None:
        text = self._read("meminfo")
        return None if text is None else parse_meminfo(text)

    def boot_time(self) -> float | None:
        """Seconds since the epoch."""
        text = self._read("stat")
        return None if text is None else parse_boot_time(text)

    def cpu_total_ns(self) -> int | None:
        """Busy time of all CPUs since boot."""
        text = self._read("stat")
        return None if text is None else parse_cpu_total(text, os.sysconf("SC_CLK_TCK"))

    def task_limits(self) -> TaskLimits | None:
        texts = [self._read(name) for name in ("sys/kernel/pid_max", "sys/kernel/threads-max", "loadavg")]
        pid_max, threads_max, loadavg = texts
        if pid_max is None or threads_max is None or loadavg is None:
            return None
        return parse_task_limits(pid_max, threads_max, loadavg)

    def pressure(self) -> Pressures | None:
        """The node's; None where the kernel doesn't account it (or was started with psi=0)."""
        texts = {name: self._read(f"pressure/{name}") for name in ("cpu", "memory", "io")}
        pairs = {name: parse_pressure(text.encode()) for name, text in texts.items() if text}
        return Pressures(**pairs) if pairs else None

    def swap(self) -> tuple[int, int] | None:
        """Used and free bytes of all swap; None when there is none."""
        found = {}
        for line in (self._read("meminfo") or "").splitlines():
            if line.startswith(("SwapTotal:", "SwapFree:")):
                key, size, *_ = line.split()
                found[key] = int(size) * 1024
        total, free = found.get("SwapTotal:", 0), found.get("SwapFree:", 0)
        return (total - free, free) if total else None

    def facts(self, pids: Sequence[int]) -> ProcessFacts:
        """Descriptors of the first processes of a cgroup, bounded: a busy server may hold a million."""
        descriptors = sockets = 0
        for pid in pids[:_MOST_PROCESSES]:
            directory = f"{self._root}/{pid}/fd"
            try:
                names = os.listdir(directory)  # noqa: PTH208
            except OSError:
                continue
            descriptors += len(names)
            for name in names[:_MOST_LINKS]:
                try:
                    sockets += os.readlink(f"{directory}/{name}").startswith("socket:")  # noqa: PTH115
                except OSError:
                    continue
        return ProcessFacts(
            count=len(pids),
            descriptors=descriptors,
            sockets=sockets,
            max_open_files=parse_open_files(self._read(f"{pids[0]}/limits") or "") if pids else None,
        )

    def upper_directory(self, pid: int) -> str | None:
        """Where the container's writable layer is: `upperdir=` of its root mount (overlay)."""
        text = self._read(f"{pid}/mountinfo") if pid > 0 else None
        return None if text is None else parse_upper_directory(text)

    def _read(self, name: str) -> str | None:
        try:
            # Unbuffered: the buffered layers cost more than the system calls, a hundred times a pass.
            with open(f"{self._root}/{name}", "rb", buffering=0) as file:  # noqa: PTH123
                return file.readall().decode("utf-8", "replace")
        except OSError:
            return None
