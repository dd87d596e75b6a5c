"""Holds this worker's share of the ownership slots: joins, scans, takes, hands over, leaves.

The kernel's locks decide; this only chooses when to ask for one and when to give one back. A slot is given back after
`on_lost` has returned, never before: until then its pods are acted on here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from services.podworker.core.placement import Membership, founded, observe, wanted_slots

log = logging.getLogger("podbus.podworker.ownership")

SCAN_SECONDS = 0.1
"""A death is seen within this."""
ALONE_SCAN_SECONDS = 0.5
"""While nobody else lives there is no death to see, only a join, and that settles for a second anyway."""
RETRY_SECONDS = 0.2
LEAVE_SECONDS = 8.0


class SlotLocks(Protocol):
    """What Ownership needs from the kernel (adapters/owner_locks.py)."""

    def members(self) -> frozenset[int]: ...
    def join(self) -> int: ...
    def leave(self) -> None: ...
    def acquire(self, slot: int) -> bool: ...
    def release(self, slot: int) -> None: ...


class Ownership:
    """The slots of one worker. All calls from the event loop.

    `on_gained(slots)` is called, once per lot, right after the locks were taken: load the rows, then start the pods'
    work. It must not wait. `on_lost(slot)` is awaited: finish or checkpoint what runs for that slot and start nothing
    new for it; when it returns, the lock goes. Several run side by side. An error in either ends `run`, and so the
    process, and the kernel frees what it held. `announce(slot)` tells the others that a slot is free; it's a hint.
    `monotonic` and `sleep` take and give seconds.
    """

    def __init__(
        self,
        locks: SlotLocks,
        *,
        on_gained: Callable[[frozenset[int]], None],
        on_lost: Callable[[int], Awaitable[None]],
        announce: Callable[[int], Awaitable[None]],
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._locks = locks
        self._on_gained = on_gained
        self._on_lost = on_lost
        self._announce = announce
        self._monotonic = monotonic
        self._sleep = sleep
        self._membership = Membership(settled=frozenset())
        self._index: int | None = None
        self._wanted: frozenset[int] = frozenset()
        self._held: set[int] = set()
        self._gained = 0
        self._losing: dict[int, asyncio.Task[None]] = {}
        self._retry_at = 0.0
        self._leaving = False
        self._failure: BaseException | None = None

    @property
    def index(self) -> int | None:
        """Our member index (0..63); None before `start`. Kept after `leave` for the last messages."""
        return self._index

    @property
    def members(self) -> frozenset[int]:
        """The workers that live, those still settling included, as of the last scan."""
        return self._membership.seen

    @property
    def owned(self) -> frozenset[int]:
        """The slots for which new work may start."""
        return frozenset(self._held - self._losing.keys())

    def owns(self, slot: int) -> bool:
        """May new work start for the slot's pods?"""
        return slot in self._held and slot not in self._losing

    def holds(self, slot: int) -> bool:
        """Is the slot's lock ours, also while a hand-over is under way? The holder of slot 0 has the node's duties."""
        return slot in self._held

    def start(self) -> None:
        """Join and take our first slots. After the first complete list, never before: a worker that knows no pods must
        not keep others from managing them."""
        before = self._locks.members()
        self._index = self._locks.join()
        self._membership = founded(before, self._index, self._monotonic())
        log.info("joined worker=%d others=%s", self._index, _listed(before))
        self._place()

    async def run(self) -> None:
        """Guarded task: scan, take, hand over. Returns only after `leave`."""
        if self._index is None:
            self.start()
        while not self._leaving:
            if self._failure is not None:
                raise self._failure
            alone = self._membership.seen == {self._index} and len(self._held) == len(self._wanted)
            await self._sleep(ALONE_SCAN_SECONDS if alone else SCAN_SECONDS)
            if not self._leaving and self._failure is None:
                self.scan()

    def scan(self) -> None:
        """Look who lives and act on it."""
        now = self._monotonic()
        known = self._membership
        self._membership = observe(known, self._locks.members(), now)
        if self._membership.settled != known.settled:
            log.info("workers changed settled=%s was=%s", _listed(self._membership.settled), _listed(known.settled))
            self._place()
        elif now >= self._retry_at:
            self._take(self._wanted - self._held)

    def released(self, slot: int) -> None:
        """The hint that another worker let go of the slot."""
        if not self._leaving and slot in self._wanted and slot not in self._held:
            try:
                self._take({slot})
            except OSError as error:  # we are in the bus's callback: `run` has to end
                self._failure = self._failure or error

    async def leave(self, within: float = LEAVE_SECONDS) -> frozenset[int]:
        """Leave the membership, then hand all slots over: idle ones at once, busy ones as their work gets to a
        checkpoint. Returns after `within` seconds at the latest, with the slots that are still busy: they stay locked,
        and the process has to end for them to become free."""
        self._leaving = True
        self._wanted = frozenset()
        self._locks.leave()
        for slot in sorted(self._held):
            self._lose(slot)
        if self._losing:
            pending: set[asyncio.Future[None]] = set(self._losing.values())
            timer: asyncio.Future[None] = asyncio.ensure_future(self._sleep(within))
            try:
                while pending and not timer.done():
                    _, rest = await asyncio.wait({*pending, timer}, return_when=asyncio.FIRST_COMPLETED)
                    pending = rest - {timer}
            finally:
                timer.cancel()
        if self._held:
            log.warning("left with busy slots=%s", _listed(self._held))
        if self._failure is not None:
            raise self._failure
        return frozenset(self._held)

    # -- inside -----------------------------------------------------------------------------------------------

    def _place(self) -> None:
        """The membership changed: give back what others should hold, take what we should."""
        assert self._index is not None
        self._wanted = wanted_slots(self._index, self._membership.settled)
        for slot in sorted(self._held - self._wanted):
            self._lose(slot)
        self._take(self._wanted - self._held)

    def _take(self, slots: Iterable[int]) -> None:
        gained = frozenset(slot for slot in sorted(slots) if self._locks.acquire(slot))
        self._retry_at = self._monotonic() + RETRY_SECONDS
        if gained:
            self._held |= gained
            self._gained += len(gained)
            if self._wanted <= self._held:  # one line when all are ours, though they come one by one from other workers
                log.info("gained slots=%d owned=%d", self._gained, len(self._held))
                self._gained = 0
            self._tell_gained(gained)

    def _tell_gained(self, slots: frozenset[int]) -> None:
        try:
            self._on_gained(slots)
        except Exception as error:  # whoever called us, it is `run` that has to end: nobody runs these pods now
            log.exception("taking over failed slots=%s", _listed(slots))
            self._failure = self._failure or error

    def _lose(self, slot: int) -> None:
        if slot not in self._losing:
            self._losing[slot] = asyncio.create_task(self._hand_over(slot), name=f"hand over slot {slot}")

    async def _hand_over(self, slot: int) -> None:
        try:
            await self._on_lost(slot)
        except BaseException as error:  # kept locked: nobody knows what still acts on its pods
            if not isinstance(error, asyncio.CancelledError):
                log.exception("hand-over failed slot=%d", slot)
            self._failure = self._failure or error
            return
        del self._losing[slot]
        if slot in self._wanted:  # the worker that it was for has died meanwhile
            self._tell_gained(frozenset({slot}))
            return
        self._held.discard(slot)
        self._locks.release(slot)
        await self._announce(slot)


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, sorted(numbers))) or "none"
