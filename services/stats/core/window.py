"""Bounded history of one cgroup: a tuple of samples, oldest first."""

from __future__ import annotations

from services.stats.core.model import CgroupSample
from services.stats.core.rates import NANOSECONDS, nano_cores

KEEP_SECONDS = 120
"""kubelet 1.36: two minutes of history per container."""

RATE_SECONDS = 1
"""The shortest interval that a rate is made from; shorter ones give wild values."""


def extend(window: tuple[CgroupSample, ...], sample: CgroupSample) -> tuple[CgroupSample, ...]:
    """The history with one more sample, and without those older than two minutes.

    A counter that went back belongs to a new instance of the cgroup: its history starts anew.
    """
    if _went_back(window, sample):
        return (sample,)
    oldest = sample.monotonic_ns - KEEP_SECONDS * NANOSECONDS
    first = 0
    while first < len(window) and window[first].monotonic_ns < oldest:
        first += 1
    return (*window[first:], sample)


def usage_nano_cores(window: tuple[CgroupSample, ...]) -> int | None:
    """The CPU rate between the newest sample and the one before it that is at least a second older.

    From the stored history and not "since the last call", so any number of readers see the same value.
    """
    if not window or window[-1].usage.cpu_ns is None:
        return None
    newest = window[-1]
    for earlier in reversed(window[:-1]):
        if newest.monotonic_ns - earlier.monotonic_ns < RATE_SECONDS * NANOSECONDS:
            continue
        if earlier.usage.cpu_ns is None:
            return None
        return nano_cores((earlier.monotonic_ns, earlier.usage.cpu_ns), (newest.monotonic_ns, window[-1].usage.cpu_ns))
    return None


def _went_back(window: tuple[CgroupSample, ...], sample: CgroupSample) -> bool:
    after = sample.usage.cpu_ns
    known = (one.usage.cpu_ns for one in reversed(window) if one.usage.cpu_ns is not None)
    before = next(known, None)
    return before is not None and after is not None and after < before
