"""status.db itself: bounds of the history, doubles, the node's memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from services.status.adapters import event_store
from services.status.adapters.database import DATABASE
from services.status.adapters.event_store import HISTORY_SECONDS, SqliteEventStore
from services.status.adapters.tables import seen_events
from services.status.core.model import ConditionMemory, NodeMemory
from shared.contracts.events import RecordedEvent
from shared.storage.engine import open_engine
from shared.storage.migrate import upgrade
from tests.component.status.callers import an_event

NOW = 1_764_547_200.0
MEMORY = NodeMemory(created_at=NOW, boot_id="b", conditions={"Ready": ConditionMemory(status="True", since=NOW + 0.5)})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteEventStore]:
    upgrade(tmp_path / DATABASE.file, DATABASE)
    made = SqliteEventStore(tmp_path)
    yield made
    made.close()


def told(store: SqliteEventStore, limit: int = 100_000) -> list[RecordedEvent]:
    return store.query(namespace="", name="", uid="", limit=limit)


def ids_kept(directory: Path) -> int:
    engine = open_engine(directory / DATABASE.file)
    with engine.connect() as connection:
        count = connection.execute(select(func.count()).select_from(seen_events)).scalar_one()
    engine.dispose()
    return count


def test_a_batch_of_any_size_is_taken(store: SqliteEventStore) -> None:
    store.record([an_event(f"e{n}", message=f"{n % 3}", name=f"p{n % 250}", when=NOW) for n in range(5000)], NOW)
    assert sum(event.count for event in told(store)) == 5000 and len(told(store)) == 750


def test_an_object_with_too_many_events_is_cut_also_from_batch_to_batch(store: SqliteEventStore) -> None:
    for n in range(40):
        store.record([an_event(f"e{n}", when=NOW + n)], NOW + n)
    (event,) = told(store)
    assert (event.count, event.last_seen) == (25, NOW + 24)


def test_an_id_that_comes_twice_takes_no_part_in_the_cut(store: SqliteEventStore) -> None:
    for _ in range(40):
        store.record([an_event("e1", when=NOW)], NOW)
    store.record([an_event("e2", when=NOW)], NOW)
    assert [event.count for event in told(store)] == [2]


def test_combined_events_are_one_row_with_the_last_message(store: SqliteEventStore) -> None:
    for n in range(14):
        store.record([an_event(f"e{n}", message=f"m{n}", when=NOW + n)], NOW + n)
    rows = [(event.message, event.count) for event in told(store)]
    assert rows == [*((f"m{n}", 1) for n in range(9)), ("(combined from similar events): m13", 5)]


def test_what_a_full_disk_refused_takes_no_part_in_the_cut(
    store: SqliteEventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes again."""
    batch = [an_event(f"e{n}", when=NOW) for n in range(25)]
    real = event_store._row
    monkeypatch.setattr(event_store, "_row", lambda *_: {})
    with pytest.raises(Exception, match="key"):
        store.record(batch, NOW)
    monkeypatch.setattr(event_store, "_row", real)
    store.record(batch, NOW)
    assert [event.count for event in told(store)] == [25]


def test_an_event_that_comes_late_moves_no_time_back(store: SqliteEventStore) -> None:
    store.record([an_event("e1", when=NOW)], NOW)
    store.record([an_event("e2", when=NOW - 60)], NOW)
    (event,) = told(store)
    assert (event.count, event.first_seen, event.last_seen) == (2, NOW - 60, NOW)


def test_an_event_that_was_not_seen_for_a_day_is_forgotten(store: SqliteEventStore, tmp_path: Path) -> None:
    store.record([an_event("e1", message="old", when=NOW)], NOW)
    store.record([an_event("e2", message="young", when=NOW + 10)], NOW + 10)
    store.prune(NOW + HISTORY_SECONDS + 5)
    assert [event.message for event in told(store)] == ["young"]
    assert ids_kept(tmp_path) == 1


def test_an_old_event_handed_over_late_is_still_known_when_it_comes_twice(store: SqliteEventStore) -> None:
    """It waited two days at its producer: its id is kept by when it was recorded."""
    late = an_event("e1", message="late", when=NOW - 2 * HISTORY_SECONDS)
    store.record([late, an_event("e2", message="young", when=NOW)], NOW)
    store.prune(NOW + 600)
    store.record([late], NOW + 700)
    assert [event.message for event in told(store)] == ["young"]


def test_the_history_holds_so_many_events_the_ones_last_seen(
    store: SqliteEventStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_store, "HISTORY_ROWS", 10)
    monkeypatch.setattr(event_store, "SEEN_ROWS", 20)
    for n in range(50):
        store.record([an_event(f"e{n}", message=f"{n}", name=f"p{n}", when=NOW + n)], NOW + n)
    store.record([an_event("again", message="0", name="p0", when=NOW + 100)], NOW + 100)
    store.prune(NOW + 100)
    assert [event.message for event in told(store)] == [*(str(n) for n in range(41, 50)), "0"]
    assert ids_kept(tmp_path) == 20


def test_the_nodes_memory_and_its_events_are_kept_together(store: SqliteEventStore, tmp_path: Path) -> None:
    assert store.load_node() is None
    store.save_node(MEMORY, [an_event("e1", message="flip")], NOW)
    store.close()
    again = SqliteEventStore(tmp_path)
    assert again.load_node() == MEMORY
    assert [event.message for event in told(again)] == ["flip"]
    again.save_node(NodeMemory(created_at=NOW), [], NOW)
    assert again.load_node() == NodeMemory(created_at=NOW)
    again.close()


def test_a_limit_takes_the_newest(store: SqliteEventStore) -> None:
    store.record([an_event(f"e{n}", message=f"{n}", when=NOW + n) for n in range(5)], NOW)
    assert [event.message for event in told(store, limit=2)] == ["3", "4"]
