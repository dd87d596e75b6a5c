"""Two connections of one process to one file, beside other processes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

from shared.storage.connection import connect

ANOTHER_PROCESS = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1], isolation_level=None)
other.execute("INSERT INTO numbers VALUES (2)")
other.close()
"""


def test_a_second_connection_takes_no_locks_from_the_first(tmp_path: Path) -> None:
    """Without its locks another process that closes would take itself for the last one, and delete the log (-wal) under
    this one: in the end the database is malformed."""
    path = tmp_path / "x.db"
    first = connect(path)
    first.execute("CREATE TABLE numbers (n INTEGER)")
    second = connect(path)
    subprocess.run([sys.executable, "-c", ANOTHER_PROCESS, str(path)], check=True)
    assert (tmp_path / "x.db-wal").exists()
    first.execute("INSERT INTO numbers VALUES (1)")
    assert second.execute("SELECT sum(n) FROM numbers").fetchone()[0] == 3
    first.close()
    second.close()
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_new_file_is_the_owners_alone(tmp_path: Path) -> None:
    connect(tmp_path / "x.db").close()
    assert (tmp_path / "x.db").stat().st_mode & 0o777 == 0o600
