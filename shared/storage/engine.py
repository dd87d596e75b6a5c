"""SQLAlchemy's engine of one SQLite file: for the migrations. What services run while they live goes by
`shared.storage.connection`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool

from shared.storage.connection import connect

_BEGIN = "podbus_begin"


def open_engine(path: Path, *, synchronous: str = "NORMAL") -> Engine:
    """The engine of the database at `path`, which is created empty (0600) when it isn't there.

    One connection per process, opened at the first use: open the engine after a fork, not before.
    """

    def plain() -> sqlite3.Connection:
        connection = connect(path, synchronous=synchronous)
        connection.row_factory = None  # the engine makes its own rows
        return connection

    engine = create_engine(
        "sqlite+pysqlite://",
        creator=plain,
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=0,
        pool_reset_on_return=None,
        query_cache_size=64,
    )

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))

    return engine


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A write transaction: alone from its first statement on, committed at the end, rolled back by an
    exception."""
    options: dict[str, Any] = {_BEGIN: "BEGIN IMMEDIATE"}
    with engine.connect().execution_options(**options) as connection, connection.begin():
        yield connection
