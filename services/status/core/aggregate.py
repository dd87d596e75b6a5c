"""Which events are told, and how they add up: client-go's correlator, as kubelet 1.36 uses it.

In this order: many similar events become one, equal events are counted, and an object that causes too many is cut
short. What is cut isn't lost: it is counted with the next event of its kind that is let through.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from shared.contracts.events import Event

COMBINED_PREFIX = "(combined from similar events): "
SIMILAR_MOST = 10
"""Of so many messages of one object, type and reason, the last is combined, and so is each new one after it."""
SIMILAR_SECONDS = 600.0
"""Without a similar event for so long they are told one by one again."""
BURST = 25.0
"""So many events of one object from one component at once."""
REFILL_SECONDS = 300.0
"""One more every so many seconds."""


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """The same event, some times over."""

    event: Event
    """The last of them."""
    count: int
    first_seen: float
    last_seen: float


class Similar(msgspec.Struct, frozen=True, kw_only=True):
    """Events of one object, type and reason."""

    messages: tuple[str, ...]
    """Fingerprints of the different ones told by themselves, at most SIMILAR_MOST - 1."""
    last_at: float


class Missed(msgspec.Struct, frozen=True, kw_only=True):
    """Events that were cut, of one key."""

    count: int
    first_seen: float


class ObjectMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of one object and component, from event to event."""

    tokens: float = BURST
    filled_at: float = 0.0
    similar: Mapping[str, Similar] = {}
    """By type and reason."""
    missed: Mapping[str, Missed] = {}
    """By key."""


class Correlation(msgspec.Struct, frozen=True, kw_only=True):
    tallies: dict[str, Tally]
    """By key, in the order of the first of each: to be added to what is counted already."""
    memory: dict[str, ObjectMemory]
    """Of the objects that had events: to be kept when the tallies are."""


def correlate(memory: Mapping[str, ObjectMemory], events: Sequence[Event]) -> Correlation:
    """`memory` by `object_key`. The events' own times count as the time of day; one from the past is taken as now."""
    changed: dict[str, ObjectMemory] = {}
    told: dict[str, Tally] = {}
    for event in events:
        key_of_object = object_key(event)
        known = changed.get(key_of_object) or memory.get(key_of_object) or ObjectMemory(filled_at=event.time)
        known, key, shown = _combined(known, event)
        known, is_let_through = _spent(known, event.time)
        missed = known.missed.get(key)
        if is_let_through:
            once = Tally(event=shown, count=1, first_seen=event.time, last_seen=event.time)
            if missed is not None:
                once = replace(once, count=1 + missed.count, first_seen=min(event.time, missed.first_seen))
                known = replace(known, missed={name: one for name, one in known.missed.items() if name != key})
            told[key] = added(told.get(key), once)
        else:
            more = Missed(
                count=1 + (missed.count if missed is not None else 0),
                first_seen=min(event.time, missed.first_seen) if missed is not None else event.time,
            )
            known = replace(known, missed={**known.missed, key: more})
        changed[key_of_object] = known
    return Correlation(tallies=told, memory=changed)


def event_key(event: Event) -> str:
    """What makes an event the same one: object, type, reason, message and component; uid and container (fieldPath)
    belong to the object. Hexadecimal, 32 digits."""
    involved = event.involved
    return _fingerprint(
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


def object_key(event: Event) -> str:
    """Object and component, whichever of the object's containers it is about."""
    involved = event.involved
    return _fingerprint(event.component, involved.kind, involved.namespace, involved.name, involved.uid)


def _combined(known: ObjectMemory, event: Event) -> tuple[ObjectMemory, str, Event]:
    """(the memory, the event's key, the event as it is told)."""
    group = _fingerprint(event.type, event.reason)
    message = _fingerprint(event.message)
    similar = known.similar.get(group)
    if similar is None or event.time - similar.last_at > SIMILAR_SECONDS:
        similar = Similar(messages=(), last_at=event.time)
    similar = replace(similar, last_at=max(similar.last_at, event.time))
    is_new = message not in similar.messages
    is_combined = is_new and len(similar.messages) + 1 >= SIMILAR_MOST
    if is_new and not is_combined:
        similar = replace(similar, messages=(*similar.messages, message))
    known = replace(known, similar={**known.similar, group: similar})
    if not is_combined:
        return known, event_key(event), event
    key = _fingerprint("combined", object_key(event), event.type, event.reason)
    return known, key, replace(event, message=COMBINED_PREFIX + event.message)


def _spent(known: ObjectMemory, now: float) -> tuple[ObjectMemory, bool]:
    """One of the object's tokens, if it has one left."""
    passed = max(0.0, now - known.filled_at)
    tokens = min(BURST, known.tokens + passed / REFILL_SECONDS)
    is_let_through = tokens >= 1.0
    left = tokens - 1.0 if is_let_through else tokens
    return replace(known, tokens=left, filled_at=max(known.filled_at, now)), is_let_through


def added(known: Tally | None, once: Tally) -> Tally:
    """Both as one: the newest words, and all occurrences."""
    if known is None:
        return once
    return Tally(
        event=once.event if once.last_seen >= known.last_seen else known.event,
        count=known.count + once.count,
        first_seen=min(known.first_seen, once.first_seen),
        last_seen=max(known.last_seen, once.last_seen),
    )


def unique(events: Iterable[Event]) -> list[Event]:
    """An id that comes twice counts once."""
    return list({event.id: event for event in events}.values())


def _fingerprint(*parts: str) -> str:
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=16).hexdigest()
