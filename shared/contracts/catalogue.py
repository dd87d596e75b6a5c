"""Every message of the registry with its place on the bus: what docs, fingerprints and golden messages go through."""

from __future__ import annotations

from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from shared.contracts.registry import HINTS, KEYS, REQUESTS

Role = Literal["request", "reply", "hint", "key"]


@dataclass(frozen=True)
class Message:
    place: str
    """`podbus_pods.pod`, `podworker.e.released`, `source.q.sources.request`: unique, usable as a directory's name."""
    role: Role
    type: type[msgspec.Struct]
    example: msgspec.Struct


def messages() -> tuple[Message, ...]:
    """In the registry's order."""
    found = [Message(f"{key.bucket.name}.{key.prefix}", "key", key.body, key.example) for key in KEYS]
    for request in REQUESTS:
        place = f"{request.service}.{request.kind}.{request.what}"
        found.append(Message(f"{place}.request", "request", request.request, request.example))
        found.append(Message(f"{place}.reply", "reply", request.reply, request.example_reply))
    for hint in HINTS:
        found.append(Message(f"{hint.service}.e.{hint.what}", "hint", hint.body, hint.example))
    return tuple(found)


def structs_of(root: type[msgspec.Struct]) -> dict[str, type[msgspec.Struct]]:
    """The type and all that it holds, by name. Raises ValueError when two have one name."""
    found: dict[str, type[msgspec.Struct]] = {}
    _collect(root, found)
    return found


def all_structs() -> dict[str, type[msgspec.Struct]]:
    """Of every message, by name, sorted. Raises ValueError when two have one name."""
    found: dict[str, type[msgspec.Struct]] = {}
    for message in messages():
        _collect(message.type, found)
    return dict(sorted(found.items()))


def field_types(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Python name -> resolved annotation."""
    return get_type_hints(struct)


def _collect(annotation: Any, found: dict[str, type[msgspec.Struct]]) -> None:
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        known = found.setdefault(annotation.__name__, annotation)
        if known is not annotation:
            raise ValueError(
                f"two messages are named {annotation.__name__}: {known.__module__}, {annotation.__module__}"
            )
        for inner in field_types(annotation).values():
            if inner not in found.values():
                _collect(inner, found)
    elif get_origin(annotation) is not Literal:
        for inner in get_args(annotation):
            _collect(inner, found)


def type_text(annotation: Any) -> str:
    """`list[PodCondition]`, `str | None`: the same text on every Python version."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Ellipsis:
        return "..."
    if annotation is None or annotation is type(None):
        return "None"
    if annotation is msgspec.UnsetType:
        return "absent"
    if annotation is msgspec.Raw:
        return "JSON"
    if origin is Literal:
        return "Literal[" + ", ".join(f'"{value}"' for value in arguments) + "]"
    if origin in (Union, UnionType):
        return " | ".join(type_text(inner) for inner in arguments)
    if origin is not None:
        return f"{origin.__name__}[{', '.join(type_text(inner) for inner in arguments)}]"
    return str(annotation.__name__)
