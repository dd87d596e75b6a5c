"""status.db: the event history, and what is remembered of the node."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, product
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import bindparam, delete, func, select
from sqlalchemy.dialects.sqlite import insert

from services.status.adapters.tables import DATABASE, events, node, seen_events
from services.status.core.aggregate import Tally, tally
from services.status.core.model import NodeMemory
from services.status.ports import StoreUnavailable
from shared.contracts.events import Event, InvolvedObject, RecordedEvent
from shared.storage.connection import SqliteFile, Statement, Transaction, as_list, listed_in
from shared.storage.migrate import check

HISTORY_SECONDS = 24 * 3600.0
"""An event that wasn't seen for so long is forgotten."""
HISTORY_ROWS = 20_000
"""Different events kept; then those go that weren't seen for the longest time."""
SEEN_ROWS = 100_000
"""Ids kept to recognise doubles; a producer repeats within seconds what wasn't acknowledged."""

_CHUNK = 500
_NODE_ROW = 1

_KNOWN = Statement(select(seen_events.c.id).where(listed_in(seen_events.c.id, "ids")))
_REMEMBER = Statement(insert(seen_events), ["id", "time"])
_add = insert(events)
_COUNT = Statement(
    _add.on_conflict_do_update(
        index_elements=["key"],
        set_={
            "count": events.c.count + _add.excluded.count,
            "first_seen": func.min(events.c.first_seen, _add.excluded.first_seen),
            "last_seen": func.max(events.c.last_seen, _add.excluded.last_seen),
        },
    ),
    [column.name for column in events.columns if not column.primary_key],
)
_keep = insert(node)
_SAVE_NODE = Statement(
    _keep.on_conflict_do_update(index_elements=["id"], set_={"memory": _keep.excluded.memory}), ["id", "memory"]
)
_LOAD_NODE = Statement(select(node.c.memory))

_newest_first = (events.c.last_seen.desc(), events.c.id.desc())
_FILTERS = {
    "namespace": events.c.involved_namespace,
    "name": events.c.involved_name,
    "uid": events.c.involved_uid,
}


def _query(names: frozenset[str]) -> Statement:
    statement = select(events).order_by(*_newest_first).limit(bindparam("most"))
    for name in names:
        statement = statement.where(_FILTERS[name] == bindparam(name))
    return Statement(statement)


_QUERIES = {
    names: _query(names)
    for chosen in product((False, True), repeat=len(_FILTERS))
    for names in [frozenset(name for name, is_in in zip(_FILTERS, chosen, strict=True) if is_in)]
}
"""One for each set of filters."""

_OLD_EVENTS = Statement(delete(events).where(events.c.last_seen < bindparam("oldest")))
_OLD_SEEN = Statement(delete(seen_events).where(seen_events.c.time < bindparam("oldest")))
_SURPLUS_EVENTS = Statement(
    delete(events).where(
        events.c.id.in_(select(events.c.id).order_by(*_newest_first).limit(-1).offset(bindparam("most")))
    )
)
_SURPLUS_SEEN = Statement(
    delete(seen_events).where(
        seen_events.c.id.in_(
            select(seen_events.c.id).order_by(seen_events.c.time.desc()).limit(-1).offset(bindparam("most"))
        )
    )
)

_memory = msgspec.json.Decoder(NodeMemory)
_involved = msgspec.json.Decoder(InvolvedObject)
_encode = msgspec.json.Encoder().encode


class SqliteEventStore:
    """EventStore and NodeStore (services.status.ports) on one file. Raises DatabaseUnusable when its schema isn't
    this code's."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / DATABASE.file
        check(self._path, DATABASE)
        self._file = SqliteFile(self._path)

    def close(self) -> None:
        self._file.close()

    # -- events -----------------------------------------------------------------------------------------------

    def record(self, events: Sequence[Event], now: float) -> None:
        with self._translated(), self._file.writing() as transaction:
            _record(transaction, events, now)

    def query(self, *, namespace: str, name: str, uid: str, limit: int) -> list[RecordedEvent]:
        asked = {key: value for key, value in (("namespace", namespace), ("name", name), ("uid", uid)) if value}
        with self._translated(), self._file.reading() as transaction:
            rows = transaction.rows(_QUERIES[frozenset(asked)], most=limit, **asked)
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
        with self._translated(), self._file.writing() as transaction:
            transaction.run(_OLD_EVENTS, oldest=oldest)
            transaction.run(_OLD_SEEN, oldest=oldest)
            transaction.run(_SURPLUS_EVENTS, most=HISTORY_ROWS)
            transaction.run(_SURPLUS_SEEN, most=SEEN_ROWS)

    # -- the node ---------------------------------------------------------------------------------------------

    def load_node(self) -> NodeMemory | None:
        with self._translated(), self._file.reading() as transaction:
            text = transaction.value(_LOAD_NODE)
        return None if text is None else _memory.decode(text)

    def save_node(self, memory: NodeMemory, events: Sequence[Event], now: float) -> None:
        with self._translated(), self._file.writing() as transaction:
            transaction.run(_SAVE_NODE, id=_NODE_ROW, memory=_encode(memory).decode())
            _record(transaction, events, now)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreUnavailable(f"{self._path}: {error}") from error


def _record(transaction: Transaction, handed: Sequence[Event], now: float) -> None:
    """In pieces, so that no statement gets long."""
    rest = iter(handed)
    while piece := list(islice(rest, _CHUNK)):
        known = {one for (one,) in transaction.rows(_KNOWN, ids=as_list(event.id for event in piece))}
        fresh = {event.id: event for event in piece if event.id not in known}
        if fresh:
            transaction.run_each(_REMEMBER, [{"id": one, "time": now} for one in fresh])
            transaction.run_each(_COUNT, [_row(key, found) for key, found in tally(fresh.values()).items()])


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
