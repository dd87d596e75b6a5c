"""Whose last words `podbus describe pod` asks for, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from cli.client import Client, ClientError
from cli.crash_logs import crashed, last_words, shown

FAILED = {"terminated": {"exitCode": 3}}
DONE = {"terminated": {"exitCode": 0}}
LOOP = {"waiting": {"reason": "CrashLoopBackOff"}}
PULLS = {"waiting": {"reason": "ImagePullBackOff"}}


def a_pod(state: Mapping[str, Any], last: Mapping[str, Any], kind: str = "containerStatuses") -> dict[str, Any]:
    status = {kind: [{"name": "c", "state": state, "lastState": last}]}
    return {"metadata": {"namespace": "ns", "name": "p"}, "status": status}


class PlayedClient(Client):
    """Answers every log with one text, and remembers what was asked."""

    def __init__(self, answer: bytes | ClientError) -> None:
        self.answer = answer
        self.asked: list[tuple[str, dict[str, str]]] = []

    def stream(
        self, path: str, query: Mapping[str, str] | None = None, *, timeout: float | None = None
    ) -> Iterator[bytes]:
        self.asked.append((path, dict(query or {})))
        if isinstance(self.answer, ClientError):
            raise self.answer
        yield self.answer


@pytest.mark.parametrize(
    ("state", "last", "expected"),
    [
        (LOOP, FAILED, [("c", True)]),
        (LOOP, DONE, [("c", True)]),
        ({"running": {}}, FAILED, [("c", True)]),
        (FAILED, {}, [("c", False)]),
        (FAILED, FAILED, [("c", False)]),
        (DONE, {}, []),
        ({"running": {}}, DONE, []),
        ({"running": {}}, {}, []),
        (PULLS, {}, []),
    ],
)
def test_a_container_has_crashed_when_it_ended_with_an_error_or_loops(
    state: dict[str, Any], last: dict[str, Any], expected: list[tuple[str, bool]]
) -> None:
    assert list(crashed(a_pod(state, last))) == expected


def test_init_containers_crash_too() -> None:
    assert list(crashed(a_pod(FAILED, {}, "initContainerStatuses"))) == [("c", False)]


def test_the_previous_runs_last_lines_are_asked_for() -> None:
    client = PlayedClient(b"starting\nconfig: missing key PORT\n")
    assert last_words(client, a_pod(LOOP, FAILED)) == {"c": ["starting", "config: missing key PORT"]}
    ((path, query),) = client.asked
    assert path == "/containerLogs/ns/p/c"
    assert (query["tailLines"], query["previous"]) == ("10", "true")


def test_a_log_that_cannot_be_had_says_why() -> None:
    assert last_words(PlayedClient(ClientError("gone")), a_pod(LOOP, FAILED)) == {"c": ["<gone>"]}


def test_a_container_that_said_nothing_has_no_last_words() -> None:
    assert last_words(PlayedClient(b"\n"), a_pod(LOOP, FAILED)) == {}


def test_a_line_cannot_paint_the_terminal_nor_fill_it() -> None:
    assert "\x1b" not in shown("\x1b[31mred\tx\r")
    assert len(shown("x" * 100_000)) < 600
