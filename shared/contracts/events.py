"""Events: what happened to a pod or the node, for people. The producer keeps each until status has acknowledged it."""

from __future__ import annotations

from typing import Literal

import msgspec


class InvolvedObject(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    kind: str
    """Pod, Node, or Source (a manifest directory)."""
    name: str
    namespace: str = ""
    uid: str = ""
    field_path: str = ""
    """`spec.containers{name}` for a container's events."""


class Event(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    id: str
    """Unique per producer and occurrence: status drops doubles by it."""
    time: float
    """Seconds since the epoch."""
    type: Literal["Normal", "Warning"]
    reason: str
    """A Kubernetes reason: Started, BackOff, Failed..."""
    message: str
    involved: InvolvedObject
    component: str
    """The service that saw it."""


class EventBatch(msgspec.Struct, frozen=True, kw_only=True):
    """status.c.events: hand over; the reply names what is now safely kept."""

    events: list[Event]


class EventsAccepted(msgspec.Struct, frozen=True, kw_only=True):
    ids: list[str]


class EventQuery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """status.q.events: newest last. Empty fields match everything."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    limit: int = 500


class RecordedEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Aggregated as Kubernetes does: the same event again raises `count` and moves `last_seen`."""

    type: str
    reason: str
    message: str
    involved: InvolvedObject
    component: str
    count: int
    first_seen: float
    last_seen: float


class EventList(msgspec.Struct, frozen=True, kw_only=True):
    events: list[RecordedEvent]
