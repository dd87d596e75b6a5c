"""Durations and instants as kubectl writes them."""

from __future__ import annotations

import pytest

from cli.human import epoch, human_duration, rfc1123, since


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-0.5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (10799, "179m"),
        (10800, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600 + 60, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (51 * 3600, "2d3h"),
        (8 * 86400 + 3600, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (800 * 86400, "2y70d"),
        (8 * 365 * 86400 + 86400, "8y"),
    ],
)
def test_a_duration_is_written_with_at_most_two_units(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


def test_an_age_is_counted_from_a_kubernetes_instant_with_nanoseconds() -> None:
    assert since("2025-12-01T00:00:00.123456789Z", 1764547230.5) == "30s"


def test_an_age_of_something_without_an_instant_is_unknown() -> None:
    assert since(None, 5.0) == "<unknown>"
    assert epoch("yesterday") is None


def test_an_instant_is_written_as_go_writes_rfc1123_with_its_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert rfc1123("2025-12-01T00:00:02Z") == "Mon, 01 Dec 2025 00:00:02 +0000"
    assert rfc1123(None) == ""
