"""Time that passes only when a test says so, for code that gets its clock and its sleep as arguments."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count

_TURNS = 20
"""Turns of the loop after each wake-up: enough for what it sets off to come to rest."""


class VirtualTime:
    """`monotonic` and `sleep` to hand over; `advance` lets the time pass."""

    def __init__(self, start: float = 1000.0) -> None:
        self._now = start
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), wake))
        await wake

    async def advance(self, seconds: float) -> None:
        """Wake every sleeper that is due within `seconds`, in order, each at its own instant."""
        await self.settle()
        until = self._now + seconds
        while self._sleepers and self._sleepers[0][0] <= until + 1e-9:
            self._now, _, wake = heapq.heappop(self._sleepers)
            if not wake.done():
                wake.set_result(None)
            await self.settle()
        self._now = until

    async def settle(self) -> None:
        """Let all that can run without time passing do so."""
        for _ in range(_TURNS):
            await asyncio.sleep(0)
