"""Whichever guarded task ends, ends the process."""

from __future__ import annotations

import asyncio

import pytest

from shared.runtime.tasks import GuardedTasks


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def _fails() -> None:
    raise OSError("no address")


async def _returns() -> None:
    return None


async def test_a_failed_task_is_named_with_its_error() -> None:
    tasks = GuardedTasks()
    tasks.start({"good": _for_ever, "bad": _fails})
    assert await tasks.wait() == "task bad failed: OSError: no address"
    await tasks.cancel()


async def test_a_task_that_is_started_while_somebody_waits_counts_too() -> None:
    tasks = GuardedTasks()
    tasks.start({"heartbeat": _for_ever})
    waiting = asyncio.create_task(tasks.wait())
    await asyncio.sleep(0)
    tasks.start({"late": _returns})
    assert await asyncio.wait_for(waiting, 5) == "task late returned"
    await tasks.cancel()


async def test_a_task_that_ended_before_the_wait_is_told() -> None:
    tasks = GuardedTasks()
    tasks.start({"early": _returns})
    for _ in range(3):
        await asyncio.sleep(0)
    assert await tasks.wait() == "task early returned"
    assert await tasks.wait() == "task early returned"


async def test_a_cancelled_wait_leaves_the_tasks_alone() -> None:
    tasks = GuardedTasks()
    tasks.start({"good": _for_ever})
    waiting = asyncio.create_task(tasks.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    tasks.start({"bad": _fails})
    assert (await tasks.wait()).startswith("task bad failed")
    await tasks.cancel()


async def test_a_cancellation_that_comes_with_a_result_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11's wait_for returns the result then, and nobody learns of the cancellation."""
    monkeypatch.setattr("shared.runtime.tasks.CANCEL_AGAIN_SECONDS", 0.01)
    arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def asks_then_waits() -> None:
        await asyncio.wait_for(arrived, 60)
        await asyncio.Event().wait()

    tasks = GuardedTasks()
    tasks.start({"asks": asks_then_waits})
    await asyncio.sleep(0)
    arrived.set_result(None)
    await asyncio.wait_for(tasks.cancel(), 5)
