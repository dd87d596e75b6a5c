"""status.db: the event history, and what is remembered of the node."""

from __future__ import annotations

import sqlite3
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from services.status.adapters.database import DATABASE, query_name
from services.status.core.aggregate import Correlation, ObjectMemory, Tally, added, correlate, unique
from services.status.core.model import NodeMemory
from services.status.ports import StoreUnavailable
from shared.contracts.events import Event, InvolvedObject, RecordedEvent
from shared.storage.connection import SqliteFile, Transaction, as_list
from shared.storage.migrate import check
from shared.storage.statements import load_statements

HISTORY_SECONDS = 24 * 3600.0
"""An event that wasn't seen for so long is forgotten."""
HISTORY_ROWS = 20_000
"""Different events kept; then those go that weren't seen for the longest time."""
SEEN_ROWS = 100_000
"""Ids kept to recognise doubles; a producer repeats within seconds what wasn't acknowledged."""

OBJECTS = 4096
"""Objects whose latest events are remembered, to tell when they are too many or too similar; not over a restart."""

_CHUNK = 500
_NODE_ROW = 1

_sql = load_statements(Path(__file__).parent)

_memory = msgspec.json.Decoder(NodeMemory)
_involved = msgspec.json.Decoder(InvolvedObject)
_encode = msgspec.json.Encoder().encode


class SqliteEventStore:
    """EventStore and NodeStore (services.status.ports) on one file. Raises DatabaseUnusable when its schema isn't
    this code's."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / DATABASE.file
        check(self._path, DATABASE)
        self.file = SqliteFile(self._path)
        self._objects: dict[str, ObjectMemory] = {}

    def close(self) -> None:
        self.file.close()

    # -- events -----------------------------------------------------------------------------------------------

    def record(self, events: Sequence[Event], now: float) -> dict[str, Tally]:
        with self._translated(), self.file.writing() as transaction:
            recorded = _record(transaction, events, now, self._objects)
        self._remember(recorded.memory)
        return recorded.tallies

    def query(self, *, namespace: str, name: str, uid: str, limit: int) -> list[RecordedEvent]:
        asked = {key: value for key, value in (("namespace", namespace), ("name", name), ("uid", uid)) if value}
        with self._translated(), self.file.reading() as transaction:
            rows = transaction.rows(_sql[query_name(asked)], most=limit, **asked)
        return [
            RecordedEvent(
                type=row["type"],
                reason=row["reason"],
                message=row["message"],
                involved=_involved.decode(row["involved"]),
                component=row["component"],
                count=row["count"],
                first_seen=row["first_seen"],
                last_seen=row["last_seen"],
            )
            for row in reversed(rows)
        ]

    def prune(self, now: float) -> None:
        oldest = now - HISTORY_SECONDS
        with self._translated(), self.file.writing() as transaction:
            transaction.run(_sql["old_events"], oldest=oldest)
            transaction.run(_sql["old_seen"], oldest=oldest)
            transaction.run(_sql["surplus_events"], most=HISTORY_ROWS)
            transaction.run(_sql["surplus_seen"], most=SEEN_ROWS)

    # -- the node ---------------------------------------------------------------------------------------------

    def load_node(self) -> NodeMemory | None:
        with self._translated(), self.file.reading() as transaction:
            text = transaction.value(_sql["load_node"])
        return None if text is None else _memory.decode(text)

    def save_node(self, memory: NodeMemory, events: Sequence[Event], now: float) -> dict[str, Tally]:
        with self._translated(), self.file.writing() as transaction:
            transaction.run(_sql["save_node"], id=_NODE_ROW, memory=_encode(memory).decode())
            recorded = _record(transaction, events, now, self._objects)
        self._remember(recorded.memory)
        return recorded.tallies

    def _remember(self, changed: Mapping[str, ObjectMemory]) -> None:
        """The ones with news last; those without go first."""
        for key, memory in changed.items():
            self._objects.pop(key, None)
            self._objects[key] = memory
        while len(self._objects) > OBJECTS:
            del self._objects[next(iter(self._objects))]

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreUnavailable(f"{self._path}: {error}") from error


def _record(
    transaction: Transaction, handed: Sequence[Event], now: float, objects: Mapping[str, ObjectMemory]
) -> Correlation:
    """In pieces, so that no statement gets long. What is to be remembered once the transaction is committed."""
    rest = iter(handed)
    changed: dict[str, ObjectMemory] = {}
    counted: dict[str, Tally] = {}
    while piece := list(islice(rest, _CHUNK)):
        known = {one for (one,) in transaction.rows(_sql["known"], ids=as_list(event.id for event in piece))}
        fresh = unique(event for event in piece if event.id not in known)
        if fresh:
            transaction.run_each(_sql["remember"], [{"id": event.id, "time": now} for event in fresh])
            found = correlate(ChainMap(changed, dict(objects)) if changed else objects, fresh)
            changed |= found.memory
            counted = {**counted, **{key: added(counted.get(key), one) for key, one in found.tallies.items()}}
            if found.tallies:
                transaction.run_each(_sql["count"], [_row(key, one) for key, one in found.tallies.items()])
    return Correlation(tallies=counted, memory=changed)


def _row(key: str, found: Tally) -> dict[str, Any]:
    event = found.event
    return {
        "key": key,
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "involved": _encode(event.involved).decode(),
        "involved_namespace": event.involved.namespace,
        "involved_name": event.involved.name,
        "involved_uid": event.involved.uid,
        "component": event.component,
        "count": found.count,
        "first_seen": found.first_seen,
        "last_seen": found.last_seen,
    }
