"""pods.db as a PodStore: one row per pod, written by the owner of its slot; events wait in it until
acknowledged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, bindparam, delete, func, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.sql.dml import ReturningInsert

from services.podworker.adapters.tables import DATABASE, events, pods
from services.podworker.core.admission import Demand, NodeLimits, Usage, judge
from services.podworker.core.model import PodMemory, Rejection
from services.podworker.ports import StoredPod, StoreUnavailable
from shared.contracts.events import Event
from shared.kube.ids import slot_of
from shared.storage.engine import open_engine, reading, writing
from shared.storage.migrate import check

MAX_PENDING_EVENTS = 10_000
"""While status is away the outbox keeps this many events; then the oldest go."""

_ROW = (pods.c.memory, pods.c.body, pods.c.rev)
_OWN = ("namespace", "name", "slot", "source", "gen", "hash", "admitted", "ended", "memory", "body")
_WANTED = ("cpu_milli", "memory_bytes", "host_ports")


def _upsert(columns: Sequence[str]) -> ReturningInsert[int]:
    """Built once: building a statement costs more than running it."""
    statement = insert(pods)
    changed = {column: statement.excluded[column] for column in columns}
    return statement.on_conflict_do_update(index_elements=["uid"], set_={**changed, "rev": pods.c.rev + 1}).returning(
        pods.c.rev
    )


_LOAD = select(*_ROW).where(pods.c.uid == bindparam("uid"))
_SAVE, _ADMIT = _upsert(_OWN), _upsert((*_OWN, *_WANTED))

_memory = msgspec.json.Decoder(PodMemory)
_event = msgspec.json.Decoder(Event)
_encode = msgspec.json.Encoder().encode


class SqlitePodStore:
    """PodStore (services.podworker.ports) on one file. Raises DatabaseUnusable when its schema isn't this
    code's."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / DATABASE.file
        check(self._path, DATABASE)
        self._engine = open_engine(self._path)

    def close(self) -> None:
        self._engine.dispose()

    def load(self, uid: str) -> StoredPod | None:
        with self._reading() as connection:
            row = connection.execute(_LOAD, {"uid": uid}).one_or_none()
        return None if row is None else _stored(row)

    def load_slots(self, slots: Iterable[int]) -> list[StoredPod]:
        wanted = sorted(set(slots))
        query = select(*_ROW).where(pods.c.slot.in_(bindparam("slots", expanding=True))).order_by(pods.c.uid)
        with self._reading() as connection:
            return [_stored(row) for row in connection.execute(query, {"slots": wanted})]

    def all_uids(self) -> set[str]:
        with self._reading() as connection:
            return set(connection.execute(select(pods.c.uid)).scalars())

    def save(self, memory: PodMemory, body: bytes, events: Sequence[Event] = ()) -> int:
        """What admission counts (requests, host ports) stays as `admit` stored it."""
        with self._writing() as connection:
            rev = _put(connection, memory, body, {})
            _append(connection, events)
        return rev

    def admit(self, memory: PodMemory, body: bytes, demand: Demand, limits: NodeLimits) -> Rejection | None:
        with self._writing() as connection:
            before = connection.execute(select(pods.c.admitted).where(pods.c.uid == memory.uid)).scalar_one_or_none()
            rejection = None
            if not (memory.admitted or before):
                rejection = judge(demand, limits, _usage(connection, memory.uid), memory.source)
            judged = msgspec.structs.replace(memory, admitted=rejection is None, rejection=rejection)
            wants = {
                "cpu_milli": demand.cpu_milli,
                "memory_bytes": demand.memory_bytes,
                "host_ports": json.dumps(demand.host_ports),
            }
            _put(connection, judged, body, wants)
        return rejection

    def delete(self, uid: str) -> None:
        with self._writing() as connection:
            connection.execute(delete(pods).where(pods.c.uid == uid))

    def pending_events(self, limit: int) -> list[Event]:
        with self._reading() as connection:
            query = select(events.c.body).order_by(events.c.seq).limit(limit)
            return [_event.decode(body) for body in connection.execute(query).scalars()]

    def acknowledge_events(self, ids: Sequence[str]) -> None:
        if not ids:
            return
        query = delete(events).where(events.c.id.in_(bindparam("ids", expanding=True)))
        with self._writing() as connection:
            connection.execute(query, {"ids": list(ids)})

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._translated(), reading(self._engine) as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._translated(), writing(self._engine) as connection:
            yield connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise StoreUnavailable(f"{self._path}: {error.orig}") from error
        except PoolTimeout as error:
            raise StoreUnavailable(f"{self._path}: the connection is in use") from error


def _stored(row: Row[Any, Any, Any]) -> StoredPod:
    return StoredPod(memory=_memory.decode(row.memory), body=row.body, rev=row.rev)


def _put(connection: Connection, memory: PodMemory, body: bytes, wants: dict[str, Any]) -> int:
    """Insert or replace the row; the new rev. `wants` are the columns of what the pod asks for."""
    columns = {
        "uid": memory.uid,
        "rev": 1,
        "namespace": memory.namespace,
        "name": memory.name,
        "slot": slot_of(memory.namespace, memory.name),
        "source": memory.source,
        "gen": memory.gen,
        "hash": memory.hash,
        "admitted": int(memory.admitted),
        "ended": int(_has_ended(memory)),
        "memory": _encode(memory).decode(),
        "body": body,
        **wants,
    }
    return int(connection.execute(_ADMIT if wants else _SAVE, columns).scalar_one())


def _has_ended(memory: PodMemory) -> bool:
    """Nothing of it runs or will run: it takes no room any more (kubelet 1.36: filterOutInactivePods). A
    terminal phase alone isn't enough while the pod is being ended: a pod past its deadline is Failed before
    its containers stop."""
    if memory.terminated_at is not None or memory.rejection is not None:
        return True
    phase = "" if memory.status is None else memory.status.phase
    return memory.termination is None and phase in ("Succeeded", "Failed")


def _usage(connection: Connection, uid: str) -> Usage:
    """What all other admitted, not ended pods take."""
    others = (pods.c.admitted == 1) & (pods.c.ended == 0) & (pods.c.uid != uid)
    sums = select(
        func.count(),
        func.coalesce(func.sum(pods.c.cpu_milli), 0),
        func.coalesce(func.sum(pods.c.memory_bytes), 0),
    ).where(others)
    count, cpu_milli, memory_bytes = connection.execute(sums).one()
    ports = connection.execute(select(pods.c.host_ports).where(others & (pods.c.host_ports != "[]"))).scalars()
    return Usage(
        pods=count,
        cpu_milli=cpu_milli,
        memory_bytes=memory_bytes,
        host_ports=frozenset((str(p), str(ip), int(port)) for row in ports for p, ip, port in json.loads(row)),
    )


def _append(connection: Connection, new: Sequence[Event]) -> None:
    if not new:
        return
    rows = [{"id": event.id, "time": event.time, "body": _encode(event).decode()} for event in new]
    connection.execute(insert(events).on_conflict_do_nothing(index_elements=["id"]), rows)
    newest = select(func.max(events.c.seq)).scalar_subquery()
    connection.execute(delete(events).where(events.c.seq <= newest - MAX_PENDING_EVENTS))
