"""When a probe is due: ticks of its period, as the kubelet's ticker has them, and readiness at once besides.

Instants are seconds on a clock that only goes forward.
"""

from __future__ import annotations

import math

TICKS_A_SECOND = 10
"""All ticks fall on tenths of a second, so that probes share wake-ups: five at a time cost two fifths of five alone."""
EXTRA_RUN_SECONDS = 1.0
"""A look that finds a container unready asks at once, but not so soon after the last answer."""


def first_tick(created_at: float, period: float, *, prober_age: float, is_adopted: bool, share: float) -> float:
    """The first tick of a probe that was made now. `share`: a random number from 0 to 1.

    Spread over a period while the prober is young, or when the container was found running: else the probes of all pods
    that come at once would stay together for ever.
    """
    at = created_at + share * period if is_adopted or prober_age < period else created_at
    return math.ceil(at * TICKS_A_SECOND) / TICKS_A_SECOND


def ticks_from(at: float) -> float:
    """The tick that the next ones are counted from when a probe runs at `at`, out of turn."""
    return math.floor(at * TICKS_A_SECOND) / TICKS_A_SECOND


def next_tick(base: float, period: float, *, earliest: float, after: float) -> float:
    """The first tick that is neither before `earliest` nor the one at `after`, which has run already."""
    tick = base + max(0, math.ceil((earliest - base) / period)) * period
    while tick <= after + period / 1000:  # timers may fire a little early
        tick += period
    return round(tick * TICKS_A_SECOND) / TICKS_A_SECOND  # equal ticks are equal numbers


def asks_at_once(now: float, *, earliest: float, ended_at: float) -> bool:
    """Whether an unready container is asked because of a look; `ended_at` = of the last run."""
    return now >= earliest and now - ended_at >= EXTRA_RUN_SECONDS
