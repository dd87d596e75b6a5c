"""/proc: which processes belong to a node, what they burn and what they weigh."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PRESENT = 1 << 63
_FILE_PAGE = 1 << 61
"""Bits of a pagemap entry (Linux: Documentation/admin-guide/mm/pagemap.rst)."""


def name_of(pid: int) -> str:
    try:
        return (PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return ""


def pids() -> list[int]:
    return [int(entry) for entry in os.listdir(PROC) if entry.isdigit()]


def descendants(root: int) -> list[int]:
    """`root` and all that came of it, oldest first."""
    parents: dict[int, int] = {}
    for pid in pids():
        fields = _stat(pid)
        if fields is not None:
            parents[pid] = int(fields[1])
    found = [root]
    for one in found:
        found += sorted(pid for pid, parent in parents.items() if parent == one)
    return found


def node_processes(supervisor: int, data: Path) -> dict[int, str]:
    """The processes of `podbus up` by pid, with the names that their health files give them."""
    known = {supervisor: "supervisor"}
    for path in (data / "run" / "health").glob("*.json"):
        known[int(json.loads(path.read_text())["pid"])] = path.stem
    return {pid: known.get(pid) or name_of(pid) for pid in descendants(supervisor)}


def engine_processes() -> dict[int, str]:
    """dockerd of the default socket and its containerd. Without a pid file: every process of that name."""
    try:
        dockerd = [int(Path("/var/run/docker.pid").read_text())]
    except (OSError, ValueError):
        dockerd = [pid for pid in pids() if name_of(pid) == "dockerd"]
    ours = [pid for one in dockerd for pid in descendants(one) if name_of(pid) == "containerd"]
    containerd = ours or [pid for pid in pids() if name_of(pid) == "containerd"]
    return {**dict.fromkeys(dockerd, "dockerd"), **dict.fromkeys(containerd, "containerd")}


# -- CPU ------------------------------------------------------------------------------------------------------


def cpu_seconds(pid: int) -> float:
    """User and system time of all its threads, those that ended included; 0 when it's gone."""
    fields = _stat(pid)
    return 0.0 if fields is None else (int(fields[11]) + int(fields[12])) / _TICKS


def cpu_over(processes: Iterable[int], seconds: float) -> dict[int, float]:
    """Percent of one core that each takes during the next `seconds`."""
    wanted = list(processes)
    began, before = time.monotonic(), {pid: cpu_seconds(pid) for pid in wanted}
    time.sleep(seconds)
    after = {pid: cpu_seconds(pid) for pid in wanted}
    took = time.monotonic() - began
    return {pid: 100 * max(0.0, after[pid] - before[pid]) / took for pid in wanted}


class CpuUsed:
    """What each process has used since this was made, told as a sentence."""

    def __init__(self, processes: Mapping[int, str]) -> None:
        self._names = dict(processes)
        self._before = {pid: cpu_seconds(pid) for pid in processes}

    def so_far(self) -> dict[str, float]:
        """CPU seconds by name, most first."""
        used = {name: cpu_seconds(pid) - self._before[pid] for pid, name in self._names.items()}
        return dict(sorted(used.items(), key=lambda item: -item[1]))

    def told(self) -> str:
        used = self.so_far()
        return f"CPU {sum(used.values()):.2f} s: " + ", ".join(f"{name} {took:.2f}" for name, took in used.items())


def busy_seconds() -> float:
    """What all CPUs have worked since boot."""
    fields = (PROC / "stat").read_text().partition("\n")[0].split()[1:]
    user, nice, system, _idle, _wait, irq, softirq, *_ = map(int, fields)
    return (user + nice + system + irq + softirq) / _TICKS


def _stat(pid: int) -> list[str] | None:
    """The fields behind the name: state, ppid, ..."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return None


# -- memory ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Memory:
    """Bytes."""

    pss: int
    anonymous: int
    file: int
    """Shared memory included."""


def memory(pid: int) -> Memory:
    """The process's proportional share, from smaps_rollup. Raises OSError without the right to look."""
    sizes: dict[str, int] = {}
    for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines()[1:]:
        key, value = line.split()[:2]
        sizes[key.rstrip(":")] = int(value) * 1024
    return Memory(sizes["Pss"], sizes["Pss_Anon"], sizes["Pss_File"] + sizes["Pss_Shmem"])


def file_pages_alone(processes: Iterable[int]) -> int:
    """Bytes of mapped file pages that these processes hold together, each page once, as if nobody else used it.

    The file part of a PSS shrinks when another Python of the same build runs (a test, this benchmark itself); this
    doesn't. Needs root: others see an empty pagemap.
    """
    seen: dict[tuple[str, str], set[int]] = {}
    for pid in processes:
        with (PROC / str(pid) / "pagemap").open("rb", buffering=0) as pagemap:
            for line in (PROC / str(pid) / "maps").read_text().splitlines():
                span, _mode, offset, device, inode, *_ = line.split()
                if inode == "0":
                    continue
                start, end = (int(part, 16) for part in span.split("-"))
                pagemap.seek(start // _PAGE * 8)
                entries = memoryview(pagemap.read((end - start) // _PAGE * 8)).cast("Q")
                first = int(offset, 16) // _PAGE
                here = {first + n for n, entry in enumerate(entries) if entry & _PRESENT and entry & _FILE_PAGE}
                seen.setdefault((device, inode), set()).update(here)
    return _PAGE * sum(map(len, seen.values()))


def same_build(processes: Mapping[int, str], *, of: int) -> list[int]:
    """Other processes that run the same interpreter as `of`."""
    build = _program(of)
    return [pid for pid in pids() if pid not in processes and _program(pid) == build]


def _program(pid: int) -> tuple[int, int]:
    """Device and inode; zeros where that may not be seen."""
    try:
        found = (PROC / str(pid) / "exe").stat()
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino
