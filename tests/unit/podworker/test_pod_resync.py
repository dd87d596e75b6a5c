"""A pod is looked at again once a minute; what the list of all pods has just shown isn't asked for again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from cli.db import db_upgrade
from services.podworker.adapters.pod_store import SqlitePodStore
from services.podworker.core.model import RuntimePod
from services.podworker.handlers.pod_task import PodTask
from tests.support.eventually import eventually_async
from tests.support.model_runtime import ModelRuntime
from tests.support.pod_tasks import a_task

SYNC_SECONDS = 0.02


class Counting(ModelRuntime):
    """Counts how often one pod is asked for."""

    def __init__(self) -> None:
        super().__init__(time.time)
        self.looks = 0

    async def pod(self, uid: str) -> RuntimePod | None:
        self.looks += 1
        return await super().pod(uid)


class Looks:
    """Counts the syncs, whether or not they ask the engine."""

    def __init__(self) -> None:
        self.count = 0

    def handled(self, uid: str, gen: int, begin: bool) -> None:
        self.count += begin


@asynccontextmanager
async def a_running_pod(directory: Path, engine: Counting, syncs: Looks) -> AsyncIterator[PodTask]:
    db_upgrade(directory)
    task = a_task(engine, SqlitePodStore(directory))
    task.context = replace(task.context, sync_seconds=SYNC_SECONDS, handled=syncs.handled)
    running = asyncio.create_task(task.run())
    try:
        await eventually_async(lambda: task.runtime is not None and task.runtime.running, within=10)
        yield task
    finally:
        task.stop()
        await asyncio.wait_for(running, 10)


async def test_a_resync_asks_nothing_that_the_last_list_has_shown(tmp_path: Path) -> None:
    engine, syncs = Counting(), Looks()
    async with a_running_pod(tmp_path, engine, syncs) as task:
        task.see(task.runtime)
        before, seen = engine.looks, syncs.count
        await eventually_async(lambda: syncs.count >= seen + 5, within=10)
        assert engine.looks <= before + 1  # one may have been under way


async def test_without_such_a_list_it_looks(tmp_path: Path) -> None:
    engine, syncs = Counting(), Looks()
    async with a_running_pod(tmp_path, engine, syncs):
        before = engine.looks
        await eventually_async(lambda: engine.looks >= before + 5, within=10)


async def test_a_wake_looks_whatever_the_list_has_shown(tmp_path: Path) -> None:
    engine, syncs = Counting(), Looks()
    async with a_running_pod(tmp_path, engine, syncs) as task:
        for _ in range(3):
            task.see(task.runtime)
            await _looks_again(engine, task)


async def _looks_again(engine: Counting, task: PodTask) -> None:
    before = engine.looks
    task.wake()
    await eventually_async(lambda: engine.looks > before, within=10)


async def test_a_list_that_shows_another_state_makes_it_look(tmp_path: Path) -> None:
    engine, syncs = Counting(), Looks()
    async with a_running_pod(tmp_path, engine, syncs) as task:
        task.see(task.runtime)
        before = engine.looks
        task.see(None)
        await eventually_async(lambda: engine.looks > before, within=10)
