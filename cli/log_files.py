"""Log files of the node's processes, rotated by size: x.log, x.log.1, x.log.2."""

from __future__ import annotations

import os
from pathlib import Path

MAX_BYTES = 10 << 20
KEPT = 3
"""Files in all, the current one included."""


class RotatingFile:
    """Appends bytes. A disk that can't take them loses log lines, never the node."""

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES, kept: int = KEPT) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._kept = kept
        self._fd: int | None = None
        self._size = 0

    def write(self, data: bytes) -> None:
        try:
            if self._fd is None:
                self._open()
            elif self._size + len(data) > self._max_bytes and self._size:
                self._rotate()
            assert self._fd is not None
            os.write(self._fd, data)
            self._size += len(data)
        except OSError:
            self.close()  # opened anew at the next line: the disk may have room again

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self) -> None:
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
        self._size = os.fstat(self._fd).st_size

    def _rotate(self) -> None:
        self.close()
        for number in range(self._kept - 1, 0, -1):
            older = self.path.with_name(f"{self.path.name}.{number}")
            newer = self.path.with_name(f"{self.path.name}.{number - 1}") if number > 1 else self.path
            if newer.exists():
                newer.replace(older)
        self._open()


def last_lines(path: Path, count: int) -> list[str]:
    """The end of a log, for people; empty when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 16384))
            return file.read().decode(errors="replace").splitlines()[-count:]
    except OSError:
        return []
