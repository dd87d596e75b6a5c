"""Hands the events in pods.db to status until it has acknowledged them."""

from __future__ import annotations

import asyncio
import logging

from services.podworker.ports import PodStore, StoreUnavailable
from shared.bus import Bus, BusUnavailable, RemoteError
from shared.contracts.events import EventBatch
from shared.contracts.registry import EVENTS_HAND_OVER

log = logging.getLogger("podbus.podworker.outbox")

BATCH = 200
LOOK_SECONDS = 1.0
_AWAY_SECONDS = 5.0


class EventOutbox:
    """`run` is a guarded task of every worker: a batch handed over twice is dropped by its ids."""

    def __init__(self, bus: Bus, store: PodStore) -> None:
        self._bus = bus
        self._store = store

    async def run(self) -> None:
        while True:
            try:
                more = await self.hand_over()
            except (BusUnavailable, RemoteError, StoreUnavailable) as error:
                log.debug("events wait error=%s", error)
                await asyncio.sleep(_AWAY_SECONDS)
                continue
            if not more:
                await asyncio.sleep(LOOK_SECONDS)

    async def hand_over(self) -> bool:
        """One batch; True when there may be more."""
        events = self._store.pending_events(BATCH)
        if not events:
            return False
        accepted = await self._bus.request(EVENTS_HAND_OVER, EventBatch(events=events), timeout=5.0)
        self._store.acknowledge_events(accepted.ids)
        return len(events) == BATCH
