"""status.db: the event history, and what is remembered of the node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, bindparam, delete, func, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from services.status.adapters.tables import DATABASE, events, node, seen_events
from services.status.core.aggregate import Tally, tally
from services.status.core.model import NodeMemory
from services.status.ports import StoreUnavailable
from shared.contracts.events import Event, InvolvedObject, RecordedEvent
from shared.storage.engine import open_engine, reading, writing
from shared.storage.migrate import check

HISTORY_SECONDS = 24 * 3600.0
"""An event that wasn't seen for so long is forgotten."""
HISTORY_ROWS = 20_000
"""Different events kept; then those go that weren't seen for the longest time."""
SEEN_ROWS = 100_000
"""Ids kept to recognise doubles; a producer repeats within seconds what wasn't acknowledged."""

_CHUNK = 500
_NODE_ROW = 1

# Built once: building a statement costs more than running it.
_KNOWN = select(seen_events.c.id).where(seen_events.c.id.in_(bindparam("ids", expanding=True)))
_REMEMBER = insert(seen_events)
_ADD = insert(events)
_COUNT = _ADD.on_conflict_do_update(
    index_elements=["key"],
    set_={
        "count": events.c.count + _ADD.excluded.count,
        "first_seen": func.min(events.c.first_seen, _ADD.excluded.first_seen),
        "last_seen": func.max(events.c.last_seen, _ADD.excluded.last_seen),
    },
)
_KEEP_NODE = insert(node)
_SAVE_NODE = _KEEP_NODE.on_conflict_do_update(index_elements=["id"], set_={"memory": _KEEP_NODE.excluded.memory})

_memory = msgspec.json.Decoder(NodeMemory)
_involved = msgspec.json.Decoder(InvolvedObject)
_encode = msgspec.json.Encoder().encode


class SqliteEventStore:
    """EventStore and NodeStore (services.status.ports) on one file. Raises DatabaseUnusable when its schema isn't
    this code's."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / DATABASE.file
        check(self._path, DATABASE)
        self._engine = open_engine(self._path)

    def close(self) -> None:
        self._engine.dispose()

    # -- events -----------------------------------------------------------------------------------------------

    def record(self, events: Sequence[Event], now: float) -> None:
        with self._translated(), writing(self._engine) as connection:
            _record(connection, events, now)

    def query(self, *, namespace: str, name: str, uid: str, limit: int) -> list[RecordedEvent]:
        statement = select(events).order_by(events.c.last_seen.desc(), events.c.id.desc()).limit(limit)
        for column, wanted in (
            (events.c.involved_namespace, namespace),
            (events.c.involved_name, name),
            (events.c.involved_uid, uid),
        ):
            if wanted:
                statement = statement.where(column == wanted)
        with self._translated(), reading(self._engine) as connection:
            rows = connection.execute(statement).mappings().all()  # a row's `count` is a method
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
        with self._translated(), writing(self._engine) as connection:
            connection.execute(delete(events).where(events.c.last_seen < oldest))
            connection.execute(delete(seen_events).where(seen_events.c.time < oldest))
            surplus = select(events.c.id).order_by(events.c.last_seen.desc(), events.c.id.desc()).offset(HISTORY_ROWS)
            connection.execute(delete(events).where(events.c.id.in_(surplus)))
            old = select(seen_events.c.id).order_by(seen_events.c.time.desc()).offset(SEEN_ROWS)
            connection.execute(delete(seen_events).where(seen_events.c.id.in_(old)))

    # -- the node ---------------------------------------------------------------------------------------------

    def load_node(self) -> NodeMemory | None:
        with self._translated(), reading(self._engine) as connection:
            text = connection.execute(select(node.c.memory)).scalar_one_or_none()
        return None if text is None else _memory.decode(text)

    def save_node(self, memory: NodeMemory, events: Sequence[Event], now: float) -> None:
        with self._translated(), writing(self._engine) as connection:
            connection.execute(_SAVE_NODE, {"id": _NODE_ROW, "memory": _encode(memory).decode()})
            _record(connection, events, now)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, PoolTimeout) as error:
            raise StoreUnavailable(f"{self._path}: {getattr(error, 'orig', error)}") from error


def _record(connection: Connection, handed: Sequence[Event], now: float) -> None:
    """SQLite binds at most so many values a statement: in pieces."""
    rest = iter(handed)
    while piece := list(islice(rest, _CHUNK)):
        known = set(connection.execute(_KNOWN, {"ids": [event.id for event in piece]}).scalars())
        fresh = {event.id: event for event in piece if event.id not in known}
        if fresh:
            connection.execute(_REMEMBER, [{"id": one, "time": now} for one in fresh])
            connection.execute(_COUNT, [_row(key, found) for key, found in tally(fresh.values()).items()])


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
