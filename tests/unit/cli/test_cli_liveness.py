"""When the supervisor takes a process for hung: after several misses in a row, and never while it starts or ends."""

from __future__ import annotations

import os

import pytest

from cli.liveness import MISSES, PERIOD_SECONDS, RETRY_SECONDS, Liveness


def ask(liveness: Liveness, now: float) -> int:
    """Ask, and wait for the asking process; its status."""
    liveness.ask(now, close=[])
    _, status = os.waitpid(liveness.pid, 0)
    return status


def answered(liveness: Liveness, *statuses: int) -> list[bool]:
    return [liveness.answered(status, float(number)) for number, status in enumerate(statuses)]


@pytest.fixture
def watched() -> Liveness:
    made = Liveness(lambda: True)
    made.begin(0.0)
    return made


def test_it_hangs_after_so_many_misses_in_a_row(watched: Liveness) -> None:
    assert answered(watched, *[1] * MISSES) == [False] * (MISSES - 1) + [True]


def test_one_good_answer_forgives_the_misses_before_it(watched: Liveness) -> None:
    assert not any(answered(watched, *[1] * (MISSES - 1), 0, *[1] * (MISSES - 1)))


def test_after_a_miss_it_is_asked_sooner(watched: Liveness) -> None:
    assert watched.due == PERIOD_SECONDS
    watched.answered(1, 100.0)
    assert watched.due == 100.0 + RETRY_SECONDS
    watched.answered(0, 110.0)
    assert watched.due == 110.0 + PERIOD_SECONDS


def test_it_is_not_asked_before_it_is_due_nor_twice_at_a_time(watched: Liveness) -> None:
    watched.ask(PERIOD_SECONDS / 2, close=[])
    assert watched.pid == 0
    status = ask(watched, PERIOD_SECONDS)
    assert status == 0
    first = watched.pid
    watched.ask(PERIOD_SECONDS * 2, close=[])
    assert watched.pid == first


def test_what_is_still_asked_of_a_process_that_has_ended_does_not_count(watched: Liveness) -> None:
    watched.end()
    assert not any(answered(watched, *[1] * MISSES))
    assert watched.due is None


def test_a_process_without_a_question_is_never_asked() -> None:
    never = Liveness(None)
    never.begin(0.0)
    assert never.due is None
    never.ask(1e9, close=[])
    assert never.pid == 0


@pytest.mark.parametrize("error", [ConnectionRefusedError(), TimeoutError()])
def test_a_connection_that_fails_is_a_miss(error: OSError) -> None:
    def alive() -> bool:
        raise error

    liveness = Liveness(alive)
    liveness.begin(0.0)
    assert ask(liveness, PERIOD_SECONDS) != 0


def test_an_asking_process_that_lasts_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.liveness.LIMIT_SECONDS", 1)
    read, write = os.pipe()
    liveness = Liveness(lambda: bool(os.read(read, 1)))  # nobody writes
    liveness.begin(0.0)
    assert ask(liveness, PERIOD_SECONDS) != 0
    os.close(read)
    os.close(write)
