"""Ends a process with all its children, by their pids as this process sees them."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from pathlib import Path

PROC = Path("/proc")


def kill_tree(pid: int) -> bool:
    """False when the process isn't there (any more), or isn't ours to end.

    Each is stopped before its children are looked for, so that none is missed or born meanwhile: a stopped parent
    doesn't fork, and its dead children keep their pids.
    """
    if not _send(pid, signal.SIGSTOP):
        return False
    found, unseen = {pid}, [pid]
    while unseen:
        children = _children()
        unseen = [child for parent in unseen for child in children[parent] if child not in found]
        found.update(child for child in unseen if _send(child, signal.SIGSTOP))
    for one in found:
        _send(one, signal.SIGKILL)
    return True


def _send(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _children() -> defaultdict[int, list[int]]:
    found: defaultdict[int, list[int]] = defaultdict(list)
    for directory in PROC.iterdir():
        if not directory.name.isdigit():
            continue
        try:
            # "pid (name) state ppid ...": a name may hold anything
            fields = (directory / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        found[int(fields[1])].append(int(directory.name))
    return found
