"""What the collector holds of one cgroup and of one pod between passes."""

from __future__ import annotations

from services.stats.core.details import oom_kills
from services.stats.core.model import (
    CgroupSample,
    ContainerTarget,
    NetworkSample,
    PodTarget,
    Texts,
)
from services.stats.core.rates import NANOSECONDS
from services.stats.core.window import RATE_SECONDS
from services.stats.ports import Cgroup


class Tracked:
    """A cgroup that is watched: its open files while it exists, and its history."""

    __slots__ = ("cgroup", "created_at", "oom_kills", "path", "texts", "window")

    def __init__(self) -> None:
        self.cgroup: Cgroup | None = None
        self.created_at: float | None = None
        self.path = ""
        self.window: tuple[CgroupSample, ...] = ()
        self.texts: Texts | None = None
        self.oom_kills = 0

    def take(self, texts: Texts | None) -> None:
        self.texts = texts
        self.oom_kills = max(self.oom_kills, oom_kills(texts))

    def drop(self) -> None:
        if self.cgroup is not None:
            self.cgroup.close()
        self.cgroup = None
        self.window = ()
        self.texts = None

    def second_due(self) -> float:
        """When (boot seconds) a cgroup that was read once may be read again for a rate. Rounded up to a
        microsecond, lest the interval come out a nanosecond short."""
        return self.window[0].monotonic_ns / NANOSECONDS + RATE_SECONDS + 1e-6


class TrackedPod:
    """A pod that is watched."""

    __slots__ = ("containers", "killed", "network", "sandbox", "sandbox_runs", "target", "tracked")

    def __init__(self, target: PodTarget) -> None:
        self.target = target
        self.tracked = Tracked()
        self.sandbox = Tracked()
        self.network: NetworkSample | None = None
        self.sandbox_runs = False
        self.containers: dict[ContainerTarget, Tracked] = {}
        self.killed: dict[str, dict[str, int]] = {}
        """Kills for memory by container's name and id: a cgroup's counter goes with it, and the target's word of an
        instance when the status forgets that."""

    def note_end(self, container: ContainerTarget, tracked: Tracked) -> None:
        if tracked.oom_kills:
            ended = self.killed.setdefault(container.name, {})
            ended[container.id] = max(ended.get(container.id, 0), tracked.oom_kills)

    def note_kills(self) -> None:
        """The kernel's log and the status know of kills that no reading came in time for."""
        for name, id_, kills in self.target.oom_kills:
            known = self.killed.setdefault(name, {})
            known[id_] = max(known.get(id_, 0), kills)

    def oom_events(self, container: ContainerTarget, tracked: Tracked) -> int:
        known = self.killed.get(container.name, {})
        ended = sum(kills for id_, kills in known.items() if id_ != container.id)
        return max(tracked.oom_kills, known.get(container.id, 0)) + ended

    def drop(self) -> None:
        self.tracked.drop()
        self.sandbox.drop()
        for tracked in self.containers.values():
            tracked.drop()
