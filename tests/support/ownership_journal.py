"""What the workers' journals show: who handled which pod when, and whether two ever did at once. Pure.

A journal line is `<monotonic ns> <worker> <+|-> <uid> <gen>`: a look at a pod began or ended, and the generation that
the pod was at. CLOCK_MONOTONIC is one clock for all processes of the machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

FOR_EVER = 1 << 63


@dataclass(frozen=True)
class Entry:
    at: int
    worker: str
    begins: bool
    uid: str
    gen: int


@dataclass(frozen=True)
class Handling:
    """A look at a pod, from its begin to its end or to its worker's death."""

    start: int
    end: int
    worker: str
    uid: str
    gen: int
    """At its end; at its begin when the worker died in it."""


@dataclass(frozen=True)
class Overlap:
    pod: str
    first: Handling
    second: Handling

    @property
    def milliseconds(self) -> float:
        return (min(self.first.end, self.second.end) - self.second.start) / 1e6


@dataclass(frozen=True)
class Reversal:
    """A pod was at a generation, and later at an older one."""

    uid: str
    at: int
    gen: int
    before: int


def parse(text: str) -> list[Entry]:
    """The lines of one journal. A line that kill -9 has cut is left out."""
    entries = []
    for line in text.splitlines(keepends=True):
        words = line.split()
        if not line.endswith("\n") or len(words) != 5:
            continue
        entries.append(Entry(int(words[0]), words[1], words[2] == "+", words[3], int(words[4])))
    return entries


def handlings(entries: Iterable[Entry], deaths: Mapping[str, int]) -> list[Handling]:
    """Pair begins and ends, in order of begin. `deaths`: worker -> when it was killed; what it had begun ends there,
    what another worker never ended goes on for ever."""
    open_: dict[tuple[str, str], Entry] = {}
    found = []
    for entry in sorted(entries, key=lambda entry: entry.at):
        key = (entry.worker, entry.uid)
        if entry.begins:
            assert key not in open_, f"{entry} begins in {open_[key]}"
            open_[key] = entry
        else:
            begun = open_.pop(key)
            found.append(Handling(begun.at, entry.at, entry.worker, entry.uid, entry.gen))
    for begun in open_.values():
        end = max(begun.at, deaths.get(begun.worker, FOR_EVER))
        found.append(Handling(begun.at, end, begun.worker, begun.uid, begun.gen))
    return sorted(found, key=lambda handling: (handling.start, handling.end))


def overlaps(found: Iterable[Handling], name_of: Mapping[str, str]) -> list[Overlap]:
    """Pairs of handlings of one pod in two workers at one time. `name_of`: UID -> the pod's name, since all UIDs that
    a name ever had belong to one owner; one worker may look at several of them at once."""
    by_pod: defaultdict[str, list[Handling]] = defaultdict(list)
    for handling in found:
        by_pod[name_of.get(handling.uid, handling.uid)].append(handling)
    wrong = []
    for pod, ordered in by_pod.items():
        running: list[Handling] = []
        for handling in sorted(ordered, key=lambda one: one.start):
            running = [one for one in running if one.end > handling.start]
            wrong += [Overlap(pod, one, handling) for one in running if one.worker != handling.worker]
            running.append(handling)
    return wrong


def reversals(found: Iterable[Handling]) -> list[Reversal]:
    """Where the generation that a pod was at went backwards, whoever looked. Ends are compared with ends; generation
    0 is a pod not known yet or not any more."""
    highest: dict[str, int] = {}
    wrong = []
    for handling in sorted(found, key=lambda one: one.end):
        before = highest.get(handling.uid, 0)
        if 0 < handling.gen < before:
            wrong.append(Reversal(handling.uid, handling.end, handling.gen, before))
        highest[handling.uid] = max(before, handling.gen)
    return wrong


def missing(final: Mapping[str, int], shown: Mapping[str, int]) -> dict[str, tuple[int, int | None]]:
    """Pods that are not at their last version: pod -> (its last version, the one shown or None)."""
    return {pod: (gen, shown.get(pod)) for pod, gen in final.items() if shown.get(pod) != gen}


def takeovers(found: Iterable[Handling], deaths: Mapping[str, int]) -> dict[str, list[int]]:
    """Milliseconds from a worker's death to the first look by another worker at each pod that the dead one looked
    at last, by dead worker, sorted."""
    last: dict[str, Handling] = {}
    took: defaultdict[str, list[int]] = defaultdict(list)
    for handling in sorted(found, key=lambda one: one.start):
        before = last.get(handling.uid)
        if before is not None and before.worker != handling.worker:
            since = handling.start - deaths.get(before.worker, FOR_EVER)
            if since >= 0:  # else it was handed over in its lifetime
                took[before.worker].append(since // 1_000_000)
        last[handling.uid] = handling
    return {worker: sorted(times) for worker, times in took.items()}
