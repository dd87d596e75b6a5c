"""Which supervisor runs on a data directory: a lock that the kernel drops with it, and a file that tells about it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from shared.runtime.filelock import FileLock
from shared.runtime.paths import DataPaths


@dataclass(frozen=True)
class Running:
    """`<run>/supervisor.json`."""

    pid: int
    api: str
    """`https://0.0.0.0:10250`"""
    ready: bool


def supervisor_lock(paths: DataPaths) -> FileLock:
    return FileLock(paths.run / "supervisor.lock")


def running(paths: DataPaths) -> Running | None:
    """The live supervisor of this data directory, or None. Raises PermissionError where we may not look."""
    path = paths.run / "supervisor.lock"
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    lock = FileLock(path)
    try:
        if lock.try_acquire():
            return None
    finally:
        lock.release()
    try:
        return Running(**json.loads(_file(paths).read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return Running(pid=_pid(paths), api="", ready=False)


def write_running(paths: DataPaths, facts: Running) -> None:
    """By the holder of the lock."""
    for path, text in (
        (paths.supervisor_pid, f"{facts.pid}\n"),
        (_file(paths), json.dumps(asdict(facts)) + "\n"),
    ):
        scratch = path.with_name(f".{path.name}.{os.getpid()}")
        scratch.write_text(text)
        scratch.replace(path)


def forget_running(paths: DataPaths) -> None:
    paths.supervisor_pid.unlink(missing_ok=True)
    _file(paths).unlink(missing_ok=True)


def _file(paths: DataPaths) -> Path:
    return paths.run / "supervisor.json"


def _pid(paths: DataPaths) -> int:
    """0 when it hasn't been written yet."""
    try:
        return int(paths.supervisor_pid.read_text())
    except (FileNotFoundError, ValueError):
        return 0
