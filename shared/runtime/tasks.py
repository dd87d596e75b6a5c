"""Background tasks that may not end: whichever does, ends the process, and the supervisor starts it again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

log = logging.getLogger("podbus.tasks")

Forever = Callable[[], Awaitable[None]]


class TaskEnded(Exception):
    """A task that should run for ever returned or failed."""


class GuardedTasks:
    """Named tasks; `wait` returns the first reason why one ended."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, tasks: Mapping[str, Forever]) -> None:
        for name, run in tasks.items():
            self._tasks[name] = asyncio.create_task(_call(run), name=name)

    async def wait(self) -> str:
        """Block until one ends; why, as a sentence."""
        if not self._tasks:
            await asyncio.Event().wait()
        done, _ = await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_COMPLETED)
        task = done.pop()
        if task.cancelled():
            return f"task {task.get_name()} was cancelled"
        if (error := task.exception()) is not None:
            log.error("task failed task=%s", task.get_name(), exc_info=error)
            return f"task {task.get_name()} failed: {type(error).__name__}: {error}"
        return f"task {task.get_name()} returned"

    async def cancel(self) -> None:
        """End all; their errors are only logged."""
        for task in self._tasks.values():
            task.cancel()
        for outcome in await asyncio.gather(*self._tasks.values(), return_exceptions=True):
            if isinstance(outcome, Exception):
                log.debug("task ended error=%r", outcome)


async def _call(run: Forever) -> None:
    await run()
