"""Which file, and which schema of it this code needs. Apart from the tables: those load SQLAlchemy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from shared.storage.migrate import Database

DATABASE = Database(file="status.db", head="0002", scripts=Path(__file__).parent.parent / "migrations")


def query_name(filters: Iterable[str]) -> str:
    """Which statement finds events by these of namespace, name, uid."""
    return "_".join(["query", *sorted(filters)])
