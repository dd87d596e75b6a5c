"""The history of one cgroup."""

from __future__ import annotations

from services.stats.core.model import CgroupSample, CgroupUsage
from services.stats.core.rates import NANOSECONDS
from services.stats.core.window import extend, usage_nano_cores


def sample(seconds: float, cpu_ns: int | None) -> CgroupSample:
    return CgroupSample(at=1_000.0 + seconds, monotonic_ns=int(seconds * NANOSECONDS), usage=CgroupUsage(cpu_ns=cpu_ns))


def test_samples_older_than_two_minutes_are_dropped() -> None:
    window: tuple[CgroupSample, ...] = ()
    for seconds in range(0, 300, 10):
        window = extend(window, sample(seconds, seconds))
    assert [one.monotonic_ns // NANOSECONDS for one in window] == list(range(170, 300, 10))


def test_a_counter_that_went_back_begins_a_new_history() -> None:
    """Else a rate over the reset would mix two instances."""
    window = extend((sample(0, 500), sample(10, 900)), sample(20, 3))
    assert window == (sample(20, 3),)


def test_one_sample_has_no_rate() -> None:
    """It is left out and not told as zero."""
    assert usage_nano_cores(()) is None
    assert usage_nano_cores((sample(0, 5),)) is None


def test_the_rate_spans_the_two_newest_samples() -> None:
    window = (sample(0, 0), sample(10, 0), sample(20, 5 * NANOSECONDS))
    assert usage_nano_cores(window) == NANOSECONDS // 2


def test_an_interval_of_less_than_a_second_reaches_back_to_an_older_sample() -> None:
    """Sub-second intervals give wild values."""
    window = (sample(0, 0), sample(10, NANOSECONDS), sample(10.2, NANOSECONDS + 200_000_000))
    assert usage_nano_cores(window) == 1_200_000_000 * NANOSECONDS // 10_200_000_000


def test_only_sub_second_history_has_no_rate() -> None:
    assert usage_nano_cores((sample(0, 0), sample(0.5, 100))) is None


def test_a_sample_without_a_cpu_counter_has_no_rate() -> None:
    assert usage_nano_cores((sample(0, 0), sample(10, None))) is None
    assert usage_nano_cores((sample(0, None), sample(10, 1))) is None
