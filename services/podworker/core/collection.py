"""Which pods' leftovers may go."""

from __future__ import annotations

from collections.abc import Set


def orphans(on_disk: Set[str], *, stored: Set[str], desired: Set[str], running: Set[str]) -> frozenset[str]:
    """UIDs with a directory, but without a row, a manifest or a container. Only to be asked once every source has
    been seen, and with a complete list of containers: else a slow source would lose its pods' volumes."""
    return frozenset(on_disk - stored - desired - running)
