"""A followed log whose engine repeats itself at a rotation."""

from __future__ import annotations

from services.podworker.adapters.log_frames import EachLineOnce

ONE = b"2026-12-01T04:49:58.184852730Z same\n"
LATER = b"2026-12-01T04:49:58.189657933Z same\n"


def passed(*frames: bytes, with_times: bool = False) -> list[bytes]:
    once = EachLineOnce(with_times=with_times)
    return [once.take(frame) for frame in frames]


def test_a_line_that_comes_again_with_its_time_is_left_out() -> None:
    assert passed(ONE, ONE, LATER) == [b"same\n", b"", b"same\n"]


def test_times_stay_when_they_are_wanted() -> None:
    assert passed(ONE, ONE, LATER, with_times=True) == [ONE, b"", LATER]


def test_equal_parts_of_a_long_line_are_all_of_it() -> None:
    """The parts of one line have one time."""
    part = ONE.rstrip(b"\n")
    assert passed(part, part, ONE) == [b"same", b"same", b"same\n"]


def test_an_empty_line_stays_one() -> None:
    assert passed(b"2026-12-01T04:49:58Z \n") == [b"\n"]


def test_several_lines_that_come_again_at_a_rotation_are_dropped() -> None:
    once = EachLineOnce(with_times=False)
    lines = [b"2026-12-01T00:00:00.%09dZ line %d\n" % (number, number) for number in range(4)]
    came = [*lines[:3], lines[1], lines[2], lines[3]]
    assert b"".join(once.take(frame) for frame in came) == b"line 0\nline 1\nline 2\nline 3\n"
