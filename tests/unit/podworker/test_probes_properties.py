"""Thresholds over any results: the verdict in effect changes only after enough equal ones in a row."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.podworker.core.model import Verdicts
from services.podworker.core.probe_schedule import next_tick, ticks_from
from services.podworker.core.probes import Found, Outcome, Streak, count, with_verdict
from shared.kube.pod import Probe
from tests.support.builders import a_memory

outcomes = st.lists(st.sampled_from(["success", "failure"]), max_size=40)
thresholds = st.integers(1, 5)


@given(outcomes, thresholds, thresholds)
def test_a_verdict_is_what_the_last_results_agree_on(results: list[Outcome], good: int, bad: int) -> None:
    probe, streak = Probe(success_threshold=good, failure_threshold=bad), Streak()
    for index, outcome in enumerate(results):
        streak, verdict = count(streak, outcome, probe)
        needed = good if outcome == "success" else bad
        recent = results[max(0, index + 1 - needed) : index + 1]
        assert verdict == (outcome if recent == [outcome] * needed else None)


@given(outcomes, thresholds, thresholds)
def test_readiness_is_stored_only_when_it_changes(results: list[Outcome], good: int, bad: int) -> None:
    probe, streak, memory = Probe(success_threshold=good, failure_threshold=bad), Streak(), a_memory()
    in_effect = "failure"
    for outcome in results:
        streak, verdict = count(streak, outcome, probe)
        before = memory
        if verdict is not None:
            memory = with_verdict(memory, Found(container_id="x", kind="readiness", verdict=verdict))
            assert (memory is before) == (verdict == in_effect)
            in_effect = verdict
        assert (memory.verdicts.get("x", Verdicts()).readiness or "failure") == in_effect


@given(
    st.integers(0, 10**7), st.integers(1, 3600), st.floats(0, 1e6), st.lists(st.floats(0, 100), min_size=1, max_size=20)
)
def test_a_probe_is_due_again_and_again_on_its_ticks(
    tenths: int, period: int, earliest: float, runs: list[float]
) -> None:
    slack, base = 1e-3, tenths / 10
    due = next_tick(base, period, earliest=earliest, after=float("-inf"))
    assert earliest - slack <= due <= max(base, earliest + period) + slack
    for took in runs:
        after, ended = due, due + took
        due = next_tick(base, period, earliest=ended, after=after)
        assert due > after
        assert ended - slack <= due <= ended + period + slack
        assert due == round(due * 10) / 10


@given(st.floats(0, 1e6), st.integers(1, 3600))
def test_a_run_out_of_turn_is_followed_by_one_a_period_later(at: float, period: int) -> None:
    due = next_tick(ticks_from(at), period, earliest=at, after=at)
    assert at + period - 0.1 - 1e-3 <= due <= at + period + 1e-3
