"""What the handlers of status need from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from services.status.core.aggregate import Tally
from services.status.core.model import NodeMemory, Observation
from shared.contracts.events import Event, RecordedEvent


class StoreUnavailable(Exception):
    """status.db can't be written or read now (disk full)."""


class EventStore(Protocol):
    """The event history. When a method returns, what it did is committed; when it raises, nothing was done."""

    def record(self, events: Sequence[Event], now: float) -> dict[str, Tally]:
        """Count each event once, however often it is handed over; what was counted now, by key. Raises
        StoreUnavailable."""
        ...

    def query(self, *, namespace: str, name: str, uid: str, limit: int) -> list[RecordedEvent]:
        """The `limit` newest that match, newest last; "" matches everything. Raises StoreUnavailable."""
        ...

    def prune(self, now: float) -> None:
        """Forget what is too old, or too much. Raises StoreUnavailable."""
        ...


class NodeStore(Protocol):
    """What is remembered of the node."""

    def load_node(self) -> NodeMemory | None:
        """None = nothing yet. Raises StoreUnavailable."""
        ...

    def save_node(self, memory: NodeMemory, events: Sequence[Event], now: float) -> dict[str, Tally]:
        """Both or neither: a flip is told once; what was counted now, by key. Raises StoreUnavailable."""
        ...


class NodeProbe(Protocol):
    def observe(self, image_root: str) -> Observation:
        """Look at the machine. `image_root`: the engine's root directory, "" = unknown. Never raises: what can't be
        read is None."""
        ...
