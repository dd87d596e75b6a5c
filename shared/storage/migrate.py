"""Brings a SQLite file to the code's schema by Alembic, in a short process before the services start.

Alembic costs 35 MiB of memory, so it is imported inside `upgrade` only; a service asks `check` instead, which
reads one row by sqlite3.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path


class DatabaseUnusable(Exception):
    """The file can't serve this version of podbus. The text names the file and what to do."""


@dataclass(frozen=True)
class Database:
    """One service's database: its file name in the data directory, its migrations and the newest of them."""

    file: str
    head: str
    """Pinned beside the tables, so that the check needs no Alembic; a test holds it equal to the scripts."""
    scripts: Path
    """The Alembic script location."""


def check(path: Path, database: Database) -> None:
    """Raises DatabaseUnusable unless the file has exactly the schema of this code. Costs well under a
    millisecond."""
    found = revision(path)
    if found == database.head:
        return
    if found is None:
        raise DatabaseUnusable(f"{path}: not set up yet; run `podbus db upgrade`")
    raise DatabaseUnusable(
        f"{path}: its schema is {found}, this version of podbus needs {database.head}; run `podbus db upgrade`"
    )


def at_head(path: Path, database: Database) -> bool:
    """Whether nothing needs to be upgraded. Raises DatabaseUnusable when the file is damaged."""
    return revision(path) == database.head


def revision(path: Path) -> str | None:
    """The schema revision in the file; None when there is no file, or an empty one, or one from before the
    first upgrade. Raises DatabaseUnusable when it is no SQLite database or damaged."""
    if not path.exists():
        return None
    try:
        # Not mode=ro: after a crash a write-ahead log must be recovered, which a read-only connection can't.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=5)) as connection:
            known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
            if known is None:
                return None
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            return None if row is None else str(row[0])
    except sqlite3.DatabaseError as error:
        raise _unusable(path, error) from error


def upgrade(path: Path, database: Database) -> str | None:
    """Bring the file to `database.head`, all steps in one transaction: after a crash it has the old schema or
    the new.

    Returns the revision that it had before, or None when it was new. Two processes at once are safe: the
    second waits.
    Raises DatabaseUnusable when the file is damaged, or was written by a newer podbus.
    """
    with _locked(path):
        before = revision(path)
        if before == database.head:
            return before
        _verify(path)
        _run_alembic(path, database, before)
        return before


def run_environment() -> None:
    """What every `migrations/env.py` does: run the scripts on the connection that `upgrade` opened."""
    from alembic import context

    connection = context.config.attributes["connection"]
    # SQLite does DDL inside transactions; Alembic believes otherwise unless told.
    context.configure(connection=connection, transactional_ddl=True, render_as_batch=True)
    context.run_migrations()


def _run_alembic(path: Path, database: Database, before: str | None) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError
    from sqlalchemy.exc import DatabaseError

    from shared.storage.engine import open_engine, writing

    config = Config()
    config.set_main_option("script_location", str(database.scripts).replace("%", "%%"))
    if before is not None:
        try:
            ScriptDirectory.from_config(config).get_revision(before)
        except CommandError as error:
            raise DatabaseUnusable(
                f"{path}: written by a newer podbus (schema {before}, this version knows up to "
                f"{database.head}); run that version, or move the file away to start anew"
            ) from error
    engine = open_engine(path)
    try:
        with writing(engine) as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, database.head)
    except DatabaseError as error:
        raise DatabaseUnusable(f"{path}: the upgrade to schema {database.head} failed: {error.orig}") from error
    finally:
        engine.dispose()


def _verify(path: Path) -> None:
    """A damaged file is told before anything is changed in it."""
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(path, timeout=5)) as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        raise _unusable(path, error) from error
    if found != "ok":
        raise DatabaseUnusable(f"{path}: damaged ({found}); move it away, podbus goes on from the engine's labels")


def _unusable(path: Path, error: sqlite3.DatabaseError) -> DatabaseUnusable:
    if isinstance(error, sqlite3.OperationalError):
        return DatabaseUnusable(f"{path}: can't be opened: {error}")
    return DatabaseUnusable(f"{path}: not a SQLite database, or damaged ({error}); move it away to start anew")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Held by the kernel: a process that dies lets go of it. The lock file stays, removing it would race."""
    lock = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
