"""The engine of one SQLite file, set up so that several processes may write it: WAL, and every write
transaction takes its lock when it begins.

Why BEGIN IMMEDIATE: a deferred transaction that reads first and writes later fails with "database is locked"
at once, busy_timeout or not, when another process has written in between.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool

BUSY_TIMEOUT_MS = 5000
"""How long a statement waits for another process's write lock before it fails with "database is locked"."""

_BEGIN = "podbus_begin"


def open_engine(path: Path, *, synchronous: str = "NORMAL") -> Engine:
    """The engine of the database at `path`, which is created empty (0600) when it isn't there.

    One connection per process, opened at the first use: open the engine after a fork, not before. NORMAL
    loses no transaction when a process dies, and at a power cut at most the last ones.
    """
    _create_private(path)
    engine = create_engine(
        "sqlite+pysqlite://",
        creator=lambda: sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=32),
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=0,
        pool_reset_on_return=None,
        query_cache_size=64,
    )

    @event.listens_for(engine, "connect")
    def _configure(connection: sqlite3.Connection, _record: object) -> None:
        # busy_timeout first: switching to WAL needs a lock of its own.
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={synchronous}")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA cache_size=-512")
        connection.execute("PRAGMA journal_size_limit=4194304")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))

    return engine


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A read transaction: one snapshot for all its statements; it never waits for a writer."""
    with engine.connect() as connection, connection.begin():
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A write transaction: alone from its first statement on, committed at the end, rolled back by an
    exception."""
    options: dict[str, Any] = {_BEGIN: "BEGIN IMMEDIATE"}
    with engine.connect().execution_options(**options) as connection, connection.begin():
        yield connection


def _create_private(path: Path) -> None:
    """Rows carry pod specs: only the owner reads them. SQLite gives the -wal and -shm files the same mode."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
