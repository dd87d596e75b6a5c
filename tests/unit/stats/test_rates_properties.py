"""What holds of rates and histories whatever the counters do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.stats.core.model import CgroupSample, CgroupUsage
from services.stats.core.rates import NANOSECONDS, nano_cores
from services.stats.core.window import KEEP_SECONDS, extend, usage_nano_cores

counters = st.integers(min_value=0, max_value=2**63)
readings = st.lists(
    st.tuples(st.integers(min_value=0, max_value=40 * NANOSECONDS), st.none() | st.integers(0, 10**15)),
    min_size=1,
    max_size=40,
)


def history(steps: list[tuple[int, int | None]]) -> tuple[CgroupSample, ...]:
    window: tuple[CgroupSample, ...] = ()
    at = 0
    for elapsed, cpu_ns in steps:
        at += elapsed
        sample = CgroupSample(at=at / NANOSECONDS, monotonic_ns=at, usage=CgroupUsage(cpu_ns=cpu_ns))
        window = extend(window, sample)
    return window


@given(counters, counters, counters, counters)
def test_a_rate_is_never_negative(t0: int, c0: int, t1: int, c1: int) -> None:
    rate = nano_cores((t0, c0), (t1, c1))
    assert rate is None or rate >= 0


@given(st.integers(1, 10**12), st.integers(0, 10**15), st.integers(0, 10**6))
def test_a_rate_times_its_interval_gives_the_growth_back(elapsed: int, start: int, used: int) -> None:
    rate = nano_cores((7, start), (7 + elapsed, start + used))
    assert rate is not None
    assert 0 <= used * NANOSECONDS - rate * elapsed < elapsed


@given(readings)
def test_the_newest_reading_is_always_kept_and_never_yields_a_negative_rate(
    steps: list[tuple[int, int | None]],
) -> None:
    """Resets, gaps and readings without a counter included."""
    window = history(steps)
    assert window[-1].usage.cpu_ns == steps[-1][1]
    rate = usage_nano_cores(window)
    assert rate is None or rate >= 0


@given(readings)
def test_within_a_history_counters_only_grow_and_nothing_is_older_than_two_minutes(
    steps: list[tuple[int, int | None]],
) -> None:
    window = history(steps)
    assert window[-1].monotonic_ns - window[0].monotonic_ns <= KEEP_SECONDS * NANOSECONDS
    known = [sample.usage.cpu_ns for sample in window if sample.usage.cpu_ns is not None]
    assert known == sorted(known)
