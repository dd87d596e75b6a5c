"""Whether the data directory's disk can take anything: with a full one the bus has no way left to tell."""

from __future__ import annotations

import os
from pathlib import Path

LEAST_BYTES = 1 << 20
"""With less the databases and the bus can't go on."""


def disk_trouble(path: Path) -> str:
    """For people; "" = there is room."""
    try:
        disk = os.statvfs(path)
    except OSError as error:
        return f"{path}: {error.strerror}"
    free = disk.f_bavail * disk.f_frsize
    if free < LEAST_BYTES:
        return f"the disk of {path} is full ({free // 1024} KiB free): no new pod starts until it has room"
    if disk.f_files and not disk.f_favail:
        return f"the disk of {path} has no inode left: no new pod starts until it has some"
    return ""
