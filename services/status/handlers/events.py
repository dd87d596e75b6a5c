"""The event history at the bus: takes events over, answers questions, keeps it within bounds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

import msgspec

from services.status.core.aggregate import Tally
from services.status.ports import EventStore, StoreUnavailable
from shared.bus import RemoteError
from shared.contracts.events import EventBatch, EventList, EventQuery, EventsAccepted, RecordedEvent
from shared.runtime.clock import Clock

log = logging.getLogger("podbus.status.events")

PRUNE_SECONDS = 600.0
"""Also the time after a start in which nothing is forgotten: after a long downtime the producers first repeat what
they didn't get an acknowledgement for, and those ids must still be known."""
PRUNE_EVENTS = 2_000
"""A storm is cut within so many events."""
REPLY_BYTES = 512 << 10
"""A reply must fit into a message: with longer texts it holds fewer than the limit, the newest."""


class Events:
    """`prune` is a guarded task; the others answer requests."""

    def __init__(self, store: EventStore, clock: Clock) -> None:
        self._store = store
        self._on_counted: Callable[[Mapping[str, Tally]], None] | None = None
        self._clock = clock
        self._since_prune = 0
        self._storm = asyncio.Event()
        self._trouble = ""

    def report_to(self, on_counted: Callable[[Mapping[str, Tally]], None]) -> None:
        """Call it from now on with what has come into the history, by key."""
        self._on_counted = on_counted

    async def hand_over(self, batch: EventBatch) -> EventsAccepted:
        """Acknowledge what is committed. With a full disk nothing is, and the producers keep theirs."""
        try:
            counted = self._store.record(batch.events, self._clock.now())
        except StoreUnavailable as error:
            self._tell(str(error))
            raise RemoteError("unavailable", str(error)) from error
        self._tell("")
        if self._on_counted is not None:
            self._on_counted(counted)
        self._since_prune += len(batch.events)
        if self._since_prune >= PRUNE_EVENTS:
            self._storm.set()
        return EventsAccepted(ids=[event.id for event in batch.events])

    async def query(self, query: EventQuery) -> EventList:
        if query.limit < 1:
            raise RemoteError("invalid", f"limit: {query.limit} is not a positive number")
        try:
            found = self._store.query(namespace=query.namespace, name=query.name, uid=query.uid, limit=query.limit)
        except StoreUnavailable as error:
            raise RemoteError("unavailable", str(error)) from error
        return EventList(events=_newest_within(found, REPLY_BYTES))

    async def prune(self) -> None:
        while True:
            try:
                await asyncio.wait_for(self._storm.wait(), PRUNE_SECONDS)
            except TimeoutError:
                pass
            self._storm.clear()
            self._since_prune = 0
            try:
                self._store.prune(self._clock.now())
            except StoreUnavailable as error:
                self._tell(str(error))

    def _tell(self, trouble: str) -> None:
        if trouble and not self._trouble:
            log.error("events aren't kept error=%s", trouble)
        elif self._trouble and not trouble:
            log.info("events are kept again")
        self._trouble = trouble


def _newest_within(events: list[RecordedEvent], most: int) -> list[RecordedEvent]:
    encode = msgspec.json.Encoder().encode
    size = 0
    for number, event in enumerate(reversed(events)):
        size += len(encode(event)) + 1
        if size > most:
            return events[len(events) - number :]
    return events
