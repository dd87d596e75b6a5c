"""A pod's task when its slot goes, and when its pod goes in the middle of things."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from cli.db import db_upgrade
from services.podworker.adapters.pod_store import SqlitePodStore
from services.podworker.ports import ImageInfo
from shared.kube.ids import SLOTS
from tests.support.builders import a_container, a_pod
from tests.support.model_runtime import ModelRuntime
from tests.support.pod_tasks import a_task, withdraw


class Slow(ModelRuntime):
    """A start takes until the test lets it go."""

    def __init__(self) -> None:
        super().__init__(time.time)
        self.starting = asyncio.Event()
        self.go_on = asyncio.Event()

    async def start_container(self, container_id: str) -> None:
        self.starting.set()
        await self.go_on.wait()
        await super().start_container(container_id)


class Downloading(ModelRuntime):
    """A pull never ends by itself."""

    def __init__(self) -> None:
        super().__init__(time.time)
        self.local_images.clear()
        self.pulling = asyncio.Event()
        self.was_left = False

    async def pull_image(self, reference: str, *arguments: Any) -> ImageInfo:
        self.pulling.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.was_left = True
        raise AssertionError


def row(store: SqlitePodStore) -> Any:
    (found,) = store.load_slots(range(SLOTS))
    return found.memory


async def test_what_a_look_did_after_the_slot_was_asked_back_is_stored(tmp_path: Path) -> None:
    db_upgrade(tmp_path)
    engine, store = Slow(), SqlitePodStore(tmp_path)
    task = a_task(engine, store)
    running = asyncio.create_task(task.run())
    await asyncio.wait_for(engine.starting.wait(), 10)
    task.stop()
    engine.go_on.set()
    await asyncio.wait_for(running, 10)
    assert row(store).restarts == {"c": 0}
    assert [event.reason for event in store.pending_events(10)] == ["MissingClusterDNS", "Pulled", "Created", "Started"]


async def test_so_is_what_was_done_before_the_look_was_cut(tmp_path: Path) -> None:
    """The container was created; its start is not known."""
    db_upgrade(tmp_path)
    engine, store = Slow(), SqlitePodStore(tmp_path)
    task = a_task(engine, store)
    running = asyncio.create_task(task.run())
    await asyncio.wait_for(engine.starting.wait(), 10)
    running.cancel()
    await asyncio.wait([running], timeout=10)
    assert row(store).restarts == {}
    assert [event.reason for event in store.pending_events(10)] == ["MissingClusterDNS", "Pulled", "Created"]


async def test_a_pod_that_is_to_end_does_not_wait_for_its_pull(tmp_path: Path) -> None:
    """Of two containers neither starts, and the pod is gone."""
    db_upgrade(tmp_path)
    engine, store = Downloading(), SqlitePodStore(tmp_path)
    task = a_task(engine, store, a_pod(a_container("a"), a_container("b", image="other:1")))
    running = asyncio.create_task(task.run())
    await asyncio.wait_for(engine.pulling.wait(), 10)
    withdraw(task)
    await asyncio.wait_for(running, 10)
    assert engine.was_left
    assert not engine.containers
    assert not engine.sandboxes
    assert not store.load_slots(range(SLOTS))
    assert "Pulled" not in [event.reason for event in store.pending_events(10)]


async def test_a_pull_does_not_hold_up_the_slot_that_goes(tmp_path: Path) -> None:
    """The pod stays as it is, for the next owner; nothing of it starts here any more."""
    db_upgrade(tmp_path)
    engine, store = Downloading(), SqlitePodStore(tmp_path)
    task = a_task(engine, store)
    running = asyncio.create_task(task.run())
    await asyncio.wait_for(engine.pulling.wait(), 10)
    task.stop()
    await asyncio.wait_for(running, 10)
    assert engine.was_left
    assert not engine.containers
    assert row(store).restarts == {}


async def test_a_wake_for_another_reason_leaves_the_pull_alone(tmp_path: Path) -> None:
    db_upgrade(tmp_path)
    engine, store = Downloading(), SqlitePodStore(tmp_path)
    task = a_task(engine, store)
    running = asyncio.create_task(task.run())
    await asyncio.wait_for(engine.pulling.wait(), 10)
    task.wake()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not engine.was_left
    running.cancel()
    await asyncio.wait([running], timeout=10)
