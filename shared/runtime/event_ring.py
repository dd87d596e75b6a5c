"""Events of a service without a database of its own for them: a bounded ring, handed to status until acknowledged."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import OrderedDict
from typing import Literal

from shared.bus import Bus, BusUnavailable, RemoteError
from shared.contracts.events import Event, EventBatch, InvolvedObject
from shared.contracts.registry import EVENTS_HAND_OVER
from shared.runtime.clock import Clock

log = logging.getLogger("podbus.events")

RING = 1000
"""When status is away longer than this many events, the oldest go, and their number is logged."""
_AWAY_SECONDS = 5.0
BATCH = 200


class EventRing:
    """`tell` from the loop; `run` is a guarded task."""

    def __init__(self, bus: Bus, clock: Clock, process: str) -> None:
        self._bus = bus
        self._clock = clock
        self._component = process.partition("-")[0]
        self._producer = f"{process}-{int(clock.now() * 1000):x}"
        self._numbers = itertools.count(1)
        self._kept: OrderedDict[str, Event] = OrderedDict()
        self._work = asyncio.Event()
        self._lost = 0

    def tell(self, kind: Literal["Normal", "Warning"], reason: str, message: str, involved: InvolvedObject) -> None:
        """Keep an event until status has it."""
        event = Event(
            id=f"{self._producer}-{next(self._numbers)}",
            time=self._clock.now(),
            type=kind,
            reason=reason,
            message=message,
            involved=involved,
            component=self._component,
        )
        self._kept[event.id] = event
        if len(self._kept) > RING:
            self._kept.popitem(last=False)
            self._lost += 1
        self._work.set()

    async def run(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            while self._kept:
                batch = list(itertools.islice(self._kept.values(), BATCH))
                try:
                    reply = await self._bus.request(EVENTS_HAND_OVER, EventBatch(events=batch), timeout=5.0)
                except (BusUnavailable, RemoteError) as error:
                    log.debug("events wait error=%s", error)
                    await asyncio.sleep(_AWAY_SECONDS)
                    continue
                for one in reply.ids:
                    self._kept.pop(one, None)
                if self._lost:
                    log.warning("events lost while status was away count=%d", self._lost)
                    self._lost = 0
                if not reply.ids:
                    await asyncio.sleep(_AWAY_SECONDS)
