"""Whether a disk can take anything more."""

from __future__ import annotations

import os
from pathlib import Path

LEAST_BYTES = 1 << 20
"""With less the databases and the bus can't go on."""


def full_disk(path: Path) -> str:
    """For people; "" = there is room. Raises OSError."""
    disk = os.statvfs(path)
    free = disk.f_bavail * disk.f_frsize
    if free < LEAST_BYTES:
        return f"the disk of {path} is full ({free // 1024} KiB free)"
    if disk.f_files and not disk.f_favail:
        return f"the disk of {path} has no inode left"
    return ""
