"""source.db: the last good set per source, so that a start without the source still knows its pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import delete, insert, select
from sqlalchemy.exc import DBAPIError

from services.source.adapters.tables import DATABASE, objects, sources
from services.source.core.state import StoredObject
from services.source.ports import Remembered, StoreUnavailable
from shared.storage.engine import open_engine, reading, writing
from shared.storage.migrate import check


class SqliteSourceStore:
    """SourceStore on one file. Raises DatabaseUnusable when its schema isn't this code's."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / DATABASE.file
        check(self._path, DATABASE)
        self._engine = open_engine(self._path)

    def close(self) -> None:
        self._engine.dispose()

    def load(self, source: str, origin: str) -> Remembered:
        with self._translated(), reading(self._engine) as connection:
            known = connection.execute(select(sources).where(sources.c.source == source)).one_or_none()
            if known is None:
                return Remembered((), 0, 0.0)
            if known.origin != origin:  # another directory's pods are not this one's last good set
                return Remembered((), known.gen, 0.0)
            rows = connection.execute(select(objects).where(objects.c.source == source)).all()
        kept = tuple(
            StoredObject(
                path=row.path,
                document=row.document,
                uid=row.uid,
                namespace=row.namespace,
                name=row.name,
                body=row.body,
                hash=row.hash,
                gen=row.gen,
                seen=row.seen,
            )
            for row in rows
        )
        return Remembered(kept, known.gen, known.listed_at)

    def save(self, source: str, origin: str, rows: Sequence[StoredObject], gen: int, listed_at: float) -> None:
        with self._translated(), writing(self._engine) as connection:
            connection.execute(delete(objects).where(objects.c.source == source))
            if rows:
                connection.execute(
                    insert(objects),
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
            connection.execute(delete(sources).where(sources.c.source == source))
            connection.execute(
                insert(sources).values(source=source, origin=origin, gen=gen, listed_at=listed_at, state="{}")
            )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise StoreUnavailable(f"{self._path}: {error.orig}") from error
