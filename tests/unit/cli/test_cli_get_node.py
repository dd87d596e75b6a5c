"""`podbus get node` tells what is wrong with the node."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from cli import get as get_module
from cli.get import get
from cli.main import build_parser

ANSWERS: dict[str, dict[str, Any]] = {
    "/podbus/node": {"metadata": {"name": "n1"}, "spec": {}, "status": {}},
    "/podbus": {"troubles": ["no worker runs", "the disk is full"]},
}


class PlayedClient:
    def get(self, path: str) -> dict[str, Any]:
        return ANSWERS[path]


@pytest.fixture
def arguments(monkeypatch: pytest.MonkeyPatch) -> argparse.Namespace:
    monkeypatch.setattr(get_module, "client_of", lambda _data: PlayedClient())
    return build_parser().parse_args(["get", "node"])


def test_troubles_are_told_apart_from_the_output(
    arguments: argparse.Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert get(arguments) == 0
    told = capsys.readouterr()
    assert told.err == "trouble: no worker runs\ntrouble: the disk is full\n"
    assert "trouble" not in told.out
