"""A database gets to this code's schema whole or not at all, and one that can't is told with its path."""

from __future__ import annotations

import multiprocessing
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData

from cli.db import databases, db_upgrade
from services.podworker.adapters import tables as podworker_tables
from services.podworker.adapters.database import DATABASE as PODS
from services.podworker.adapters.pod_store import SqlitePodStore
from services.source.adapters import tables as source_tables
from services.status.adapters import tables as status_tables
from shared.storage.engine import open_engine
from shared.storage.migrate import Database, DatabaseUnusable, at_head, check, revision, upgrade

FIXTURES = Path(__file__).parent / "fixtures"
ALL = {"pods.db": podworker_tables, "source.db": source_tables, "status.db": status_tables}


@pytest.mark.parametrize("database", databases(), ids=lambda database: database.file)
def test_the_pinned_head_is_the_newest_migration(database: Database) -> None:
    config = Config()
    config.set_main_option("script_location", str(database.scripts))
    assert ScriptDirectory.from_config(config).get_heads() == [database.head]


@pytest.mark.parametrize(
    ("database", "metadata"),
    [(database, ALL[database.file].metadata) for database in databases()],
    ids=list(ALL),
)
def test_the_migrations_make_exactly_the_tables_of_the_code(
    tmp_path: Path, database: Database, metadata: MetaData
) -> None:
    path = tmp_path / database.file
    upgrade(path, database)
    engine = open_engine(path)
    with engine.connect() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
    engine.dispose()


@pytest.mark.parametrize("fixture", sorted(FIXTURES.glob("*.sql")), ids=lambda path: path.stem)
def test_a_database_of_each_old_schema_keeps_its_rows(tmp_path: Path, fixture: Path) -> None:
    """Fixtures are dumps named <file>-<revision>.sql; they are never edited."""
    name, old = fixture.stem.rsplit("-", 1)
    database = next(one for one in databases() if one.file == f"{name}.db")
    path = tmp_path / database.file
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(fixture.read_text(encoding="utf-8"))
        before = _counts(connection)
    assert revision(path) == old
    upgrade(path, database)
    with closing(sqlite3.connect(path)) as connection:
        assert {table: _counts(connection)[table] for table in before} == before
    assert at_head(path, database)


def test_an_old_pods_database_serves_the_store(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "pods.db")) as connection:
        connection.executescript((FIXTURES / "pods-0001.sql").read_text(encoding="utf-8"))
    db_upgrade(tmp_path)
    store = SqlitePodStore(tmp_path)
    stored = store.load("6f1c2d3e4b5a69788796a5b4c3d2e1f0")
    assert stored is not None
    assert stored.memory.name == "web-n1" and stored.memory.status is not None
    assert stored.memory.status.phase == "Running" and stored.rev == 7
    assert [event.reason for event in store.pending_events(10)] == ["Started"]
    store.close()


def test_upgrading_twice_changes_nothing(tmp_path: Path) -> None:
    heads = [database.head for database in databases()]
    assert [line.rsplit(": ", 1)[1] for line in db_upgrade(tmp_path)] == [f"created at {head}" for head in heads]
    assert [line.rsplit(": ", 1)[1] for line in db_upgrade(tmp_path)] == [f"at {head}" for head in heads]


def test_looking_at_an_upgraded_data_directory_loads_no_alembic(tmp_path: Path) -> None:
    """It would cost every start 35 MiB."""
    db_upgrade(tmp_path)
    code = f"""
        import sys, pathlib
        from cli.db import db_upgrade
        from services.podworker.adapters.pod_store import SqlitePodStore
        db_upgrade(pathlib.Path({str(tmp_path)!r}))
        SqlitePodStore(pathlib.Path({str(tmp_path)!r}))
        sys.exit("alembic" in sys.modules)
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False).returncode == 0


def test_two_upgrades_at_once_are_one(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    running = [context.Process(target=db_upgrade, args=(tmp_path,)) for _ in range(3)]
    for process in running:
        process.start()
    for process in running:
        process.join()
    assert [process.exitcode for process in running] == [0, 0, 0]


TWO_STEPS = {
    "0001_first.py": """
        from alembic import op
        revision, down_revision = "0001", None
        def upgrade():
            op.execute("CREATE TABLE pods (uid TEXT PRIMARY KEY)")
    """,
    "0002_second.py": """
        import os, pathlib
        from alembic import op
        revision, down_revision = "0002", "0001"
        def upgrade():
            op.execute("ALTER TABLE pods ADD COLUMN node TEXT NOT NULL DEFAULT 'n1'")
            op.execute("UPDATE pods SET node = 'n2'")
            if pathlib.Path(__file__).with_name("crash").exists():
                os._exit(9)
            op.execute("CREATE TABLE more (id TEXT PRIMARY KEY)")
    """,
}


@pytest.fixture
def two_steps(tmp_path: Path) -> Database:
    """A database at 0001 with a row; scripts up to 0002 that end the process midway with `crash` there."""
    scripts = tmp_path / "migrations"
    (scripts / "versions").mkdir(parents=True)
    (scripts / "env.py").write_text((PODS.scripts / "env.py").read_text())
    for name, text in TWO_STEPS.items():
        (scripts / "versions" / name).write_text(textwrap.dedent(text))
    upgrade(tmp_path / "x.db", Database(file="x.db", head="0001", scripts=scripts))
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection, connection:
        connection.execute("INSERT INTO pods VALUES ('u1')")
    return Database(file="x.db", head="0002", scripts=scripts)


def test_a_crash_between_two_statements_leaves_the_old_schema(tmp_path: Path, two_steps: Database) -> None:
    """And the next try gets through."""
    path, crash = tmp_path / "x.db", two_steps.scripts / "versions" / "crash"
    crash.touch()
    process = multiprocessing.get_context("spawn").Process(target=upgrade, args=(path, two_steps))
    process.start()
    process.join()
    assert process.exitcode == 9
    assert revision(path) == "0001"
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM pods").fetchall() == [("u1",)]
    crash.unlink()
    assert upgrade(path, two_steps) == "0001"
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM pods").fetchall() == [("u1", "n2")]


def test_a_database_of_a_newer_podbus_is_refused_and_left_alone(tmp_path: Path) -> None:
    db_upgrade(tmp_path)
    path = tmp_path / "pods.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0999'")
    with pytest.raises(DatabaseUnusable) as refused:
        db_upgrade(tmp_path)
    assert f"{path}: written by a newer podbus (schema 0999, this version knows up to {PODS.head})" in str(
        refused.value
    )
    assert revision(path) == "0999"
    with pytest.raises(DatabaseUnusable, match="its schema is 0999"):
        check(path, PODS)


def test_a_file_that_is_no_database_is_refused_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "pods.db"
    path.write_bytes(b"this is no database, whatever its name says. " * 100)
    with pytest.raises(DatabaseUnusable) as refused:
        db_upgrade(tmp_path)
    assert str(refused.value).startswith(f"{path}: not a SQLite database, or damaged")


def test_a_damaged_database_is_refused_before_it_is_changed(tmp_path: Path, two_steps: Database) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany("INSERT INTO pods VALUES (?)", [(f"uid-{n}" * 40,) for n in range(200)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'pods'").fetchone()[0]
    damaged = bytearray(path.read_bytes())
    damaged[(page - 1) * 4096 : page * 4096] = b"\x07" * 4096
    path.write_bytes(damaged)
    with pytest.raises(DatabaseUnusable, match=r"x\.db.*damaged"):
        upgrade(path, two_steps)
    assert path.read_bytes() == damaged


def _counts(connection: sqlite3.Connection) -> dict[str, int]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return {
        name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
        for (name,) in found.fetchall()
        if name != "alembic_version"
    }
