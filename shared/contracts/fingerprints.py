"""Fingerprints: every message's fields, types and defaults as they were agreed (fingerprints.json beside this file).

Within a version fields are only added, with a default. A writer leaves a field out that has its default, so the
default is a part of the agreement too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from shared.contracts.catalogue import all_structs, field_types, messages, structs_of, type_text
from shared.contracts.envelope import VERSION

Fingerprints = dict[str, Any]
"""{"v": 1, "messages": {"PodDesired": {"direction": "told", "fields": {"uid": "str", "ts": "float"}}}}"""

REMEDY = (
    "Within a version fields are only added, with a default. For anything else add a new message beside the old one"
    " (docs/adding-a-message.md), or raise VERSION in shared/contracts/envelope.py."
)
_LITERAL = "Literal["


def fingerprints() -> Fingerprints:
    """Of the code as it is."""
    told: set[str] = set()
    for message in messages():
        if message.role != "request":
            told |= structs_of(message.type).keys()
    return {
        "v": VERSION,
        "messages": {
            name: {"direction": "told" if name in told else "asked", "fields": _fields(struct)}
            for name, struct in all_structs().items()
        },
    }


def faults(agreed: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """Why the current messages break what was agreed, one sentence each; [] also when the version is a new one.

    A message that is only asked (`direction`) may gain values of a Literal: its owner answers "invalid" to what it
    doesn't know. In one that is told an old reader could not read the whole message.
    """
    if agreed["v"] != current["v"]:
        return []
    found = []
    for name, old in agreed["messages"].items():
        new = current["messages"].get(name)
        if new is None:
            found.append(f"{name} is gone")
            continue
        for field, text in old["fields"].items():
            if field not in new["fields"]:
                found.append(f"{name}.{field} is gone")
            elif not _is_same(text, new["fields"][field], may_grow=new["direction"] == "asked"):
                found.append(f"{name}.{field} was `{text}` and is `{new['fields'][field]}`")
        for field, text in new["fields"].items():
            if field not in old["fields"] and " = " not in text:
                found.append(f"{name}.{field} is new and has no default: messages of before don't have it")
    return found


def to_json(found: Mapping[str, Any]) -> str:
    """The text of fingerprints.json."""
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def default_text(field: msgspec.structs.FieldInfo) -> str:
    """As JSON; `absent` for a field that isn't written then. Only for a field that has a default."""
    value = field.default
    if value is msgspec.NODEFAULT:
        value = field.default_factory()
    return "absent" if value is msgspec.UNSET else msgspec.json.encode(value).decode()


def _fields(struct: type[msgspec.Struct]) -> dict[str, str]:
    types = field_types(struct)
    found = {}
    for field in msgspec.structs.fields(struct):
        text = type_text(types[field.name])
        found[field.encode_name] = text if field.required else f"{text} = {default_text(field)}"
    return found


def _is_same(old: str, new: str, *, may_grow: bool) -> bool:
    if old == new:
        return True
    if not (may_grow and old.startswith(_LITERAL) and new.startswith(_LITERAL)):
        return False
    old_values, _, old_rest = old.removeprefix(_LITERAL).partition("]")
    new_values, _, new_rest = new.removeprefix(_LITERAL).partition("]")
    return old_rest == new_rest and set(old_values.split(", ")) <= set(new_values.split(", "))
