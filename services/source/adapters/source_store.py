"""source.db: the last good set per source, so that a start without the source still knows its pods."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Text, bindparam, delete, insert, select

from services.source.adapters.tables import DATABASE, objects, sources
from services.source.core.state import StoredObject
from services.source.ports import Remembered, StoreUnavailable
from shared.storage.connection import SqliteFile, Statement
from shared.storage.migrate import check

_ASKED = bindparam("source", type_=Text)
_SOURCE = Statement(select(sources).where(sources.c.source == _ASKED))
_OBJECTS = Statement(select(objects).where(objects.c.source == _ASKED))
_FORGET_SOURCE = Statement(delete(sources).where(sources.c.source == _ASKED))
_FORGET_OBJECTS = Statement(delete(objects).where(objects.c.source == _ASKED))
_ADD_SOURCE = Statement(insert(sources), ["source", "origin", "gen", "listed_at", "state"])
_ADD_OBJECT = Statement(insert(objects), [column.name for column in objects.columns])


class SqliteSourceStore:
    """SourceStore on one file. Raises DatabaseUnusable when its schema isn't this code's."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / DATABASE.file
        check(self._path, DATABASE)
        self._file = SqliteFile(self._path)

    def close(self) -> None:
        self._file.close()

    def load(self, source: str, origin: str) -> Remembered:
        with self._translated(), self._file.reading() as transaction:
            known = transaction.rows(_SOURCE, source=source)
            if not known:
                return Remembered((), 0, 0.0)
            gen: int = known[0]["gen"]
            if known[0]["origin"] != origin:  # another directory's pods are not this one's last good set
                return Remembered((), gen, 0.0)
            rows = transaction.rows(_OBJECTS, source=source)
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
        with self._translated(), self._file.writing() as transaction:
            transaction.run(_FORGET_OBJECTS, source=source)
            transaction.run_each(
                _ADD_OBJECT,
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
            transaction.run(_FORGET_SOURCE, source=source)
            transaction.run(_ADD_SOURCE, source=source, origin=origin, gen=gen, listed_at=listed_at, state="{}")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreUnavailable(f"{self._path}: {error}") from error
