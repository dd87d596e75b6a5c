"""The query of /containerLogs, as apimachinery decodes it."""

from __future__ import annotations

import pytest

from services.api.core.params import INVALID, UNDECODABLE, Refusal, form_problem, log_options, only_cpu_and_memory
from services.api.handlers.answers import parse_query
from shared.contracts.streams import LogOptions

NOW = 1_000_000.0


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", LogOptions()),
        (
            "follow=true&previous=true&tailLines=5&limitBytes=10&timestamps=true&sinceSeconds=3",
            LogOptions(follow=True, previous=True, tail_lines=5, limit_bytes=10, timestamps=True, since=NOW - 3),
        ),
        ("tail=all&tailLines=7", LogOptions()),
        ("tail=7", LogOptions(tail_lines=7)),
        ("tail=7&tailLines=3", LogOptions(tail_lines=7)),
        ("tailLines=0", LogOptions(tail_lines=0)),
        ("tailLines=%2B5", LogOptions(tail_lines=5)),
        ("tailLines=1&tailLines=2", LogOptions(tail_lines=1)),
        ("sinceTime=2020-01-01T00:00:00Z", LogOptions(since=1577836800.0)),
        ("sinceTime=2020-01-01T01:00:00.5%2B01:00", LogOptions(since=1577836800.5)),
        ("follow", LogOptions(follow=True)),
        ("follow=abc", LogOptions(follow=True)),
        ("follow=0", LogOptions()),
        ("follow=FALSE", LogOptions()),
        ("unknown=1&container=x", LogOptions()),
        ("stream=All", LogOptions()),
    ],
)
def test_a_good_query(query: str, options: LogOptions) -> None:
    assert log_options(parse_query(query.encode()), NOW) == options


@pytest.mark.parametrize(
    "query",
    [
        "tailLines=abc",
        "tailLines=",
        "tailLines=1.5",
        "tailLines=1_000",
        "tailLines=%D9%A3",
        "tailLines=9223372036854775808",
        "limitBytes=x",
        "sinceSeconds=x",
        "sinceTime=bad",
        "sinceTime=2020-01-01",
        "sinceTime=2020-13-01T00:00:00Z",
        "tail=x",
    ],
)
def test_what_can_not_be_decoded_is_a_bad_request(query: str) -> None:
    assert log_options(parse_query(query.encode()), NOW) == UNDECODABLE


@pytest.mark.parametrize(
    "query",
    ["tailLines=-1", "limitBytes=0", "sinceSeconds=0", "sinceTime=2020-01-01T00:00:00Z&sinceSeconds=4"],
)
def test_what_makes_no_sense_is_unprocessable(query: str) -> None:
    assert log_options(parse_query(query.encode()), NOW) == INVALID


def test_one_of_the_two_streams_needs_a_gate_that_is_off() -> None:
    refused = log_options({"stream": ["Stdout"]}, NOW)
    assert isinstance(refused, Refusal)
    assert refused.status == 400
    assert refused.text.startswith('unable to return the given log stream: "Stdout". Please enable')


@pytest.mark.parametrize(
    ("raw", "only"),
    [
        ("", False),
        ("only_cpu_and_memory=true", True),
        ("only_cpu_and_memory=True", False),
        ("only_cpu_and_memory=true&only_cpu_and_memory=true", False),
        ("a=1&only_cpu_and_memory=true", True),
    ],
)
def test_only_cpu_and_memory_is_exactly_true(raw: str, only: bool) -> None:
    assert only_cpu_and_memory(parse_query(raw.encode())) is only


def test_a_form_that_go_refuses_is_refused_in_its_words() -> None:
    assert form_problem("a=%41&b=+") is None
    assert form_problem("a=%zz") == 'invalid URL escape "%zz"'
    assert form_problem("a=%4") == 'invalid URL escape "%4"'
    assert form_problem("a=1;b=2") == "invalid semicolon separator in query"
