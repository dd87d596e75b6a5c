"""What each source has on the node, for the others: no name and no UID is two sources' at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from services.source.core.manifest import ObjectKey
from services.source.core.merge import Held, SourcePlan
from services.source.core.problems import Problem
from services.source.core.state import SourceObject, SourceState


class Neighbours:
    """Sources plan one after the other, under `planning`, and tell here what came of it."""

    def __init__(self) -> None:
        self.planning = asyncio.Lock()
        self._nudges: dict[str, Callable[[], None]] = {}
        self._states: dict[str, SourceState] = {}
        self._abroad: dict[str, Mapping[str, tuple[Problem, ...]]] = {}

    def join(self, source: str, state: SourceState, nudge: Callable[[], None]) -> None:
        """`nudge` is called when what others have changed in a way that may concern this source."""
        self._nudges[source] = nudge
        self._states[source] = state

    def others(self, source: str) -> Held:
        return {name: state.running for name, state in self._states.items() if name != source}

    @property
    def gen(self) -> int:
        """The newest generation: a pod that moves to another source must not seem older."""
        return max((state.gen for state in self._states.values()), default=0)

    @property
    def retired(self) -> Mapping[str, ObjectKey]:
        """UIDs of pods that are gone, of any source."""
        return {uid: key for state in self._states.values() for uid, key in state.retired.items()}

    def problems_at(self, source: str) -> tuple[Problem, ...]:
        """What others' losses have to say at this source's places."""
        return tuple(
            problem for name, abroad in self._abroad.items() if name != source for problem in abroad.get(source, ())
        )

    def planned(self, source: str, plan: SourcePlan) -> None:
        before = self._states[source]
        self._states[source] = plan.state
        told = self._abroad.get(source, {}) != plan.abroad
        self._abroad[source] = plan.abroad
        for name, nudge in self._nudges.items():
            waits = bool(self._abroad.get(name, {}).get(source))
            if name != source and (told or (waits and _freed(before.running, plan.state.running))):
                nudge()


def _freed(before: Mapping[ObjectKey, SourceObject], after: Mapping[ObjectKey, SourceObject]) -> bool:
    uids = {item.uid for item in after.values()}
    return any(key not in after or item.uid not in uids for key, item in before.items())
