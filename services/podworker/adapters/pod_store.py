"""pods.db as a PodStore: one row per pod, written by the owner of its slot; events wait in it until
acknowledged."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from services.podworker.adapters.database import DATABASE
from services.podworker.core.admission import Demand, NodeLimits, Usage, judge, lacking, nobody_to_preempt, summed
from services.podworker.core.devices import free_devices
from services.podworker.core.model import PodMemory, Preemption, Rejection
from services.podworker.core.preemption import Candidate, candidate_of, choose_victims
from services.podworker.ports import StoredPod, StoreUnavailable
from shared.contracts.events import Event
from shared.kube.ids import slot_of
from shared.kube.pod import decode_pod
from shared.storage.connection import SqliteFile, Transaction, as_list
from shared.storage.migrate import check
from shared.storage.statements import load_statements

BURIED_SECONDS = 600.0
"""How long it's known that a pod has ended: a worker's view of the bus is old for seconds, a bus whose store was rolled
back until source has looked at it."""
MAX_PENDING_EVENTS = 10_000
"""While status is away the outbox keeps this many events; then the oldest go."""

_sql = load_statements(Path(__file__).parent)

_memory = msgspec.json.Decoder(PodMemory)
_event = msgspec.json.Decoder(Event)
_encode = msgspec.json.Encoder().encode


class SqlitePodStore:
    """PodStore (services.podworker.ports) on one file. Raises DatabaseUnusable when its schema isn't this
    code's."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / DATABASE.file
        check(self._path, DATABASE)
        self.file = SqliteFile(self._path)

    def close(self) -> None:
        self.file.close()

    def load(self, uid: str) -> StoredPod | None:
        with self._reading() as transaction:
            rows = transaction.rows(_sql["load"], uid=uid)
        return _stored(rows[0]) if rows else None

    def load_slots(self, slots: Iterable[int]) -> list[StoredPod]:
        with self._reading() as transaction:
            return [_stored(row) for row in transaction.rows(_sql["load_slots"], slots=as_list(sorted(set(slots))))]

    def all_uids(self) -> set[str]:
        with self._reading() as transaction:
            return {uid for (uid,) in transaction.rows(_sql["all_uids"])}

    def save(self, memory: PodMemory, body: bytes, events: Sequence[Event] = ()) -> int:
        """What admission counts (requests, host ports) stays as `admit` stored it."""
        with self._writing() as transaction:
            rev = _put(transaction, memory, body, {})
            _append(transaction, events)
        return rev

    def admit(
        self, memory: PodMemory, body: bytes, demand: Demand, limits: NodeLimits
    ) -> Rejection | Preemption | None:
        with self._writing() as transaction:
            before = transaction.value(_sql["admitted"], {"uid": memory.uid})
            rejection = None
            if not (memory.admitted or before):
                usage = _usage(transaction, memory.uid)
                rejection = judge(demand, limits, usage, memory.source)
                if rejection is not None and (lacks := lacking(demand, limits, usage, memory.source)):
                    victims, unmet = choose_victims(lacks, demand.priority, _candidates(transaction, memory.uid))
                    if not unmet:
                        waiting = msgspec.structs.replace(memory, admitted=False, rejection=None, preempts=victims)
                        _put(transaction, waiting, body, _wants(demand))
                        return Preemption(victims=victims)
                    rejection = nobody_to_preempt(unmet)
            judged = msgspec.structs.replace(memory, admitted=rejection is None, rejection=rejection, preempts=())
            if rejection is None and not judged.devices and demand.amounts.keys() & limits.devices.keys():
                taken = [json.loads(text) for (text,) in transaction.rows(_sql["devices"], uid=memory.uid)]
                held = free_devices(demand.amounts, limits.devices, taken)
                judged = msgspec.structs.replace(judged, devices=held)
            _put(transaction, judged, body, _wants(demand))
        return rejection

    def preempted(self) -> set[str]:
        with self._reading() as transaction:
            return {uid for (text,) in transaction.rows(_sql["preempted"]) for uid in json.loads(text)}

    def resize(self, memory: PodMemory, body: bytes, demand: Demand, limits: NodeLimits) -> Rejection | None:
        with self._writing() as transaction:
            # judged as the API's pods are: nothing is preempted for it
            wanted = msgspec.structs.replace(demand, is_critical=False, is_misplaced=False, is_untolerated=False)
            rejection = judge(wanted, limits, _usage(transaction, memory.uid), "api")
            if rejection is None:
                _put(transaction, memory, body, _wants(demand))
        return rejection

    def delete(self, uid: str) -> None:
        with self._writing() as transaction:
            transaction.run(_sql["delete"], uid=uid)

    def bury(self, uid: str, gen: int, now: float) -> None:
        with self._writing() as transaction:
            transaction.run(_sql["delete"], uid=uid)
            transaction.run(_sql["forget_buried"], since=now - BURIED_SECONDS)
            transaction.run(_sql["bury"], uid=uid, gen=gen, ended_at=now)

    def buried(self, uid: str, now: float) -> int | None:
        with self._reading() as transaction:
            rows = transaction.rows(_sql["buried"], uid=uid, since=now - BURIED_SECONDS)
        return int(rows[0]["gen"]) if rows else None

    def pending_events(self, limit: int) -> list[Event]:
        with self._reading() as transaction:
            return [_event.decode(body) for (body,) in transaction.rows(_sql["pending"], most=limit)]

    def acknowledge_events(self, ids: Sequence[str]) -> None:
        if not ids:
            return
        with self._writing() as transaction:
            transaction.run(_sql["acknowledge"], ids=as_list(ids))

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


def _stored(row: sqlite3.Row) -> StoredPod:
    return StoredPod(memory=_memory.decode(row["memory"]), body=row["body"], rev=row["rev"])


def _wants(demand: Demand) -> dict[str, Any]:
    return {
        "cpu_milli": demand.cpu_milli,
        "memory_bytes": demand.memory_bytes,
        "host_ports": json.dumps(demand.host_ports),
        "amounts": json.dumps(demand.amounts),
    }


def _put(transaction: Transaction, memory: PodMemory, body: bytes, wants: dict[str, Any]) -> int:
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
    return int(transaction.value(_sql["admit"] if wants else _sql["save"], columns))


def _has_ended(memory: PodMemory) -> bool:
    """Nothing of it runs or will run: it takes no room any more (kubelet 1.36: filterOutInactivePods). A
    terminal phase alone isn't enough: sidecars, or the containers of a pod past its deadline, may still be
    stopping, and the sandbox holds its host ports."""
    return memory.terminated_at is not None or memory.rejection is not None or memory.is_at_rest


def _usage(transaction: Transaction, uid: str) -> Usage:
    """What all other admitted, not ended pods take."""
    ((count, cpu_milli, memory_bytes),) = transaction.rows(_sql["sums"], uid=uid)
    return Usage(
        pods=count,
        cpu_milli=cpu_milli,
        memory_bytes=memory_bytes,
        amounts=summed(json.loads(text) for (text,) in transaction.rows(_sql["amounts"], uid=uid)),
        host_ports={
            (str(p), str(ip), int(port)): f"{namespace}/{name}"
            for namespace, name, text in transaction.rows(_sql["ports"], uid=uid)
            for p, ip, port in json.loads(text)
        },
    )


def _candidates(transaction: Transaction, uid: str) -> list[Candidate]:
    """All other admitted, not ended pods; what isn't a whole pod (an orphan has no body) isn't preempted."""
    found = []
    for row in transaction.rows(_sql["candidates"], uid=uid):
        try:
            pod = decode_pod(row["body"])
        except msgspec.DecodeError:
            continue
        asks = {"cpu": row["cpu_milli"], "memory": row["memory_bytes"], **json.loads(row["amounts"])}
        found.append(candidate_of(pod, _memory.decode(row["memory"]), asks))
    return found


def _append(transaction: Transaction, new: Sequence[Event]) -> None:
    if not new:
        return
    transaction.run_each(
        _sql["append"], [{"id": event.id, "time": event.time, "body": _encode(event).decode()} for event in new]
    )
    transaction.run(_sql["cut"], most=MAX_PENDING_EVENTS)
