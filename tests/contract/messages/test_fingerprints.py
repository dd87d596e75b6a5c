"""A message changes only by growing: the agreed fields, types and defaults are in fingerprints.json."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from shared.contracts import fingerprints as module
from shared.contracts.fingerprints import REMEDY, faults, fingerprints

AGREED = json.loads((Path(module.__file__).parent / "fingerprints.json").read_text())


def changed(**fields: dict[str, str | None]) -> dict[str, Any]:
    """The agreed fingerprints with these fields of these messages set, or taken away by None."""
    found: dict[str, Any] = copy.deepcopy(AGREED)
    for name, new in fields.items():
        for field, text in new.items():
            if text is None:
                del found["messages"][name]["fields"][field]
            else:
                found["messages"][name]["fields"][field] = text
    return found


def test_the_messages_keep_what_was_agreed() -> None:
    """The test that a careless change fails."""
    found = faults(AGREED, fingerprints())
    assert not found, "\n".join([*found, REMEDY])


def test_what_is_new_is_recorded() -> None:
    """An addition is a part of the agreement from its first day: `make docs` records it."""
    assert fingerprints() == AGREED, "the messages have grown: run `make docs` and commit fingerprints.json"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"uid": None}, "PodDesired.uid is gone"),
        ({"gen": "str"}, "PodDesired.gen was `int` and is `str`"),
        ({"gen": "int = 0"}, "PodDesired.gen was `int` and is `int = 0`"),
        ({"traceparent": 'str = "00"'}, 'PodDesired.traceparent was `str = ""` and is `str = "00"`'),
        ({"traceparent": "str"}, 'PodDesired.traceparent was `str = ""` and is `str`'),
        ({"shard": "int"}, "PodDesired.shard is new and has no default: messages of before don't have it"),
        (
            {"source": 'Literal["file", "http", "api", "git"]'},
            'PodDesired.source was `Literal["file", "http", "api"]` and is `Literal["file", "http", "api", "git"]`',
        ),
    ],
)
def test_a_change_that_an_older_version_would_misread_is_told(change: dict[str, str | None], told: str) -> None:
    """Removed, retyped, another default, required: the sentence names message and field."""
    assert faults(AGREED, changed(PodDesired=change)) == [told]


def test_a_message_that_is_gone_is_told() -> None:
    """Somebody may still send it."""
    found: dict[str, Any] = copy.deepcopy(AGREED)
    del found["messages"]["Heartbeat"]
    assert faults(AGREED, found) == ["Heartbeat is gone"]


def test_a_field_with_a_default_may_be_added() -> None:
    """Older readers ignore it, older writers leave it out."""
    assert faults(AGREED, changed(PodDesired={"shard": "int = 0"})) == []


KINDS = AGREED["messages"]["StreamCommand"]["fields"]["kind"]
WIDER = KINDS.replace("]", ', "another"]')


def test_a_request_may_gain_values() -> None:
    """Its owner answers "invalid" to a value that it doesn't know; nothing else is lost."""
    assert faults(AGREED, changed(StreamCommand={"kind": WIDER})) == []


def test_a_request_may_not_lose_values() -> None:
    """An older asker would be refused."""
    wider = changed(StreamCommand={"kind": WIDER})
    assert faults(wider, AGREED) == [f"StreamCommand.kind was `{WIDER}` and is `{KINDS}`"]


def test_a_new_version_may_change_everything() -> None:
    """It is spoken beside the old one."""
    assert faults(AGREED, {"v": AGREED["v"] + 1, "messages": {}}) == []
