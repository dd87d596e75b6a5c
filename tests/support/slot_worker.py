"""A worker process with the real Ownership and the real locks, and work that only takes time: a journal line when it
begins on a slot, another when it ends. SIGTERM makes it leave.

    python -m tests.support.slot_worker LOCKFILE JOURNAL
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from pathlib import Path

from services.podworker.adapters.owner_locks import OwnerLocks
from services.podworker.handlers.ownership import Ownership

WORK_SECONDS = 0.02
PAUSE_SECONDS = 0.1


class SlotWorker:
    def __init__(self, locks: OwnerLocks, journal: Path) -> None:
        self._journal = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._work: dict[int, asyncio.Task[None]] = {}
        self._ending: set[int] = set()
        self._ask_to_end = asyncio.Event()
        self.ownership = Ownership(
            locks,
            on_gained=self._gained,
            on_lost=self._lost,
            announce=self._announce,
            monotonic=time.monotonic,
        )

    async def run(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._ask_to_end.set)
        owning = asyncio.create_task(self.ownership.run())
        asked = asyncio.create_task(self._ask_to_end.wait())
        await asyncio.wait({owning, asked}, return_when=asyncio.FIRST_COMPLETED)
        if owning.done():
            owning.result()
        assert not await self.ownership.leave()

    def _gained(self, slots: frozenset[int]) -> None:
        for slot in slots:
            self._work[slot] = asyncio.create_task(self._handle(slot))

    async def _lost(self, slot: int) -> None:
        self._ending.add(slot)
        await self._work.pop(slot)
        self._ending.discard(slot)

    async def _announce(self, slot: int) -> None:
        """No bus here: the others find the slot free by themselves."""

    async def _handle(self, slot: int) -> None:
        while slot not in self._ending:
            self._note("+", slot)
            await asyncio.sleep(WORK_SECONDS * random.uniform(0.5, 1.5))
            self._note("-", slot)
            await asyncio.sleep(PAUSE_SECONDS * random.uniform(0.5, 1.5))

    def _note(self, mark: str, slot: int) -> None:
        os.write(self._journal, f"{time.monotonic_ns()} {os.getpid()} {mark} slot-{slot} 1\n".encode())


def main() -> None:
    asyncio.run(SlotWorker(OwnerLocks(Path(sys.argv[1])), Path(sys.argv[2])).run())


if __name__ == "__main__":
    main()
