"""ImageRecords in pods.db: what was pulled, for whom, and when it was last used."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from services.podworker.adapters.database import DATABASE
from services.podworker.core.image_access import PulledImage
from services.podworker.ports import StoreUnavailable
from shared.storage.connection import SqliteFile, Transaction, as_list
from shared.storage.statements import load_statements

_sql = load_statements(Path(__file__).parent)


class SqliteImageRecords:
    """ImageRecords (services.podworker.ports), beside the pods' own store on the same file."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / DATABASE.file
        self.file = SqliteFile(self._path)

    def close(self) -> None:
        self.file.close()

    def begin(self, reference: str, now: float) -> None:
        with self._writing() as transaction:
            _put(transaction, PulledImage(reference=reference, pulled_at=now, used_at=now))

    def give_up(self, reference: str) -> None:
        with self._writing() as transaction:
            transaction.run(_sql["forget_image"], image_id="", reference=reference)

    def pulled(self, image: PulledImage) -> None:
        with self._writing() as transaction:
            known = [one for one in _rows(transaction, image.image_id) if one.reference == image.reference]
            access = {fingerprint for one in (image, *known) for fingerprint in one.access}
            _put(transaction, image, sorted(access))
            transaction.run(_sql["forget_image"], image_id="", reference=image.reference)

    def of(self, image_id: str) -> list[PulledImage]:
        with self._reading() as transaction:
            return _rows(transaction, image_id)

    def all(self) -> list[PulledImage]:
        with self._reading() as transaction:
            return [_image(row) for row in transaction.rows(_sql["images"])]

    def used(self, image_ids: Iterable[str], now: float) -> None:
        with self._writing() as transaction:
            transaction.run(_sql["use_images"], ids=as_list(sorted(image_ids)), at=now)

    def forget(self, images: Iterable[PulledImage]) -> None:
        with self._writing() as transaction:
            for image in images:
                transaction.run(_sql["forget_image"], image_id=image.image_id, reference=image.reference)

    @contextmanager
    def _reading(self) -> Iterator[Transaction]:
        with self._translated(), self.file.reading() as transaction:
            yield transaction

    @contextmanager
    def _writing(self) -> Iterator[Transaction]:
        with self._translated(), self.file.writing() as transaction:
            yield transaction

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreUnavailable(f"{self._path}: {error}") from error


def _rows(transaction: Transaction, image_id: str) -> list[PulledImage]:
    return [_image(row) for row in transaction.rows(_sql["image"], image_id=image_id)]


def _image(row: sqlite3.Row) -> PulledImage:
    return PulledImage(
        image_id=row["image_id"],
        reference=row["reference"],
        is_ours=bool(row["is_ours"]),
        pulled_at=row["pulled_at"],
        used_at=row["used_at"],
        access=tuple(json.loads(row["access"])),
    )


def _put(transaction: Transaction, image: PulledImage, access: Iterable[str] = ()) -> None:
    transaction.run(
        _sql["put_image"],
        image_id=image.image_id,
        reference=image.reference,
        is_ours=int(image.is_ours),
        pulled_at=image.pulled_at,
        used_at=image.used_at,
        access=json.dumps(list(access)),
    )
