"""Checks a JSON-like value against the types of the v1 API and gives back the part that conforms.

The result holds only known fields of the right type (a null is an unset field, as in Go), so everything
after this may rely on types. What doesn't conform is told with its path and left out.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from typing import Any

from services.source.core.field_errors import FieldError, FieldErrors, quote, show
from services.source.core.field_table import SCALARS, TYPES
from services.source.core.unknown_fields import suggest
from shared.kube.quantity import Quantity, QuantityError

JsonObject = dict[str, Any]

_TIME = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)
_SIMPLE_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_NAMES = {"int32": "integer", "int64": "integer", "bool": "boolean", "object": "object"}
#: Hints cost a search of the whole table; a file with more unknown fields than this is no pod with typing errors.
_MAX_HINTS = 50
_ZERO: dict[str, Any] = {"bool": False, "int32": 0, "int64": 0, "intstr": 0, "quantity": "0"}


class Conformer:
    """One walk over one object. `wrong` are the paths whose value was left out."""

    __slots__ = ("_hints", "_root_type", "_strict", "errors", "prefix", "wrong")

    def __init__(self, root_type: str, prefix: str, *, strict: bool) -> None:
        self.errors = FieldErrors()
        self.wrong: set[str] = set()
        self._root_type = root_type
        self.prefix = prefix
        self._strict = strict
        self._hints = 0

    def conform(self, value: JsonObject) -> JsonObject:
        """The conforming part of the root object."""
        return self._struct(value, self._root_type, self.prefix, ())

    def _struct(self, value: JsonObject, kind: str, path: str, pattern: tuple[str, ...]) -> JsonObject:
        fields = TYPES[kind]
        found: JsonObject = {}
        dot = f"{path}." if path else ""
        for key, inner in value.items():
            field_type = fields.get(key)
            if field_type is None:
                self._unknown(dot, key, kind, pattern)
            elif inner is not None:
                place = dot + key
                conformed = self._value(inner, field_type, place, pattern, key)
                if conformed is not None:
                    found[key] = conformed
        return found

    def _unknown(self, dot: str, key: str, kind: str, pattern: tuple[str, ...]) -> None:
        place = f"{dot}{key}" if _SIMPLE_KEY.fullmatch(key) else f"{dot.removesuffix('.')}[{key}]"
        self._hints += 1
        hint = suggest(self._root_type, pattern, kind, key) if self._hints <= _MAX_HINTS else ""
        add = self.errors.add if self._strict else self.errors.warn
        add(place, f"unknown field {quote(key)}", hint=hint)

    def _value(self, value: Any, kind: str, path: str, pattern: tuple[str, ...], step: str) -> Any:
        if kind.startswith("[]"):
            return self._list(value, kind[2:], path, pattern, step)
        if kind.startswith("{}"):
            return self._map(value, kind[2:], path)
        if kind in SCALARS:
            return self._scalar(value, kind, path)
        if not isinstance(value, dict):
            return self._mismatch(path, "object", value)
        return self._struct(value, kind, path, (*pattern, step))

    def _list(self, value: Any, kind: str, path: str, pattern: tuple[str, ...], step: str) -> Any:
        if not isinstance(value, list):
            return self._mismatch(path, "list", value)
        found: list[Any] = []
        zero: Any = _ZERO.get(kind, "") if kind in SCALARS else {}
        for index, item in enumerate(value):
            place = f"{path}[{index}]"
            conformed = None
            if item is not None:
                conformed = self._value(item, kind, place, pattern, f"{step}[{index}]")
            # A left-out item leaves an empty one, so that the others keep their index.
            found.append((dict(zero) if zero == {} else zero) if conformed is None else conformed)
        return found

    def _map(self, value: Any, kind: str, path: str) -> Any:
        if not isinstance(value, dict):
            return self._mismatch(path, "object", value)
        found: JsonObject = {}
        for key, item in value.items():
            if "\0" in key:
                self._wrong(path, "a key must not contain a NUL character")
                continue
            conformed = self._scalar(item, kind, f"{path}[{key}]") if item is not None else None
            found[key] = _ZERO.get(kind, "") if conformed is None else conformed
        return found

    def _scalar(self, value: Any, kind: str, path: str) -> Any:
        if kind == "string":
            if not isinstance(value, str):
                return self._mismatch(path, "string", value)
            return value if "\0" not in value else self._wrong(path, "must not contain a NUL character")
        if kind == "bool":
            return value if isinstance(value, bool) else self._mismatch(path, "boolean", value)
        if kind in _RANGES:
            return self._integer(value, kind, path)
        if kind == "quantity":
            return self._quantity(value, path)
        if kind == "intstr":
            if isinstance(value, str):
                return value
            if isinstance(value, int) and not isinstance(value, bool):
                return self._integer(value, "int32", path)
            return self._mismatch(path, "integer or string", value)
        if kind == "time":
            if isinstance(value, str) and _TIME.fullmatch(value):
                return value
            return self._mismatch(path, "RFC 3339 time", value)
        if kind == "bytes":
            return self._bytes(value, path)
        return value if isinstance(value, dict) else self._mismatch(path, "object", value)

    def _integer(self, value: Any, kind: str, path: str) -> Any:
        if not isinstance(value, int) or isinstance(value, bool):
            return self._mismatch(path, "integer", value)
        low, high = _RANGES[kind]
        if not low <= value <= high:
            return self._wrong(path, f"{show(value)} doesn't fit into {kind}")
        return value

    def _quantity(self, value: Any, path: str) -> Any:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return self._mismatch(path, "quantity", value)
        text = value if isinstance(value, str) else repr(value) if isinstance(value, float) else show(value)
        try:
            return str(Quantity.parse(text))
        except QuantityError as error:
            return self._wrong(path, f"Invalid value: {show(value)}: {error}", hint=_quantity_hint(text))

    def _bytes(self, value: Any, path: str) -> Any:
        if not isinstance(value, str):
            return self._mismatch(path, "base64 string", value)
        try:
            # Go's decoder skips line breaks and nothing else.
            base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
        except (binascii.Error, ValueError):
            # Never shows the value: it may be a secret.
            return self._wrong(path, "not valid base64", hint="plain text belongs in stringData (Secret) or data")
        return value

    def _mismatch(self, path: str, expected: str, value: Any) -> None:
        if self._root_type == "Secret":
            # A value of the wrong type may still be the secret.
            self._wrong(path, f"expected {expected}, got {_described(value).partition(' ')[0]}")
            return
        self._wrong(path, f"expected {expected}, got {_described(value)}", hint=_mismatch_hint(expected, value))

    def _wrong(self, path: str, message: str, *, hint: str = "") -> None:
        self.wrong.add(path)
        self.errors.add(path, message, hint=hint)


def without_consequences(errors: Iterable[FieldError], wrong: set[str]) -> list[FieldError]:
    """The errors that aren't only there because a value of a wrong type was left out."""
    if not wrong:
        return list(errors)
    above = {outer for path in wrong for outer in _upwards(path)}
    return [
        error
        for error in errors
        if not (
            any(place in wrong for place in _upwards(error.field))
            or (error.field in above and error.message.startswith("Required"))
        )
    ]


def _upwards(path: str) -> Iterator[str]:
    """The path itself and everything that it stands in."""
    yield path
    for end in range(len(path) - 1, 0, -1):
        if path[end] in ".[":
            yield path[:end]


def _described(value: Any) -> str:
    if isinstance(value, bool):
        return f"boolean {show(value)}"
    if isinstance(value, int):
        return f"integer {show(value)}"
    if isinstance(value, float):
        return f"number {show(value)}"
    if isinstance(value, str):
        return f"string {show(value)}"
    return "a list" if isinstance(value, list) else "an object"


def _mismatch_hint(expected: str, value: Any) -> str:
    if expected == "string" and isinstance(value, bool):
        return "yes, no, on, off, true and false are booleans in YAML; put quotes around it"
    if expected == "string" and isinstance(value, int | float):
        return f'put quotes around it: "{show(value)}"'
    if expected == "integer" and isinstance(value, str) and value.lstrip("-").isdecimal():
        return "remove the quotes"
    if expected == "boolean" and value in ("true", "false"):
        return "remove the quotes"
    if expected == "list" and isinstance(value, dict):
        return 'each item begins with "- "'
    return ""


def _quantity_hint(text: str) -> str:
    lowered = text.strip().lower()
    for wrong, right in (("gib", "Gi"), ("mib", "Mi"), ("kib", "Ki"), ("gb", "G"), ("mb", "M"), ("kb", "k")):
        if lowered.endswith(wrong) and lowered[: -len(wrong)].strip().isdecimal():
            return f'did you mean "{lowered[: -len(wrong)].strip()}{right}"?'
    return ""
