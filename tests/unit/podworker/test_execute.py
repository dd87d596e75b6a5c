"""Plans that meet a refusal: what still is done, and what must not be."""

from __future__ import annotations

import asyncio
import time

import pytest

from services.podworker.core.plan import (
    Action,
    CreateSandbox,
    Kill,
    Plan,
    PullImage,
    RemoveContainer,
    RemoveSandbox,
    Signal,
    StartContainer,
    StopSandbox,
    SyncConfig,
)
from services.podworker.handlers.execute import Execution
from services.podworker.handlers.executor import Executor
from services.podworker.handlers.permits import Permits
from services.podworker.ports import ImageInfo, ImagePullFailed, RuntimeRefused
from shared.runtime.clock import SystemClock
from tests.support.builders import a_container, a_memory, a_node, a_pod
from tests.support.eventually import eventually_async
from tests.support.model_runtime import ModelRuntime
from tests.support.no_volumes import no_volumes


class Stubborn(ModelRuntime):
    """Notes what it's asked for; refuses everything about "bad"."""

    def __init__(self) -> None:
        super().__init__(time.time)
        self.asked: list[str] = []

    def _note(self, what: str, object_id: str) -> None:
        self.asked.append(f"{what} {object_id}")
        if object_id == "bad":
            raise RuntimeRefused("Kill", f"{object_id} is busy")

    async def signal_container(self, container_id: str, signal: str) -> None:
        self._note(signal or "signal", container_id)

    async def remove_container(self, container_id: str) -> None:
        self._note("remove", container_id)

    async def stop_pod_sandbox(self, sandbox_id: str) -> None:
        self._note("stop", sandbox_id)

    async def remove_pod_sandbox(self, sandbox_id: str) -> None:
        self._note("remove sandbox", sandbox_id)


async def run(*actions: Action) -> list[str]:
    """What the engine was asked for. The first refusal is raised in the end."""
    engine = Stubborn()
    permits = Permits(1)
    executor = Executor(
        engine, engine, permits, Permits(1), a_node(), SyncConfig(), SystemClock(), volumes=no_volumes()
    )
    pod = a_pod(a_container())
    memory = a_memory(pod)
    execution = Execution(executor, pod, "", memory, lambda memory: None)
    with pytest.raises(RuntimeRefused, match="bad is busy"):
        await execution.run(Plan(actions=actions, memory=memory, wake_at=None, reasons=(), events=()))
    assert permits._held == 0
    return [*engine.asked, *(name for name, _ in engine.calls)]


async def test_a_container_that_cannot_be_ended_does_not_save_the_others() -> None:
    asked = await run(
        Signal(container_id="bad", name="a", signal="", reason=""),
        Signal(container_id="b", name="b", signal="", reason=""),
        Kill(container_id="c", name="c", reason=""),
    )
    assert asked == ["signal bad", "signal b", "SIGKILL c"]


async def test_one_that_cannot_be_removed_keeps_only_its_sandbox() -> None:
    asked = await run(
        RemoveContainer(container_id="bad", name="a", reason=""),
        RemoveContainer(container_id="b", name="b", reason=""),
        RemoveSandbox(sandbox_id="s", reason=""),
    )
    assert asked == ["remove bad", "remove b"]


async def test_nothing_starts_beside_what_could_not_be_stopped() -> None:
    assert await run(StopSandbox(sandbox_id="bad", reason=""), CreateSandbox(attempt=1, reason="")) == ["stop bad"]


class Blind(ModelRuntime):
    """Can't tell which images it has."""

    async def image(self, reference: str) -> ImageInfo | None:
        raise ImagePullFailed("ImageInspectError", "layer store is corrupt")


async def test_an_image_that_can_not_be_looked_at_is_what_its_container_waits_for() -> None:
    engine = Blind(time.time)
    executor = Executor(
        engine, engine, Permits(1), Permits(1), a_node(), SyncConfig(), SystemClock(), volumes=no_volumes()
    )
    pod = a_pod(a_container())
    execution = Execution(executor, pod, "s", a_memory(pod), lambda memory: None)
    actions = (
        PullImage(container="c", reference="busybox:1.36", policy="IfNotPresent", reason=""),
        StartContainer(name="c", attempt=0, reason=""),
    )
    await execution.run(Plan(actions=actions, memory=a_memory(pod), wake_at=None, reasons=(), events=()))
    waiting = execution.outcome.memory.waiting["c"]
    assert (waiting.reason, waiting.message) == ("ImageInspectError", "layer store is corrupt")
    assert [(event.reason, event.message) for event in execution.outcome.events] == [
        ("InspectFailed", "layer store is corrupt"),
        ("Failed", "Error: ImageInspectError"),
    ]
    assert not engine.containers


async def test_signals_come_first_and_wait_for_no_permit() -> None:
    """Starts of other pods may hold them all for long."""
    engine = Stubborn()
    permits = Permits(1)
    await permits.acquire()
    executor = Executor(
        engine, engine, permits, Permits(1), a_node(), SyncConfig(), SystemClock(), volumes=no_volumes()
    )
    memory = a_memory(a_pod())
    execution = Execution(executor, a_pod(), "", memory, lambda memory: None)
    actions = (
        RemoveContainer(container_id="a", name="a", reason=""),
        Signal(container_id="b", name="b", signal="", reason=""),
    )
    running = asyncio.create_task(
        execution.run(Plan(actions=actions, memory=memory, wake_at=None, reasons=(), events=()))
    )
    await eventually_async(lambda: engine.asked == ["signal b"], within=10)
    permits.release()
    await asyncio.wait_for(running, 10)
    assert engine.asked == ["signal b", "remove a"]


@pytest.mark.parametrize(("seconds", "started"), [(5, 0), (3600, 1)])
async def test_nothing_starts_after_a_pull_that_took_until_the_deadline(seconds: int, started: int) -> None:
    engine = ModelRuntime(time.time)
    executor = Executor(
        engine, engine, Permits(1), Permits(1), a_node(), SyncConfig(), SystemClock(), volumes=no_volumes()
    )
    pod = a_pod(a_container(), activeDeadlineSeconds=seconds)
    memory = a_memory(pod, started_at=time.time() - 60)
    execution = Execution(executor, pod, "", memory, lambda memory: None)
    actions = (
        CreateSandbox(attempt=0, reason=""),
        PullImage(container="c", reference="busybox:1.36", policy="IfNotPresent", reason=""),
        StartContainer(name="c", attempt=0, reason=""),
    )
    await execution.run(Plan(actions=actions, memory=memory, wake_at=None, reasons=(), events=()))
    assert len(engine.containers) == started
