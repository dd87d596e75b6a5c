"""What keeps a process from working is told once, and it's killed ever more seldom until that is over."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from cli.outage import FIRST_SECONDS, MOST_SECONDS, Outage
from shared.runtime.backoff import Delays

FULL = "the disk is full"


class Disk:
    def __init__(self) -> None:
        self.trouble = FULL
        self.outage = Outage(lambda: self.trouble, Delays(FIRST_SECONDS, MOST_SECONDS, Random(1)))


@pytest.fixture
def disk() -> Disk:
    return Disk()


def kills(disk: Disk, seconds: int) -> list[int]:
    """When it's killed, asked each second whether it does in vain."""
    return [now for now in range(seconds) if disk.outage.hangs(float(now))[0]]


def test_without_a_cause_each_hang_is_told_and_killed(disk: Disk) -> None:
    disk.trouble = ""
    assert [disk.outage.hangs(now) for now in (0.0, 1.0)] == [(True, "hangs: killed")] * 2
    assert disk.outage.ended(2.0, "was ended") == ""
    assert not disk.outage.is_on


def test_the_cause_is_told_once(disk: Disk) -> None:
    said = [disk.outage.hangs(float(now))[1] for now in range(100)]
    assert said[0].startswith(f"hangs: {FULL}; ")
    assert not any(said[1:])
    assert disk.outage.ended(100.0, "was ended by SIGKILL") == ""
    assert disk.outage.is_on


def test_an_end_with_a_cause_is_told_with_it(disk: Disk) -> None:
    assert disk.outage.ended(0.0, "ended with exit code 1").startswith(f"ended with exit code 1: {FULL}; ")
    assert disk.outage.is_on


def test_it_is_killed_ever_more_seldom(disk: Disk) -> None:
    instants = kills(disk, 3000)
    pauses = [later - earlier for earlier, later in itertools.pairwise(instants)]
    assert instants[0] == 0
    assert pauses[0] < pauses[1] < pauses[2]
    assert max(pauses) <= 1.2 * MOST_SECONDS + 1


def test_it_is_killed_at_once_when_the_cause_has_gone(disk: Disk) -> None:
    disk.outage.hangs(0.0)
    assert not disk.outage.hangs(1.0)[0]
    disk.trouble = ""
    assert disk.outage.hangs(2.0) == (True, "")


def test_that_it_works_again_is_told_once_and_only_when_the_cause_has_gone(disk: Disk) -> None:
    disk.outage.hangs(0.0)
    assert disk.outage.works(5.0) == ""
    disk.trouble = ""
    assert disk.outage.works(60.0) == f"works again after 60 s; {FULL}"
    assert disk.outage.works(70.0) == ""
    assert not disk.outage.is_on


def test_a_cause_that_can_not_be_looked_for_is_none() -> None:
    def gone() -> str:
        raise OSError

    assert Outage(gone).hangs(0.0) == (True, "hangs: killed")
