"""How often the history is cut, on a store that only notes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from services.status.core.aggregate import Tally
from services.status.handlers import events as handler
from services.status.handlers.events import Events
from services.status.ports import StoreUnavailable
from shared.bus import RemoteError
from shared.contracts.events import Event, EventBatch, InvolvedObject, RecordedEvent
from shared.runtime.clock import SystemClock
from tests.support.eventually import eventually_async


class NotingStore:
    def __init__(self) -> None:
        self.recorded = 0
        self.pruned = 0
        self.is_full = False

    def record(self, events: Sequence[Event], now: float) -> dict[str, Tally]:
        if self.is_full:
            raise StoreUnavailable("status.db: database or disk is full")
        self.recorded += len(events)
        return {}

    def query(self, *, namespace: str, name: str, uid: str, limit: int) -> list[RecordedEvent]:
        raise StoreUnavailable("status.db: disk I/O error")

    def prune(self, now: float) -> None:
        self.pruned += 1


def a_batch(size: int) -> EventBatch:
    involved = InvolvedObject(kind="Node", name="n1")
    return EventBatch(
        events=[
            Event(id=f"e{n}", time=1.0, type="Normal", reason="R", message="m", involved=involved, component="source")
            for n in range(size)
        ]
    )


async def test_nothing_is_forgotten_right_after_a_start_and_a_storm_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler, "PRUNE_EVENTS", 100)
    store = NotingStore()
    events = Events(store, SystemClock())
    task = asyncio.create_task(events.prune())
    await events.hand_over(a_batch(99))
    await asyncio.sleep(0)
    assert store.pruned == 0
    await events.hand_over(a_batch(1))
    await eventually_async(lambda: store.pruned == 1, within=5)
    await events.hand_over(a_batch(99))
    await asyncio.sleep(0)
    assert store.pruned == 1
    task.cancel()


async def test_what_is_not_committed_is_not_acknowledged() -> None:
    store = NotingStore()
    events = Events(store, SystemClock())
    store.is_full = True
    with pytest.raises(RemoteError) as refused:
        await events.hand_over(a_batch(1))
    assert refused.value.code == "unavailable"
    store.is_full = False
    assert (await events.hand_over(a_batch(2))).ids == ["e0", "e1"]
