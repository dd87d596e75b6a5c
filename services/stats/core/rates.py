"""Cumulative counters -> rates."""

from __future__ import annotations

NANOSECONDS = 1_000_000_000


def nano_cores(earlier: tuple[int, int], later: tuple[int, int]) -> int | None:
    """Two (monotonic ns, cumulative CPU ns) -> nano-cores: 10^9 = one CPU, busy all the time.

    None when no rate can be told: no time went by, or the counter went back (a new instance of the cgroup).
    The counter itself stays good then; only the rate is dropped.
    """
    elapsed = later[0] - earlier[0]
    used = later[1] - earlier[1]
    if elapsed <= 0 or used < 0:
        return None
    return used * NANOSECONDS // elapsed
