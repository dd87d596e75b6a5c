"""Questions to and hints from podworker."""

from __future__ import annotations

import msgspec


class RunningPodsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """podworker.q.running: what the engine runs for this instance; any worker answers."""


class RunningContainerImage(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    image: str
    """The image's id."""


class RunningPod(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str
    name: str
    uid: str
    containers: list[RunningContainerImage]


class RunningPods(msgspec.Struct, frozen=True, kw_only=True):
    pods: list[RunningPod]


class SlotReleased(msgspec.Struct, frozen=True, kw_only=True):
    """podworker.e.released.<slot>: a hint that the lock is free."""

    worker: int


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """<service>.e.heartbeat: the loop turned. From the event loop, every 2 s."""

    worker: int
    at: float
    slots: int
    """Slots owned."""
    pods: int
    """Pods managed."""
