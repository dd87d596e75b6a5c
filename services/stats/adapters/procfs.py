"""/proc: the node and its processes. A process that is gone answers None."""

from __future__ import annotations

import os
from pathlib import Path

from services.stats.core.model import Interface, MemoryInfo, TaskLimits
from services.stats.core.parse_proc import (
    parse_boot_time,
    parse_cpu_total,
    parse_meminfo,
    parse_net_dev,
    parse_task_limits,
)

PROC_ROOT = Path("/proc")


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

    def _read(self, name: str) -> str | None:
        try:
            # Unbuffered: the buffered layers cost more than the system calls, a hundred times a pass.
            with open(f"{self._root}/{name}", "rb", buffering=0) as file:  # noqa: PTH123
                return file.readall().decode("utf-8", "replace")
        except OSError:
            return None
