"""Restart decisions and growing delays (lifecycle 3.4, 3.5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.podworker.core.model import Backoff, Stop, Termination, Waiting
from services.podworker.core.plan import SyncConfig
from services.podworker.core.restarts import (
    CRASH_LOOP,
    crash_backoff_until,
    crash_message,
    grown,
    image_backoff_until,
    is_replaced,
    next_attempt,
    next_crash_backoff,
    should_start,
)
from tests.support.builders import NOW, a_memory, a_pod, a_runtime, cannot_run, exited, running

C = a_pod().spec.containers[0]
CONFIG = SyncConfig()


@pytest.mark.parametrize(
    ("policy", "code", "expected"),
    [
        ("Always", 0, True),
        ("Always", 1, True),
        ("OnFailure", 0, False),
        ("OnFailure", 1, True),
        ("Never", 0, False),
        ("Never", 1, False),
    ],
)
def test_an_exited_container_starts_again_as_the_policy_says(policy: str, code: int, expected: bool) -> None:
    assert should_start(a_pod(restartPolicy=policy), a_memory(), exited(C, code)) == expected


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_a_container_that_never_ran_starts_whatever_the_policy(policy: str) -> None:
    pod = a_pod(restartPolicy=policy)
    assert should_start(pod, a_memory(), None)
    assert should_start(pod, a_memory(), running(C, state="created"))
    assert should_start(pod, a_memory(), running(C, state="unknown"))
    assert not should_start(pod, a_memory(), running(C))


def test_nothing_starts_in_a_pod_that_ends() -> None:
    memory = a_memory(termination=Termination(at=NOW, grace=30, reason="removed"))
    assert not should_start(a_pod(), memory, None)
    assert not should_start(a_pod(), memory, exited(C, 1))


@pytest.mark.parametrize(
    ("reason", "policy", "expected"),
    [
        ("definition", "Never", True),
        ("definition", "OnFailure", True),
        ("sandbox", "Never", False),
        ("sandbox", "OnFailure", True),
        ("terminating", "Always", False),
    ],
)
def test_what_we_ended_to_replace_it_starts_again(reason: str, policy: str, expected: bool) -> None:
    memory = a_memory(stops={"c-0": Stop(deadline=NOW, reason=reason)})
    assert is_replaced(a_pod(restartPolicy=policy), memory, exited(C)) == expected


def test_the_next_attempt_counts_from_what_is_seen_and_what_is_remembered() -> None:
    assert next_attempt(a_memory(), a_runtime(), "c") == 0
    assert next_attempt(a_memory(), a_runtime(exited(C, attempt=3)), "c") == 4
    assert next_attempt(a_memory(restarts={"c": 7}), a_runtime(exited(C, attempt=3)), "c") == 8
    assert next_attempt(a_memory(restarts={"d": 7}), a_runtime(), "c") == 0


def test_delays_double_up_to_the_maximum() -> None:
    backoff, delays = None, []
    for failure in range(8):
        backoff = grown(backoff, NOW + failure, NOW + failure, 10, 300, 600)
        delays.append(backoff.delay)
    assert delays == [10, 20, 40, 80, 160, 300, 300, 300]


def test_ten_good_minutes_start_the_delay_anew() -> None:
    old = Backoff(delay=160, updated_at=NOW)
    assert grown(old, NOW + 601, NOW + 601, 10, 300, 600).delay == 10
    assert grown(old, NOW + 600, NOW + 600, 10, 300, 600).delay == 300


def test_a_maximum_below_the_initial_delay_is_the_initial_delay() -> None:
    config = SyncConfig(crash_max=2)
    backoff = next_crash_backoff(a_memory(), exited(C, 1), NOW, config)
    assert backoff is not None
    assert backoff.delay == 2
    again = next_crash_backoff(a_memory(backoffs={"c": backoff}), exited(C, 1), NOW, config)
    assert again is not None
    assert again.delay == 2


@given(st.lists(st.floats(0, 2000), max_size=20), st.floats(1, 300))
def test_a_delay_is_never_above_the_maximum(gaps: list[float], maximum: float) -> None:
    backoff, now = None, NOW
    for gap in gaps:
        now += gap
        backoff = grown(backoff, now, now, 10, maximum, 600)
        assert min(10, maximum) <= backoff.delay <= maximum


def test_the_first_restart_is_immediate() -> None:
    assert crash_backoff_until(a_memory(), exited(C, 1), NOW, CONFIG) is None
    assert crash_backoff_until(a_memory(), None, NOW, CONFIG) is None


def test_the_delay_counts_from_the_exit() -> None:
    memory = a_memory(backoffs={"c": Backoff(delay=20, updated_at=NOW - 30)})
    ended = exited(C, 1, finished_at=NOW - 5)
    assert crash_backoff_until(memory, ended, NOW, CONFIG) == NOW + 15
    assert crash_backoff_until(memory, ended, NOW + 15, CONFIG) is None


def test_the_delay_of_one_that_could_not_run_counts_from_its_creation() -> None:
    memory = a_memory(backoffs={"c": Backoff(delay=20, updated_at=NOW - 30)})
    ended = cannot_run(C, created_at=NOW - 1)
    assert crash_backoff_until(memory, ended, NOW, CONFIG) == NOW + 19


def test_a_clock_set_back_delays_a_restart_by_no_more_than_its_delay() -> None:
    memory = a_memory(backoffs={"c": Backoff(delay=20, updated_at=NOW - 30)})
    future = exited(C, 1, finished_at=NOW + 500)
    assert crash_backoff_until(memory, future, NOW, CONFIG) == NOW + 20
    promised = a_memory(
        backoffs=memory.backoffs,
        waiting={"c": Waiting(reason=CRASH_LOOP, message="", at=NOW, retry_at=NOW + 20)},
    )
    assert crash_backoff_until(promised, future, NOW + 5, CONFIG) == NOW + 20
    assert crash_backoff_until(promised, future, NOW + 20, CONFIG) is None


@pytest.mark.parametrize(("delay", "text"), [(10, "10s"), (80, "1m20s"), (300, "5m0s"), (1.5, "1.5s")])
def test_a_crash_loop_is_told_with_gos_duration(delay: float, text: str) -> None:
    expected = f"back-off {text} restarting failed container=c pod=p_ns(u)"
    assert crash_message(delay, "c", "p_ns(u)") == expected


def test_an_image_waits_by_its_reference() -> None:
    memory = a_memory(image_backoffs={"x:1": Backoff(delay=10, updated_at=NOW)})
    assert image_backoff_until(memory, "x:1", NOW + 9) == NOW + 10
    assert image_backoff_until(memory, "x:1", NOW + 10) is None
    assert image_backoff_until(memory, "y:1", NOW) is None
