"""The real pods.db, which looks at what it's given: what must never happen to a pod's row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from services.podworker.adapters.pod_store import SqlitePodStore
from services.podworker.core.admission import NodeLimits
from services.podworker.core.model import PodMemory


class WatchedStore(SqlitePodStore):
    """The real store, which looks at what it's given."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.faults: list[str] = []
        self.demands: dict[str, Any] = {}
        """What each pod was admitted with, or has been granted since."""
        self._phases: dict[str, str] = {}
        self._ends: dict[str, float] = {}

    def save(self, memory: PodMemory, body: bytes, events: Any = ()) -> int:
        self._look(memory)
        return super().save(memory, body, events)

    def admit(self, memory: PodMemory, body: bytes, demand: Any, limits: NodeLimits) -> Any:
        rejection = super().admit(memory, body, demand, limits)
        if rejection is None:
            self.demands[memory.uid] = demand
        return rejection

    def resize(self, memory: PodMemory, body: bytes, demand: Any, limits: NodeLimits) -> Any:
        rejection = super().resize(memory, body, demand, limits)
        if rejection is None:
            self.demands[memory.uid] = demand
        return rejection

    def delete(self, uid: str) -> None:
        super().delete(uid)
        self._forget(uid)

    def bury(self, uid: str, gen: int, now: float) -> None:
        super().bury(uid, gen, now)
        self._forget(uid)

    def _forget(self, uid: str) -> None:
        self._phases.pop(uid, None)
        self._ends.pop(uid, None)

    def _look(self, memory: PodMemory) -> None:
        phase = memory.status.phase if memory.status is not None and memory.rejection is None else ""
        known = self._phases.get(memory.uid)
        if known is not None and phase != known:
            self.faults.append(f"{memory.uid}: {known} became {phase}")
        if phase in ("Succeeded", "Failed"):
            self._phases[memory.uid] = phase
        if memory.termination is not None:
            end = memory.termination.at + memory.termination.grace
            if end > self._ends.get(memory.uid, end) + 1e-6:
                self.faults.append(f"{memory.uid}: the grace grew")
            self._ends[memory.uid] = end
        elif memory.uid in self._ends:
            self.faults.append(f"{memory.uid}: its end was taken back")
