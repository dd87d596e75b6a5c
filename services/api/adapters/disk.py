"""Whether the data directory's disk can take anything: with a full one the bus has no way left to tell."""

from __future__ import annotations

from pathlib import Path

from shared.runtime.disk import full_disk


def disk_trouble(path: Path) -> str:
    """For people; "" = there is room."""
    try:
        trouble = full_disk(path)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return f"{trouble}: no new pod starts until it has room" if trouble else ""
