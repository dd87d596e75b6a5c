"""Counters -> rates."""

from __future__ import annotations

from services.stats.core.rates import nano_cores


def test_one_busy_cpu_is_a_billion() -> None:
    assert nano_cores((0, 0), (10_000_000_000, 10_000_000_000)) == 1_000_000_000


def test_a_tenth_of_a_cpu_over_ten_seconds() -> None:
    assert nano_cores((5_000, 700), (10_000_005_000, 1_000_000_700)) == 100_000_000


def test_no_rate_when_the_counter_went_back() -> None:
    """A new instance of the cgroup began at zero."""
    assert nano_cores((0, 500), (10, 499)) is None


def test_no_rate_when_no_time_went_by() -> None:
    assert nano_cores((10, 1), (10, 2)) is None
    assert nano_cores((11, 1), (10, 2)) is None
