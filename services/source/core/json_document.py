"""JSON values of a file, one after the other, with lines found only when asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from json.decoder import py_scanstring  # type: ignore[attr-defined]
from typing import Any

from services.source.core.field_errors import quote
from services.source.core.positions import PathStep

MAX_DEPTH = 100
_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[^\s,\]}]+")
_OPENERS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{\]}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class JsonError:
    """A fault in the text, at a line of it."""

    line: int
    message: str
    hint: str = ""


@dataclass(slots=True)
class JsonPosition:
    """Where a value stands; `children` by key or index."""

    line: int
    children: dict[PathStep, JsonPosition]

    def child(self, step: PathStep) -> JsonPosition | None:
        return self.children.get(step)


class LazyJsonPosition:
    """The root of a document's positions; it scans the text at the first question."""

    def __init__(self, text: str, start: int, line: int) -> None:
        self._text = text
        self._start = start
        self._line = line
        self._root: JsonPosition | None = None

    @property
    def line(self) -> int:
        return self._line

    def child(self, step: PathStep) -> JsonPosition | None:
        return self._scanned().child(step)

    def _scanned(self) -> JsonPosition:
        if self._root is None:
            self._root = _Scanner(self._text, self._start, self._line).root
        return self._root


class _Duplicate(Exception):
    """An object has a key twice (found while decoding; the scanner then finds where)."""


def read_json(text: str) -> Iterator[tuple[object, LazyJsonPosition] | JsonError]:
    """Every value of the text with its positions; the first fault ends it."""
    index = _skip(text, 0)
    surrogates = _SURROGATE_ESCAPE.search(text) is not None
    if (deep := _too_deep(text)) is not None:
        yield deep
        return
    start, line = 0, 1
    while index < len(text):
        line += text.count("\n", start, index)
        start = index
        try:
            try:
                value, index = _DECODER.raw_decode(text, start)
            except _Duplicate:
                # The scanner trusts its text, so the rest of the value is decoded first.
                _, index = _LENIENT.raw_decode(text, start)
                scanner = _Scanner(text, start, line)
                yield JsonError(*(scanner.duplicate or (line, "duplicate key")))
                index = _skip(text, index)
                continue
        except json.JSONDecodeError as error:
            hint = "" if text[start] != "{" else "the file starts with { so it is read as JSON"
            yield JsonError(error.lineno, f"not valid JSON: {error.msg} (column {error.colno})", hint)
            return
        except ValueError as error:
            # Infinity, NaN and integers of thousands of digits.
            yield JsonError(line, f"not valid JSON: {str(error).partition(';')[0]}")
            return
        yield scrubbed(value) if surrogates else value, LazyJsonPosition(text, start, line)
        index = _skip(text, index)


def scrubbed(value: object) -> object:
    """The value with lone surrogates (from "\\ud800") as U+FFFD, as Go's decoder has them: UTF-8 can't say
    them."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_SURROGATE.sub("\ufffd", key): scrubbed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [scrubbed(inner) for inner in value]
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Duplicate
    return found


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def _parse_float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_refuse, parse_float=_parse_float)
_LENIENT = json.JSONDecoder(parse_constant=_refuse, parse_float=_parse_float)


def _skip(text: str, index: int) -> int:
    match = _SPACE.match(text, index)
    return match.end() if match else index


def _line(text: str, index: int) -> int:
    return text.count("\n", 0, index) + 1


def _too_deep(text: str) -> JsonError | None:
    """The decoder recurses, so depth is bounded before it runs."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return None
    depth = 0
    for match in _OPENERS.finditer(text):
        bracket = match[0]
        if bracket in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return JsonError(_line(text, match.start()), f"nested more than {MAX_DEPTH} levels deep")
        elif bracket in "]}":
            depth -= 1
    return None


class _Scanner:
    """Walks text that the decoder has accepted, noting lines and the first duplicate key."""

    def __init__(self, text: str, start: int, line: int) -> None:
        self._text = text
        self._at = start
        self._line = line
        self.duplicate: tuple[int, str] | None = None
        self.root = self._value()

    def _move(self, end: int) -> None:
        self._line += self._text.count("\n", self._at, end)
        self._at = end

    def _space(self) -> None:
        self._move(_skip(self._text, self._at))

    def _value(self) -> JsonPosition:
        self._space()
        node = JsonPosition(self._line, {})
        opener = self._text[self._at : self._at + 1]
        if opener == "{":
            self._object(node)
        elif opener == "[":
            self._list(node)
        elif opener == '"':
            self._string()
        else:
            match = _SCALAR.match(self._text, self._at)
            self._move(match.end() if match else len(self._text))
        return node

    def _string(self) -> str:
        value, end = py_scanstring(self._text, self._at + 1, True)
        self._move(end)
        return str(value)

    def _next_is(self, closer: str) -> bool:
        self._space()
        if self._text[self._at : self._at + 1] in (closer, ""):
            self._move(min(self._at + 1, len(self._text)))
            return True
        if self._text[self._at] == ",":
            self._move(self._at + 1)
            self._space()
        return False

    def _object(self, node: JsonPosition) -> None:
        self._move(self._at + 1)
        while not self._next_is("}"):
            line = self._line
            key = self._string()
            self._space()
            self._move(self._at + 1)  # the colon
            value = self._value()
            if key in node.children and self.duplicate is None:
                first = node.children[key].line
                self.duplicate = (line, f"duplicate key {quote(key)}: it is already on line {first}")
            node.children[key] = JsonPosition(line, value.children)

    def _list(self, node: JsonPosition) -> None:
        self._move(self._at + 1)
        index = 0
        while not self._next_is("]"):
            node.children[index] = self._value()
            index += 1
