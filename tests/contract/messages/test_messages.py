"""What may be sent: every message survives its way, and an older or newer one is still understood."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.contracts.catalogue import Message, all_structs, field_types, messages
from shared.contracts.envelope import VERSION, Envelope

GOLDEN = Path(__file__).parent / "golden"
MESSAGES = messages()


def place(message: Any) -> str:
    return message.place if isinstance(message, Message) else ""


def decoded(message: Message, data: bytes) -> Any:
    return msgspec.json.decode(data, type=message.type)


def is_within(part: Any, whole: Any) -> bool:
    """All that `part` says, `whole` says too."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_within(value, whole[key]) for key, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(is_within, part, whole))
    return bool(part == whole)


def with_strange_fields(value: Any, annotation: Any) -> Any:
    """The JSON value with a field more in every object that is a message; documents inside are left alone."""
    for inner in (annotation, *get_args(annotation)):
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct) and isinstance(value, dict):
            types = field_types(inner)
            names = {field.encode_name: types[field.name] for field in msgspec.structs.fields(inner)}
            known = {key: with_strange_fields(item, names[key]) for key, item in value.items()}
            return {**known, "zzzFromTheFuture": {"deep": [1, None]}}
    if get_origin(annotation) in (list, tuple) and isinstance(value, list):
        return [with_strange_fields(item, get_args(annotation)[0]) for item in value]
    return value


def values(annotation: Any) -> st.SearchStrategy[Any]:
    """Any value of a field's type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is None or annotation is type(None):
        return st.none()
    if annotation is msgspec.UnsetType:
        return st.just(msgspec.UNSET)
    if annotation is msgspec.Raw:
        return st.sampled_from([b"{}", b'{"a":[1,"\xc3\xa4"]}', b"[]"]).map(msgspec.Raw)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is list:
        return st.lists(values(arguments[0]), max_size=2)
    if origin is tuple:
        return st.lists(values(arguments[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=2)
    if arguments:
        return st.one_of([values(inner) for inner in arguments])
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
        int: st.integers(-(1 << 53), 1 << 53),
        float: st.floats(allow_nan=False, allow_infinity=False),
        bool: st.booleans(),
    }
    if annotation in simple:
        return simple[annotation]
    fields = {name: values(inner) for name, inner in field_types(annotation).items()}
    return st.builds(annotation, **fields)


@pytest.mark.parametrize("message", MESSAGES, ids=place)
def test_an_example_survives_dump_and_load(message: Message) -> None:
    """What the registry shows can be sent as it is."""
    assert decoded(message, msgspec.json.encode(message.example)) == message.example


@pytest.mark.parametrize("message", MESSAGES, ids=place)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_message_survives_dump_and_load(message: Message, data: st.DataObject) -> None:
    """Whatever the fields hold, what is read is what was written."""
    sent = data.draw(values(message.type))
    assert decoded(message, msgspec.json.encode(sent)) == sent


@pytest.mark.parametrize("message", MESSAGES, ids=place)
def test_a_reader_ignores_fields_that_it_does_not_know(message: Message) -> None:
    """A newer writer may be on the bus already."""
    wire = json.loads(msgspec.json.encode(message.example))
    strange = with_strange_fields(wire, message.type)
    assert strange != wire
    assert decoded(message, json.dumps(strange).encode()) == decoded(message, json.dumps(wire).encode())


@pytest.mark.parametrize("message", MESSAGES, ids=place)
def test_a_message_can_not_be_changed_once_made(message: Message) -> None:
    """Messages are facts."""
    assert message.type.__struct_config__.frozen


@pytest.mark.parametrize("struct", all_structs().values(), ids=lambda struct: struct.__name__)
def test_no_part_of_a_message_refuses_unknown_fields(struct: type[msgspec.Struct]) -> None:
    """Else an older reader could not read a newer message."""
    assert not struct.__struct_config__.forbid_unknown_fields


@pytest.mark.parametrize("message", [m for m in MESSAGES if m.role == "key"], ids=place)
def test_a_value_in_a_bucket_carries_the_envelope(message: Message) -> None:
    """Version, node and time tell a reader what it holds, without the key."""
    assert issubclass(message.type, Envelope)
    assert isinstance(message.example, Envelope)
    assert message.example.v == VERSION


def golden_files() -> list[Any]:
    return [
        pytest.param(message, path, id=f"{message.place}/{path.stem}")
        for message in MESSAGES
        for path in sorted((GOLDEN / message.place).glob("*.json"))
    ]


@pytest.mark.parametrize(("message", "path"), golden_files())
def test_a_golden_message_is_still_readable(message: Message, path: Path) -> None:
    """Golden messages were sent by older versions: they are never edited, and nothing that they say is lost."""
    written = json.loads(path.read_bytes())
    read_again = json.loads(msgspec.json.encode(decoded(message, path.read_bytes())))
    assert is_within(written, read_again)


def test_every_message_has_a_golden_one_and_no_other_is_there() -> None:
    """`make docs` writes the first golden message of a new entry."""
    assert {path.parent.name for path in GOLDEN.glob("*/*.json")} == {message.place for message in MESSAGES}
