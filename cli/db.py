"""`podbus db upgrade`: every service's database to this version's schema. `podbus up` runs it before the
services."""

from __future__ import annotations

from pathlib import Path

from services.podworker.adapters import database as podworker
from services.source.adapters import database as source
from services.status.adapters import database as status
from shared.storage.migrate import Database, at_head, upgrade


def databases() -> tuple[Database, ...]:
    """All databases of a node."""
    return (podworker.DATABASE, source.DATABASE, status.DATABASE)


def db_upgrade(data_dir: Path) -> list[str]:
    """Upgrade all databases in the data directory; one line per database that says what was done.

    Alembic is loaded only when one needs it. Raises DatabaseUnusable (shared.storage.migrate) with the file's
    path.
    """
    data_dir.mkdir(mode=0o750, parents=True, exist_ok=True)
    lines: list[str] = []
    for database in databases():
        path = data_dir / database.file
        if at_head(path, database):
            lines.append(f"{path}: at {database.head}")
            continue
        before = upgrade(path, database)
        lines.append(
            f"{path}: created at {database.head}" if before is None else f"{path}: {before} -> {database.head}"
        )
    return lines
