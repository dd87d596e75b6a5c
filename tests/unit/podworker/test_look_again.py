"""When a pod is looked at again (lifecycle 0): never all pods at once, and after an error sooner."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.db import db_upgrade
from services.podworker.adapters.pod_store import SqlitePodStore
from services.podworker.core.model import RuntimePod
from services.podworker.handlers.pod_task import PodTask
from services.podworker.ports import RuntimeRefused, RuntimeUnavailable, StoreUnavailable
from shared.runtime.clock import SystemClock
from tests.support.model_runtime import ModelRuntime
from tests.support.pod_tasks import a_task

SYNC_SECONDS = 60.0


class Engine(ModelRuntime):
    """Fails as the test says when it's asked for the pod."""

    def __init__(self) -> None:
        super().__init__(SystemClock().now)
        self.error: Exception | None = None

    async def pod(self, uid: str) -> RuntimePod | None:
        if self.error is not None:
            raise self.error
        return await super().pod(uid)


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
async def task(tmp_path: Path, engine: Engine) -> PodTask:
    db_upgrade(tmp_path)
    made = a_task(engine, SqlitePodStore(tmp_path))
    for _ in range(10):
        await made._sync_guarded()
    assert made.runtime is not None and made.runtime.running
    return made


async def waits(task: PodTask, count: int = 40) -> list[float]:
    task.context.rng.seed(1)
    return [await task._sync_guarded() for _ in range(count)]


async def test_a_pod_as_it_should_be_is_looked_at_after_one_to_one_and_a_half_sync_periods(task: PodTask) -> None:
    found = await waits(task)
    assert SYNC_SECONDS <= min(found) < 1.1 * SYNC_SECONDS
    assert 1.4 * SYNC_SECONDS < max(found) <= 1.5 * SYNC_SECONDS


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (RuntimeRefused("FailedSync", "no"), 10.0),
        (StoreUnavailable("full"), 10.0),
        (ZeroDivisionError("a fault of ours"), 10.0),
        (RuntimeUnavailable("away"), 1.0),
    ],
    ids=["the engine refuses", "the disk is full", "a fault", "the engine is away"],
)
async def test_after_an_error_it_is_looked_at_sooner(
    task: PodTask, engine: Engine, error: Exception, seconds: float
) -> None:
    task.wake()
    engine.error = error
    found = await waits(task)
    assert seconds <= min(found) < 1.1 * seconds
    assert 1.4 * seconds < max(found) <= 1.5 * seconds


async def test_an_error_ends_with_its_cause(task: PodTask, engine: Engine) -> None:
    task.wake()
    engine.error = RuntimeRefused("FailedSync", "no")
    await waits(task, 3)
    engine.error = None
    assert min(await waits(task)) >= SYNC_SECONDS


@pytest.mark.parametrize(("due_in", "least", "most"), [(7.0, 6.0, 7.0), (1000.0, 60.0, 90.0), (-5.0, 0.0, 0.0)])
async def test_a_back_off_is_waited_for_and_never_longer_than_a_sync_period(
    task: PodTask, monkeypatch: pytest.MonkeyPatch, due_in: float, least: float, most: float
) -> None:
    async def sync() -> float:
        return SystemClock().now() + due_in

    monkeypatch.setattr(task, "_sync", sync)
    found = await waits(task)
    assert least <= min(found) and max(found) <= most
