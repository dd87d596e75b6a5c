"""One SQLite file as a process uses it: set up so that several processes may write it, its statements ready-made
(shared.storage.statements)."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.storage.statements import Statement, Values

BUSY_TIMEOUT_MS = 5000
"""How long a statement waits for another process's write lock before it fails with "database is locked"."""
TURN_SECONDS = 30.0
"""How long a thread waits for the process's only connection."""


def as_list(values: Iterable[str | int]) -> str:
    """What `listed_in` (shared.storage.compiling) is given."""
    return json.dumps(list(values))


class Transaction:
    """What may be done within one."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: Statement, **values: Any) -> list[sqlite3.Row]:
        """All rows; columns by name or in order."""
        return self._connection.execute(statement.text, statement.with_constants(values)).fetchall()

    def value(self, statement: Statement, values: Values | None = None) -> Any:
        """The first column of the only row; None when there is none."""
        found = self._connection.execute(statement.text, statement.with_constants(values or {})).fetchall()
        return found[0][0] if found else None

    def run(self, statement: Statement, **values: Any) -> None:
        self._connection.execute(statement.text, statement.with_constants(values))

    def run_each(self, statement: Statement, rows: Iterable[Values]) -> None:
        """Once for each row of values."""
        self._connection.executemany(statement.text, [statement.with_constants(row) for row in rows])


@dataclass
class FileUse:
    """Of one connection, since it was made."""

    transactions: int = 0
    failures: int = 0
    seconds: float = 0.0


class SqliteFile:
    """The file's one connection in this process, opened at the first use: make the object before a fork or after it,
    use it after it only. From any thread, one at a time. Raises sqlite3.Error."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.use = FileUse()
        self._turn = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """One snapshot for all statements; it never waits for a writer."""
        with self._transaction("BEGIN") as transaction:
            yield transaction

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Alone from the first statement on; committed at the end, rolled back by an exception.

        Why BEGIN IMMEDIATE: a deferred transaction that reads first and writes later fails with "database is locked" at
        once, busy_timeout or not, when another process has written in between.
        """
        with self._transaction("BEGIN IMMEDIATE") as transaction:
            yield transaction

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Transaction]:
        if not self._turn.acquire(timeout=TURN_SECONDS):
            raise sqlite3.OperationalError("the connection is in use")
        began_at = time.monotonic()
        try:
            if self._connection is None:
                self._connection = connect(self.path)
            connection = self._connection
            connection.execute(begin)
            try:
                yield Transaction(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # a full disk has rolled it back already
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.Error:
            self.use.failures += 1
            raise
        finally:
            self.use.transactions += 1
            self.use.seconds += time.monotonic() - began_at
            self._turn.release()


def connect(path: Path, *, synchronous: str = "NORMAL") -> sqlite3.Connection:
    """A connection to the database at `path`, which is created empty (0600) when it isn't there. No transaction is
    begun by itself. NORMAL loses none when a process dies, and at a power cut at most the last ones."""
    _create_private(path)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=32)
    connection.row_factory = sqlite3.Row
    # busy_timeout first: switching to WAL needs a lock of its own.
    connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA cache_size=-512")
    connection.execute("PRAGMA journal_size_limit=4194304")
    return connection


def _create_private(path: Path) -> None:
    """Rows carry pod specs: only the owner reads them. SQLite gives the -wal and -shm files the same mode.

    A file that is there is not opened: closing it again would take every lock that this process has on it (POSIX), and
    with them another connection's; whoever then closes last elsewhere would delete a log that is still written.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    os.close(descriptor)
