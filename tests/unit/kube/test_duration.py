"""Durations read and print as Go's time.Duration does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.kube.duration import (
    DurationError,
    format_duration,
    format_seconds,
    parse_duration,
    parse_seconds,
)

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("1m30s", 90 * SECOND),
        ("1h", 3600 * SECOND),
        ("1.5h", 5400 * SECOND),
        (".5s", SECOND // 2),
        ("1.s", SECOND),
        ("20ms", 20_000_000),
        ("3us", 3000),
        ("3\u00b5s", 3000),
        ("3\u03bcs", 3000),
        ("7ns", 7),
        ("-2m", -120 * SECOND),
        ("+2m", 120 * SECOND),
        ("0.9ns", 0),
        ("2562047h47m16.854775807s", 2**63 - 1),
    ],
)
def test_a_duration_has_its_nanoseconds(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        ("s", 'time: invalid duration "s"'),
        (".s", 'time: invalid duration ".s"'),
        ("3", 'time: missing unit in duration "3"'),
        ("1m3", 'time: missing unit in duration "1m3"'),
        ("3d", 'time: unknown unit "d" in duration "3d"'),
        ("1 s", 'time: unknown unit " s" in duration "1 s"'),
        ("9999999999h", 'time: invalid duration "9999999999h"'),
    ],
)
def test_a_bad_duration_says_what_go_says(text: str, message: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1100, "1.1\u00b5s"),
        (2_200_000, "2.2ms"),
        (SECOND, "1s"),
        (1_500_000_000, "1.5s"),
        (90 * SECOND, "1m30s"),
        (3600 * SECOND, "1h0m0s"),
        (-90 * SECOND, "-1m30s"),
    ],
)
def test_a_duration_prints_as_go_prints_it(nanoseconds: int, text: str) -> None:
    assert format_duration(nanoseconds) == text


def test_seconds_are_floats() -> None:
    assert parse_seconds("1m0.25s") == 60.25
    assert format_seconds(60.25) == "1m0.25s"


@given(st.integers(-(2**62), 2**62))
def test_reading_what_was_printed_gives_the_same(nanoseconds: int) -> None:
    assert parse_duration(format_duration(nanoseconds)) == nanoseconds


@given(st.text(max_size=30))
def test_any_text_is_a_duration_or_a_duration_error(text: str) -> None:
    try:
        parse_duration(text)
    except DurationError:
        pass
