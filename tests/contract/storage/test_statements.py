"""What a service runs is what its statements say: the text beside them is written by `make docs`."""

from __future__ import annotations

import importlib
import sqlite3
from pathlib import Path

import pytest

from cli.db import databases, db_upgrade
from shared.storage.connection import SqliteFile, as_list, connect
from shared.storage.migrate import Database
from shared.storage.statements import Statement, load_statements


def _directory(database: Database) -> Path:
    return database.scripts.parent / "adapters"


@pytest.mark.parametrize("database", databases(), ids=lambda database: database.file)
def test_the_text_is_that_of_the_statements(database: Database) -> None:
    service = database.scripts.parent.name
    written = importlib.import_module(f"services.{service}.adapters.statements").STATEMENTS
    assert load_statements(_directory(database)) == written, "run `make docs`"


@pytest.mark.parametrize("database", databases(), ids=lambda database: database.file)
def test_sqlite_takes_every_statement(tmp_path: Path, database: Database) -> None:
    """Tables and columns are there; which values it wants shows when it gets none."""
    db_upgrade(tmp_path)
    connection = connect(tmp_path / database.file)
    for statement in load_statements(_directory(database)).values():
        parameters = _Anything(statement)
        connection.execute(f"EXPLAIN {statement.text}", parameters).fetchall()
    connection.close()


def test_an_index_serves_the_pods_of_some_slots(tmp_path: Path) -> None:
    """The list is one bound value: SQLite must still look each of its items up."""
    pods = next(database for database in databases() if database.file == "pods.db")
    db_upgrade(tmp_path)
    connection = connect(tmp_path / pods.file)
    text = load_statements(_directory(pods))["load_slots"].text
    plan = connection.execute(f"EXPLAIN QUERY PLAN {text}", {"slots": as_list([1, 2])}).fetchall()
    assert any("USING INDEX pods_slot" in row["detail"] for row in plan)
    connection.close()


def test_an_error_leaves_nothing_of_its_transaction(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "x.db")
    make, add = Statement("CREATE TABLE t (n INTEGER UNIQUE)"), Statement("INSERT INTO t VALUES (:n)")
    count = Statement("SELECT count(*) FROM t")
    with file.writing() as transaction:
        transaction.run(make)
        transaction.run(add, n=1)
    with pytest.raises(sqlite3.IntegrityError), file.writing() as transaction:
        transaction.run_each(add, [{"n": 2}, {"n": 1}])
    with file.reading() as transaction:
        assert transaction.value(count) == 1
    file.close()


def test_a_missing_value_is_an_error_and_not_null(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "x.db")
    with pytest.raises(sqlite3.ProgrammingError, match="value"), file.reading() as transaction:
        transaction.rows(Statement("SELECT :n"))
    file.close()


class _Anything(dict[str, object]):
    """A value for every parameter."""

    def __init__(self, statement: Statement) -> None:
        super().__init__(statement.constants)

    def __missing__(self, key: str) -> object:
        return 1
