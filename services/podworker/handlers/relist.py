"""The engine's events wake pods at once; a complete list corrects what events missed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from services.podworker.core.model import RuntimePod
from services.podworker.handlers.measures import Measures
from services.podworker.ports import ContainerRuntime, RuntimeUnavailable
from shared.runtime.clock import Clock

log = logging.getLogger("podbus.podworker.relist")

RELIST_SECONDS = 10.0
_RETRY_SECONDS = 1.0


class EngineLost(Exception):
    """The engine didn't answer for so long that only a new process may reach it."""


class Relist:
    """Two guarded tasks: `follow` reads the events, `run` lists every ten seconds and when events may be lost."""

    def __init__(
        self,
        runtime: ContainerRuntime,
        clock: Clock,
        listed: Callable[[Mapping[str, RuntimePod]], None],
        changed: Callable[[str], None],
        *,
        give_up_seconds: float | None = None,
        measures: Measures | None = None,
    ) -> None:
        """`give_up_seconds`: without an answer for so long, `run` ends with EngineLost. For a worker in a container:
        the socket that is mounted there stays the dead one when a new engine makes another. None = wait for ever."""
        self._runtime = runtime
        self._clock = clock
        self._listed = listed
        self._changed = changed
        self._give_up_seconds = give_up_seconds
        self._measures = Measures() if measures is None else measures
        self._began_at: float | None = None
        """Of the last list, seconds since boot."""
        self._away_since: float | None = None
        self._now_please = asyncio.Event()
        self.first = asyncio.Event()
        """Set after the first complete list."""
        self.listed_at = 0.0
        """Of the last complete list, seconds since the epoch."""
        self.trouble = "the engine was not asked yet"
        """Why the last list failed; "" = it didn't."""

    async def follow(self) -> None:
        async for uid in self._runtime.changes():
            if uid is None:
                self._now_please.set()
            else:
                self._changed(uid)

    async def run(self) -> None:
        while True:
            self._now_please.clear()
            wait = RELIST_SECONDS if await self.once() else _RETRY_SECONDS
            try:
                await asyncio.wait_for(self._now_please.wait(), wait)
            except TimeoutError:
                continue

    async def once(self) -> bool:
        """One complete list; False when the engine doesn't answer (said once)."""
        began_at = self._clock.boot_seconds()
        if self._began_at is not None:
            self._measures.relist_interval.observe(began_at - self._began_at)
        self._began_at = began_at
        try:
            pods = await self._runtime.list_pods()
        except RuntimeUnavailable as error:
            if self.trouble != str(error):
                log.warning("engine doesn't answer error=%s", error)
            self.trouble = str(error)
            self._count_away()
            return False
        if self.trouble:
            log.info("engine answers pods=%d", len(pods))
        self.trouble = ""
        self._away_since = None
        self._measures.relist_seconds.observe(self._clock.boot_seconds() - began_at)
        self.listed_at = self._clock.now()
        self._listed(pods)
        self.first.set()
        return True

    def _count_away(self) -> None:
        now = self._clock.boot_seconds()
        self._away_since = now if self._away_since is None else self._away_since
        if self._give_up_seconds is not None and now - self._away_since > self._give_up_seconds:
            raise EngineLost(f"no answer from the engine for {self._give_up_seconds:.0f} s: {self.trouble}")
