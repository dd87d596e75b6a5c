"""Families of several processes as one page, in the numbers and quotes of Prometheus' text format."""

from __future__ import annotations

import pytest

from services.api.core.metrics_text import merged, number, page
from shared.contracts.metrics import Family, Sample
from shared.runtime.metrics import Metrics


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (12, "12"),
        (0.005, "0.005"),
        (2.5, "2.5"),
        (1e6, "1e+06"),
        (1796080035.4, "1.7960800354e+09"),
        (123456789, "1.23456789e+08"),
        (0.00001, "1e-05"),
        (float("inf"), "+Inf"),
        (float("nan"), "NaN"),
        (-3, "-3"),
    ],
)
def test_numbers_are_written_as_go_writes_them(value: float, text: str) -> None:
    assert number(value) == text


def test_a_histograms_buckets_add_up_and_end_with_inf() -> None:
    metrics = Metrics()
    seconds = metrics.histogram("x_seconds", "Time.", "kind", bounds=(0.5, 1))
    for value in (0.1, 0.5, 0.7, 3):
        seconds.observe(value, "a")
    assert page(metrics.families()).decode().splitlines() == [
        "# HELP x_seconds [ALPHA] Time.",
        "# TYPE x_seconds histogram",
        'x_seconds_bucket{kind="a",le="0.5"} 2',
        'x_seconds_bucket{kind="a",le="1"} 3',
        'x_seconds_bucket{kind="a",le="+Inf"} 4',
        'x_seconds_sum{kind="a"} 4.3',
        'x_seconds_count{kind="a"} 4',
    ]


def test_processes_are_added_up_by_series_and_a_start_is_the_earliest() -> None:
    first = [
        Family("b_total", "counter", "B.", ("k",), (Sample(("x",), 1), Sample(("y",), 2))),
        Family("a_start", "gauge", "A.", samples=(Sample((), 9),), merge="min"),
    ]
    second = [
        Family("b_total", "counter", "B.", ("k",), (Sample(("y",), 5),)),
        Family("a_start", "gauge", "A.", samples=(Sample((), 4),), merge="min"),
    ]
    assert page(merged([first, second])).decode().splitlines() == [
        "# HELP a_start [ALPHA] A.",
        "# TYPE a_start gauge",
        "a_start 4",
        "# HELP b_total [ALPHA] B.",
        "# TYPE b_total counter",
        'b_total{k="x"} 1',
        'b_total{k="y"} 7',
    ]


def test_labels_are_sorted_and_quoted() -> None:
    family = Family("a", "gauge", "A.", ("z", "b"), (Sample(('q"\\', "l\nm"), 1),))
    assert page([family]).decode().splitlines()[-1] == 'a{b="l\\nm",z="q\\"\\\\"} 1'


def test_a_counter_without_labels_is_there_from_the_start_and_a_labelled_one_not() -> None:
    metrics = Metrics()
    metrics.counter("plain_total", "P.")
    metrics.counter("by_kind_total", "K.", "kind")
    assert page(metrics.families()).decode().splitlines()[-1] == "plain_total 0"
    with pytest.raises(ValueError, match="plain_total"):
        metrics.counter("plain_total", "P.")
