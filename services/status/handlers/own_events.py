"""Events of the node itself, which status sees: they go to the history without a way over the bus."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable
from typing import Literal

from services.status.core.model import NodeEvent
from shared.contracts.events import Event, InvolvedObject
from shared.runtime.clock import Clock

MOST = 1000
"""While the disk is full so many wait; then the oldest go."""


class OwnEvents:
    """Waiting events, until they are in the store."""

    def __init__(self, clock: Clock, process: str) -> None:
        self._clock = clock
        self._component = process
        self._producer = f"{process}-{int(clock.now() * 1000):x}"
        self._numbers = itertools.count(1)
        self._waiting: deque[Event] = deque(maxlen=MOST)

    def tell(self, kind: Literal["Normal", "Warning"], reason: str, message: str, involved: InvolvedObject) -> None:
        self._waiting.append(
            Event(
                id=f"{self._producer}-{next(self._numbers)}",
                time=self._clock.now(),
                type=kind,
                reason=reason,
                message=message,
                involved=involved,
                component=self._component,
            )
        )

    def tell_all(self, events: Iterable[NodeEvent], involved: InvolvedObject) -> None:
        for event in events:
            self.tell(event.type, event.reason, event.message, involved)

    @property
    def waiting(self) -> list[Event]:
        """The oldest first."""
        return list(self._waiting)

    def kept(self, events: Iterable[Event]) -> None:
        """These are in the store."""
        done = {event.id for event in events}
        self._waiting = deque((event for event in self._waiting if event.id not in done), maxlen=MOST)
