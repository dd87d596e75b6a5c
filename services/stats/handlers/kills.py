"""Kills for want of memory, as the kernel's log tells them: a count per container, and an event when the node had none
left."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping

from services.stats.core.oom import system_oom_message
from services.stats.ports import KernelRecords
from shared.kube.oom import OomKill, parse_oom_kill

MOST = 4096
"""Containers whose kills are remembered; the one that was killed longest ago goes first."""


class Kills:
    """`look` is cheap where nothing was logged."""

    def __init__(self, records: KernelRecords, tell: Callable[[str], None]) -> None:
        """What the kernel has logged up to now is counted, and is no news. `tell`: a message of event SystemOOM."""
        self._records = records
        self._tell = tell
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._count()

    @property
    def counts(self) -> Mapping[str, int]:
        """By the container's id."""
        return self._counts

    def look(self) -> None:
        for kill in self._count():
            if kill.is_system:
                self._tell(system_oom_message(kill))

    def _count(self) -> list[OomKill]:
        kills = [kill for record in self._records.oom_records() if (kill := parse_oom_kill(record)) is not None]
        for kill in kills:
            for container in kill.containers:
                self._counts[container] = self._counts.pop(container, 0) + 1
        while len(self._counts) > MOST:
            self._counts.popitem(last=False)
        return kills
