"""Flags as layers over the configuration's files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shared.runtime.config_files import Layer, Place
from shared.runtime.config_flags import CONFIG_FLAGS, MERGED


def flag_layers(flags: Mapping[str, str]) -> tuple[list[Layer], list[str]]:
    """A layer per flag, as its field would be in a file, and what can't be read."""
    layers: list[Layer] = []
    errors: list[str] = []
    for name, text in flags.items():
        flag = CONFIG_FLAGS[name]
        try:
            value: Any = flag.parse(text)
        except ValueError as error:
            errors.append(f"--{name}: {error}")
            continue
        document = value
        for key in reversed(flag.place):
            document = {key: document}
        lines = {flag.place[:depth]: 0 for depth in range(1, len(flag.place) + 1)}
        layers.append(Layer(f"--{name}", document, lines))
    return layers, errors


def without_replaced(document: dict[str, Any], flags: Iterable[str]) -> dict[str, Any]:
    """The document of the files, without what the flags replace as a whole."""
    for name in flags:
        flag = CONFIG_FLAGS[name]
        if flag.field not in MERGED:
            document = _without(document, flag.place)
    return document


def _without(document: dict[str, Any], place: Place) -> dict[str, Any]:
    key, *rest = place
    inner = document.get(key)
    if not rest:
        return {name: value for name, value in document.items() if name != key}
    return {**document, key: _without(inner, tuple(rest))} if isinstance(inner, dict) else document
