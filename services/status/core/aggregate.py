"""When two events are the same one, and how they add up."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from shared.contracts.events import Event


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """The same event, some times over."""

    event: Event
    """One of them."""
    count: int
    first_seen: float
    last_seen: float


def event_key(event: Event) -> str:
    """kubelet 1.36 (client-go's correlator): object, type, reason, message and component make the event; uid and
    container (fieldPath) belong to the object. Hexadecimal, 32 digits."""
    involved = event.involved
    parts = (
        involved.kind,
        involved.namespace,
        involved.name,
        involved.uid,
        involved.field_path,
        event.type,
        event.reason,
        event.message,
        event.component,
    )
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=16).hexdigest()


def tally(events: Iterable[Event]) -> dict[str, Tally]:
    """By key, in the order of the first of each. An id that comes twice counts once."""
    ids: set[str] = set()
    found: dict[str, Tally] = {}
    for event in events:
        if event.id in ids:
            continue
        ids.add(event.id)
        key = event_key(event)
        known = found.get(key)
        found[key] = Tally(
            event=event,
            count=1 if known is None else known.count + 1,
            first_seen=event.time if known is None else min(known.first_seen, event.time),
            last_seen=event.time if known is None else max(known.last_seen, event.time),
        )
    return found
