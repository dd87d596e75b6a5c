"""A pod's row while its owner works on it: what is stored, what isn't yet, and the events that go with it."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from msgspec.structs import replace

from services.podworker.core.admission import Demand, NodeLimits
from services.podworker.core.events_text import PodEvent
from services.podworker.core.model import Anchor, PodMemory, Preemption, Rejection
from services.podworker.core.state import rebase
from services.podworker.ports import PodStore, StoredPod, StoreUnavailable
from shared.contracts.events import Event, InvolvedObject
from shared.runtime.clock import Clock

log = logging.getLogger("podbus.podworker.record")

MAX_UNTOLD = 200
"""Events of one pod kept in memory while the disk is full; then the oldest go."""


class Named(Protocol):
    uid: str
    namespace: str
    name: str


@dataclass
class PodRecord:
    memory: PodMemory | None = None
    body: bytes = b""
    cgroup_parent: str = ""
    """Of the body being run; for stats."""
    container_lists: dict[str, str] = field(default_factory=dict)
    """Of the body being run, for events; as events_text gives it."""
    rev: int = 0
    stored: PodMemory | None = None
    """What the row holds: an equal memory isn't written again."""
    stored_body: bytes = b""
    untold: list[Event] = field(default_factory=list)
    clock_offset: float | None = None
    """Wall clock less time since boot, as the memory's instants go by; None = not looked at yet."""

    @classmethod
    def of(cls, stored: StoredPod | None) -> PodRecord:
        if stored is None:
            return cls()
        return cls(
            memory=stored.memory,
            body=stored.body,
            rev=stored.rev,
            stored=stored.memory,
            stored_body=stored.body,
        )


class Recorder:
    """Writes records through the store. A full disk is told once and worked around: memory and labels go on."""

    def __init__(self, store: PodStore, clock: Clock, producer: str) -> None:
        self._store = store
        self._clock = clock
        self._boot_id = clock.boot_id()
        self._producer = f"{producer}-{int(clock.now() * 1000):x}"
        self._numbers = itertools.count(1)
        self.trouble = ""
        """Why the last write failed; "" = it didn't."""

    def save(self, record: PodRecord, memory: PodMemory, events: Iterable[PodEvent]) -> None:
        """Store what differs. Raises nothing for a full disk: the memory goes on without."""
        record.memory = memory
        if record.clock_offset is None:
            record.clock_offset = self._clock_offset()
        record.untold.extend(self.events_of(memory, events, record.container_lists))
        del record.untold[:-MAX_UNTOLD]
        if record.stored == memory and record.stored_body == record.body and not record.untold:
            return
        try:
            record.rev = self._store.save(replace(memory, anchor=self._anchor()), record.body, record.untold)
        except StoreUnavailable as error:
            self._failed(error)
            return
        self._worked()
        record.stored, record.stored_body = memory, record.body
        record.untold.clear()

    def admit(
        self, record: PodRecord, memory: PodMemory, demand: Demand, limits: NodeLimits
    ) -> Rejection | Preemption | None:
        """Raises StoreUnavailable: what can't be stored isn't started."""
        try:
            verdict = self._store.admit(replace(memory, anchor=self._anchor()), record.body, demand, limits)
        except StoreUnavailable as error:
            self._failed(error)
            raise
        self._worked()
        return verdict

    def preempted(self) -> set[str]:
        """UIDs of the pods that waiting ones, of any worker, preempt."""
        try:
            return self._store.preempted()
        except StoreUnavailable as error:
            self._failed(error)
            return set()

    def admitted(self, memory: PodMemory) -> PodMemory:
        """The memory of a pod that was just admitted, with what it was given."""
        stored = self._store.load(memory.uid)
        return replace(memory, admitted=True, devices=stored.memory.devices if stored is not None else {})

    def resize(self, record: PodRecord, memory: PodMemory, demand: Demand, limits: NodeLimits) -> Rejection | None:
        """Raises StoreUnavailable: what can't be stored isn't granted."""
        try:
            rejection = self._store.resize(replace(memory, anchor=self._anchor()), record.body, demand, limits)
        except StoreUnavailable as error:
            self._failed(error)
            raise
        self._worked()
        return rejection

    def forget(self, record: PodRecord, uid: str, *, is_removed: bool = False) -> None:
        """The pod is gone. `is_removed`: its source took it away, so it stays known that this generation has ended.
        Raises StoreUnavailable."""
        try:
            if is_removed and record.memory is not None:
                self._store.bury(uid, record.memory.gen, self._clock.now())
            else:
                self._store.delete(uid)
        except StoreUnavailable as error:
            self._failed(error)
            raise
        record.memory = record.stored = None
        record.body = record.stored_body = b""

    def has_ended(self, uid: str, gen: int) -> bool:
        """Whether this generation of the pod, or a newer one, ended a short while ago: who wants it has an old view of
        the bus. Raises StoreUnavailable."""
        buried = self._store.buried(uid, self._clock.now())
        return buried is not None and gen <= buried

    def load_slots(self, slots: Iterable[int]) -> list[StoredPod]:
        """The rows of slots that were just gained, their instants moved to this boot's and this clock's time."""
        return [self._moved(row) for row in self._store.load_slots(slots)]

    def follow_clock(self, record: PodRecord) -> None:
        """Before each look: a step of the clock since the last one moves the memory's instants with it."""
        now = self._clock_offset()
        step = 0.0 if record.clock_offset is None else now - record.clock_offset
        if record.clock_offset is not None and abs(step) <= CLOCK_STEP_SECONDS:
            return
        record.clock_offset = now
        if record.memory is not None and step:
            log.info("the clock stepped by %.0f s pod=%s/%s", step, record.memory.namespace, record.memory.name)
            record.memory = rebase(record.memory, step)

    def events_of(
        self, pod: Named | PodMemory, events: Iterable[PodEvent], container_lists: Mapping[str, str]
    ) -> list[Event]:
        """Give the events of a pod their ids and times."""
        return [
            Event(
                id=f"{self._producer}-{next(self._numbers)}",
                time=self._clock.now(),
                type=event.type,
                reason=event.reason,
                message=event.message,
                involved=InvolvedObject(
                    kind="Pod",
                    name=pod.name,
                    namespace=pod.namespace,
                    uid=pod.uid,
                    field_path=event.field_path(container_lists),
                ),
                component="podworker",
            )
            for event in events
        ]

    def _anchor(self) -> Anchor:
        return Anchor(wall=self._clock.now(), boot_seconds=self._clock.boot_seconds(), boot_id=self._boot_id)

    def _clock_offset(self) -> float:
        return self._clock.now() - self._clock.boot_seconds()

    def _moved(self, row: StoredPod) -> StoredPod:
        """Written back at once: the owner after this one would move the instants by the time in between, too."""
        memory, rev = self._rebased(row.memory), row.rev
        if memory != replace(row.memory, anchor=None):
            try:
                rev = self._store.save(replace(memory, anchor=self._anchor()), row.body)
            except StoreUnavailable as error:
                self._failed(error)
            else:
                self._worked()
        return StoredPod(memory=memory, body=row.body, rev=rev)

    def _rebased(self, memory: PodMemory) -> PodMemory:
        """After a reboot, or a step of the clock, what remained of a deadline remains."""
        anchor = memory.anchor
        if anchor is None:
            return memory
        bare = replace(memory, anchor=None)
        passed_on_wall = self._clock.now() - anchor.wall
        if anchor.boot_id != self._boot_id:
            return rebase(bare, passed_on_wall)
        step = passed_on_wall - (self._clock.boot_seconds() - anchor.boot_seconds)
        return rebase(bare, step) if abs(step) > CLOCK_STEP_SECONDS else bare

    def _failed(self, error: StoreUnavailable) -> None:
        if not self.trouble:
            log.error("pods.db can't be written: going on from labels and memory error=%s", error)
        self.trouble = str(error)

    def _worked(self) -> None:
        if self.trouble:
            log.info("pods.db can be written again")
        self.trouble = ""


CLOCK_STEP_SECONDS = 5.0
"""A smaller difference between the wall clock and the time since boot is drift, not a step."""
