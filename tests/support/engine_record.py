"""What the model engine's record shows: whether a pod ever ran twice, or an older version after a newer one. Pure.

A line is `<monotonic ns> <+|-> <namespace/name> <uid> <container id> <version>`: a container started or ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from tests.support.ownership_journal import FOR_EVER


@dataclass(frozen=True)
class Run:
    """A container's life; each pod has one container."""

    start: int
    end: int
    pod: str
    uid: str
    container: str
    version: int


def runs(text: str) -> list[Run]:
    """In order of start; what never ended goes on for ever."""
    open_: dict[str, Run] = {}
    found: list[Run] = []
    for line in text.splitlines():
        at, mark, pod, uid, container, version = line.split()
        if mark == "+":
            open_[container] = Run(int(at), FOR_EVER, pod, uid, container, int(version))
        else:
            begun = open_.pop(container)
            found.append(Run(begun.start, int(at), pod, uid, container, begun.version))
    return sorted([*found, *open_.values()], key=lambda run: run.start)


def doubles(found: Iterable[Run]) -> list[tuple[Run, Run]]:
    """Pairs of containers of one pod name that ran at one time: two attempts, or an old and a new version."""
    return [(a, b) for a, b in _neighbours(found) if a.end > b.start]


def backwards(found: Iterable[Run]) -> list[tuple[Run, Run]]:
    """Pairs where an older version started after a newer one."""
    return [(a, b) for a, b in _neighbours(found) if b.version < a.version]


def repeats(found: Iterable[Run]) -> list[Run]:
    """Containers of a version that had run already: restarted, though nobody edited them and none ends by itself."""
    seen: set[tuple[str, int]] = set()
    again = []
    for run in found:
        if (run.uid, run.version) in seen:
            again.append(run)
        seen.add((run.uid, run.version))
    return again


def running(found: Iterable[Run]) -> dict[str, int]:
    """Pod -> the version that runs at the end."""
    return {run.pod: run.version for run in found if run.end == FOR_EVER}


def _neighbours(found: Iterable[Run]) -> list[tuple[Run, Run]]:
    by_pod: defaultdict[str, list[Run]] = defaultdict(list)
    for run in found:
        by_pod[run.pod].append(run)
    return [pair for ordered in by_pod.values() for pair in pairwise(ordered)]
