"""Background tasks that may not end: whichever does, ends the process, and the supervisor starts it again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

log = logging.getLogger("podbus.tasks")

Forever = Callable[[], Awaitable[None]]

CANCEL_AGAIN_SECONDS = 0.5


class TaskEnded(Exception):
    """A task that should run for ever returned or failed."""


class GuardedTasks:
    """Named tasks; `wait` returns the first reason why one ended."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ended: asyncio.Future[asyncio.Task[None]] | None = None

    def start(self, tasks: Mapping[str, Forever]) -> None:
        for name, run in tasks.items():
            task = asyncio.create_task(_call(run), name=name)
            task.add_done_callback(self._note)
            self._tasks[name] = task

    def _note(self, task: asyncio.Task[None]) -> None:
        if not self._first.done():
            self._first.set_result(task)

    @property
    def _first(self) -> asyncio.Future[asyncio.Task[None]]:
        if self._ended is None:
            self._ended = asyncio.get_running_loop().create_future()
        return self._ended

    async def wait(self) -> str:
        """Block until one ends, be it started before or during the wait; why, as a sentence."""
        task = await asyncio.shield(self._first)
        if task.cancelled():
            return f"task {task.get_name()} was cancelled"
        if (error := task.exception()) is not None:
            log.error("task failed task=%s", task.get_name(), exc_info=error)
            return f"task {task.get_name()} failed: {type(error).__name__}: {error}"
        return f"task {task.get_name()} returned"

    async def cancel(self) -> None:
        """End all; their errors are only logged. A task is told again until it has ended: in Python 3.11 a `wait_for`
        whose result is there at that very moment swallows the cancellation, and the task would go on for ever."""
        running = set(self._tasks.values())
        while running:
            for task in running:
                task.cancel()
            _, running = await asyncio.wait(running, timeout=CANCEL_AGAIN_SECONDS)
        for outcome in await asyncio.gather(*self._tasks.values(), return_exceptions=True):
            if isinstance(outcome, Exception):
                log.debug("task ended error=%r", outcome)


async def _call(run: Forever) -> None:
    await run()
