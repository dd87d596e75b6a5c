"""source.db: the last good set per source, so that a start without the source still knows its pods."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from services.source.adapters.database import DATABASE
from services.source.core.state import StoredObject
from services.source.ports import Remembered, StoreUnavailable
from shared.storage.connection import SqliteFile
from shared.storage.migrate import check
from shared.storage.statements import load_statements

_sql = load_statements(Path(__file__).parent)


class SqliteSourceStore:
    """SourceStore on one file. Raises DatabaseUnusable when its schema isn't this code's."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / DATABASE.file
        check(self._path, DATABASE)
        self.file = SqliteFile(self._path)

    def close(self) -> None:
        self.file.close()

    def load(self, source: str, origin: str) -> Remembered:
        with self._translated(), self.file.reading() as transaction:
            known = transaction.rows(_sql["source"], source=source)
            if not known:
                return Remembered((), 0, 0.0)
            gen: int = known[0]["gen"]
            if known[0]["origin"] != origin:  # another directory's pods are not this one's last good set
                return Remembered((), gen, 0.0)
            rows = transaction.rows(_sql["objects"], source=source)
        kept = tuple(
            StoredObject(
                path=row["path"],
                document=row["document"],
                uid=row["uid"],
                namespace=row["namespace"],
                name=row["name"],
                body=row["body"],
                hash=row["hash"],
                gen=row["gen"],
                seen=row["seen"],
            )
            for row in rows
        )
        return Remembered(kept, gen, known[0]["listed_at"])

    def save(self, source: str, origin: str, rows: Sequence[StoredObject], gen: int, listed_at: float) -> None:
        with self._translated(), self.file.writing() as transaction:
            transaction.run(_sql["forget_objects"], source=source)
            transaction.run_each(
                _sql["add_object"],
                [
                    {
                        "source": source,
                        "path": row.path,
                        "document": row.document,
                        "uid": row.uid,
                        "namespace": row.namespace,
                        "name": row.name,
                        "body": row.body,
                        "hash": row.hash,
                        "gen": row.gen,
                        "seen": row.seen,
                    }
                    for row in rows
                ],
            )
            transaction.run(_sql["forget_source"], source=source)
            transaction.run(_sql["add_source"], source=source, origin=origin, gen=gen, listed_at=listed_at, state="{}")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreUnavailable(f"{self._path}: {error}") from error
