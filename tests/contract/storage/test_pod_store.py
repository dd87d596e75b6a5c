"""pods.db: what a worker stores comes back, whoever reads it, and only whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from services.podworker.adapters import pod_store
from services.podworker.adapters.pod_store import BURIED_SECONDS, SqlitePodStore
from services.podworker.core.model import Rejection, Stop, Termination
from services.podworker.ports import StoreUnavailable
from shared.kube.ids import slot_of
from shared.kube.status import PodStatus
from shared.storage.engine import open_engine, writing
from shared.storage.migrate import DatabaseUnusable
from tests.contract.storage.stores import NOTHING, ROOMY, a_memory, an_event, new_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlitePodStore]:
    opened = new_store(tmp_path)
    yield opened
    opened.close()


def test_a_saved_pod_comes_back_whole(store: SqlitePodStore) -> None:
    """Memory, body and revision survive the way through the file."""
    memory = msgspec.structs.replace(
        a_memory(),
        stops={"c1": Stop(signalled_at=1.5, deadline=31.5, reason="removed")},
        termination=Termination(at=1.5, grace=30, reason="removed"),
        status=PodStatus(phase="Running", qos_class="BestEffort"),
        ips=("172.17.0.2",),
    )
    store.save(memory, b'{"kind":"Pod"}')
    stored = store.load("u1")
    assert stored is not None
    assert (stored.memory, stored.body) == (memory, b'{"kind":"Pod"}')


def test_an_unknown_pod_is_none(store: SqlitePodStore) -> None:
    assert store.load("nobody") is None


def test_each_save_raises_the_revision_by_one(store: SqlitePodStore) -> None:
    assert [store.save(a_memory(), b"") for _ in range(3)] == [1, 2, 3]


def test_the_pods_of_a_slot_are_found_by_namespace_and_name(store: SqlitePodStore) -> None:
    """Two versions of one pod (two UIDs) are in one slot."""
    store.save(a_memory("u1", "web"), b"")
    store.save(a_memory("u2", "web"), b"")
    store.save(a_memory("u3", "other"), b"")
    assert [pod.memory.uid for pod in store.load_slots([slot_of("default", "web")])] == ["u1", "u2"]
    assert {pod.memory.uid for pod in store.load_slots(range(256))} == {"u1", "u2", "u3"}
    assert store.load_slots([]) == []


def test_a_deleted_pod_is_gone_and_its_events_stay(store: SqlitePodStore) -> None:
    store.save(a_memory(), b"", [an_event("e1")])
    store.delete("u1")
    assert store.all_uids() == set()
    assert [event.id for event in store.pending_events(10)] == ["e1"]


def test_a_pod_that_was_taken_away_is_known_to_have_ended_for_a_while(store: SqlitePodStore) -> None:
    store.save(a_memory(), b"")
    store.bury("u1", 7, 1000.0)
    assert store.all_uids() == set()
    assert store.buried("u1", 1000.0 + BURIED_SECONDS - 1) == 7
    assert store.buried("u1", 1000.0 + BURIED_SECONDS) is None
    assert store.buried("u2", 1000.0) is None


def test_the_newest_generation_that_ended_counts(store: SqlitePodStore) -> None:
    for gen in (7, 9, 8):
        store.bury("u1", gen, 1000.0)
    assert store.buried("u1", 1000.0) == 9


def test_what_is_known_of_ended_pods_does_not_grow_for_ever(tmp_path: Path, store: SqlitePodStore) -> None:
    for number in range(5):
        store.bury(f"u{number}", 1, number * BURIED_SECONDS)
    with closing(sqlite3.connect(tmp_path / "pods.db")) as connection:
        assert connection.execute("SELECT uid FROM ended_pods").fetchall() == [("u4",)]


def test_events_wait_in_order_until_they_are_acknowledged(store: SqlitePodStore) -> None:
    events = [an_event(f"e{n}", time=float(-n)) for n in range(4)]
    store.save(a_memory(), b"", events)
    assert store.pending_events(2) == events[:2]
    store.acknowledge_events(["e0", "e2", "unknown"])
    assert [event.id for event in store.pending_events(10)] == ["e1", "e3"]


def test_an_event_stored_twice_waits_once(store: SqlitePodStore) -> None:
    store.save(a_memory(), b"", [an_event("e1")])
    store.save(a_memory(), b"", [an_event("e1")])
    assert len(store.pending_events(10)) == 1


def test_the_oldest_events_go_when_nobody_takes_them(store: SqlitePodStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_store, "MAX_PENDING_EVENTS", 3)
    for n in range(5):
        store.save(a_memory(), b"", [an_event(f"e{n}")])
    assert [event.id for event in store.pending_events(10)] == ["e2", "e3", "e4"]


def test_row_and_events_are_one_transaction(store: SqlitePodStore) -> None:
    """A crash between the two statements leaves neither: here the second one fails."""
    broken = msgspec.structs.replace(an_event("e1"), message=object())
    with pytest.raises(TypeError):
        store.save(a_memory(), b"", [an_event("e0"), broken])
    assert store.load("u1") is None
    assert store.pending_events(10) == []
    assert store.save(a_memory(), b"") == 1


def test_what_another_worker_commits_is_seen_at_once(tmp_path: Path, store: SqlitePodStore) -> None:
    other = SqlitePodStore(tmp_path)
    other.save(a_memory("u9"), b"x")
    assert store.all_uids() == {"u9"}
    other.close()


def test_a_rejected_pod_is_stored_as_rejected(store: SqlitePodStore) -> None:
    limits = msgspec.structs.replace(ROOMY, pods=0)
    rejection = store.admit(msgspec.structs.replace(a_memory(), source="api"), b"", NOTHING, limits)
    assert rejection == Rejection(
        reason="OutOfpods",
        message="Node didn't have enough resource: pods, requested: 1, used: 0, capacity: 0",
    )
    stored = store.load("u1")
    assert stored is not None and stored.memory.rejection == rejection and not stored.memory.admitted


def test_the_database_is_the_owners_alone(tmp_path: Path, store: SqlitePodStore) -> None:
    """Pod bodies hold environment variables: nobody else reads the file or its log."""
    store.save(a_memory(), b"")
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("pods.db*")} == {
        "pods.db": 0o600,
        "pods.db-wal": 0o600,
        "pods.db-shm": 0o600,
        "pods.db.lock": 0o600,
    }


def test_a_database_that_was_not_set_up_is_refused_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnusable, match=r"pods\.db: not set up yet; run `podbus db upgrade`"):
        SqlitePodStore(tmp_path)


def test_a_lock_held_too_long_is_store_unavailable(
    tmp_path: Path, store: SqlitePodStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the store works again once the lock is free."""
    monkeypatch.setattr("shared.storage.connection.BUSY_TIMEOUT_MS", 50)
    impatient = SqlitePodStore(tmp_path)
    blocker = open_engine(tmp_path / "pods.db")
    with writing(blocker), pytest.raises(StoreUnavailable, match=r"pods\.db: database is locked"):
        impatient.save(a_memory(), b"")
    assert impatient.save(a_memory(), b"") == 1
    impatient.close()
    blocker.dispose()
