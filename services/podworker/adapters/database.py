"""Which file, and which schema of it this code needs. Apart from the tables: those load SQLAlchemy."""

from __future__ import annotations

from pathlib import Path

from shared.storage.migrate import Database

DATABASE = Database(file="pods.db", head="0003", scripts=Path(__file__).parent.parent / "migrations")
