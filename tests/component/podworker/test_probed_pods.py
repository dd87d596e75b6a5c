"""Probed pods at their task: what is stored and when, and what the next owner goes on from."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cli.db import db_upgrade
from services.podworker.adapters.pod_store import SqlitePodStore
from services.podworker.core.model import PodMemory, Verdicts
from services.podworker.handlers.pod_task import PodTask
from services.podworker.ports import StoredPod
from shared.contracts.events import Event
from shared.kube.pod import Pod
from tests.support.builders import UID, a_container, a_pod
from tests.support.eventually import eventually_async
from tests.support.model_runtime import ModelRuntime
from tests.support.pod_tasks import a_task, withdraw

OK = {"exec": {"command": ["sh", "-c", "exit 0"]}, "periodSeconds": 1}
BAD = {"exec": {"command": ["sh", "-c", "exit 1"]}, "periodSeconds": 1}


class CountingStore(SqlitePodStore):
    """Counts what is written."""

    writes = 0

    def save(self, memory: PodMemory, body: bytes, events: Sequence[Event] = ()) -> int:
        self.writes += 1
        return super().save(memory, body, events)


@pytest.fixture
def engine() -> ModelRuntime:
    return ModelRuntime(time.time)


@pytest.fixture
def store(tmp_path: Path) -> CountingStore:
    db_upgrade(tmp_path)
    return CountingStore(tmp_path)


@asynccontextmanager
async def running(task: PodTask) -> AsyncIterator[PodTask]:
    runs = asyncio.create_task(task.run())
    try:
        yield task
    finally:
        task.stop()
        await asyncio.wait_for(runs, 20)


def row(store: SqlitePodStore) -> StoredPod:
    stored = store.load(UID)
    assert stored is not None
    return stored


def is_stored_ready(store: SqlitePodStore) -> bool:
    status = row(store).memory.status
    return status is not None and all(c.ready for c in status.container_statuses)


def times_asked(engine: ModelRuntime) -> int:
    return len(engine.commands.started)


async def until_ready(engine: ModelRuntime, store: SqlitePodStore, pod: Pod) -> StoredPod:
    """Run the pod until it's stored as ready; its row then."""
    async with running(a_task(engine, store, pod)):
        await eventually_async(lambda: is_stored_ready(store), within=20)
    return row(store)


async def test_a_pod_whose_probes_find_nothing_new_writes_nothing(engine: ModelRuntime, store: CountingStore) -> None:
    pod = a_pod(a_container(readinessProbe=OK, livenessProbe=OK))
    async with running(a_task(engine, store, pod)):
        await eventually_async(lambda: is_stored_ready(store), within=20)
        (id_,) = engine.containers
        assert row(store).memory.verdicts == {id_: Verdicts(readiness="success")}
        writes, asked = store.writes, times_asked(engine)
        await eventually_async(lambda: times_asked(engine) >= asked + 4, within=20)
        assert store.writes == writes


async def test_the_next_owner_neither_asks_for_startup_again_nor_lets_ready_flap(
    engine: ModelRuntime, store: CountingStore
) -> None:
    """Case 15."""
    startup = {"exec": {"command": ["sh", "-c", "echo up"]}, "periodSeconds": 1}
    pod = a_pod(a_container(startupProbe=startup, readinessProbe=OK))
    before = await until_ready(engine, store, pod)
    engine.commands.started.clear()
    async with running(a_task(engine, store, pod, stored=before)) as task:
        await eventually_async(lambda: times_asked(engine) >= 2, within=20)
        assert ("sh", "-c", "echo up") not in engine.commands.started
        assert task.record.memory is not None and task.record.memory.status == before.memory.status
    assert row(store).memory.status == before.memory.status


async def test_a_failure_below_its_threshold_is_told_at_once(engine: ModelRuntime, store: CountingStore) -> None:
    pod = a_pod(a_container(livenessProbe={**BAD, "failureThreshold": 100}))
    async with running(a_task(engine, store, pod)):
        await eventually_async(
            lambda: [e.message for e in store.pending_events(50) if e.reason == "Unhealthy"], within=20
        )
    (event, *_) = [e for e in store.pending_events(50) if e.reason == "Unhealthy"]
    assert (event.message, event.involved.field_path) == ("Liveness probe failed: ", "spec.containers{c}")


async def test_a_pod_that_is_told_to_end_stays_asked_for_readiness_only(
    engine: ModelRuntime, store: CountingStore
) -> None:
    """The model's container ignores its stop signal, so that there is a grace period to look at."""
    live = {"exec": {"command": ["sh", "-c", "echo live"]}, "periodSeconds": 1}
    pod = a_pod(
        a_container(readinessProbe=OK, livenessProbe=live),
        annotations={"model/ignore-term": "true"},
        terminationGracePeriodSeconds=60,
    )
    async with running(a_task(engine, store, pod)) as task:
        await eventually_async(lambda: is_stored_ready(store), within=20)
        withdraw(task)
        await eventually_async(lambda: row(store).memory.stops, within=20)
        engine.commands.started.clear()
        await eventually_async(lambda: times_asked(engine) >= 3, within=20)
        assert ("sh", "-c", "echo live") not in engine.commands.started
