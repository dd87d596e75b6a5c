"""Collects validation errors with the texts of apimachinery's util/validation/field."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SHOWN = 200


def quote(text: str) -> str:
    """Go's %q, shortened so that a huge value can't flood a message."""
    cut = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return '"' + "".join(_ESCAPES.get(c) or (c if c.isprintable() else f"\\u{ord(c):04x}") for c in cut) + '"'


def show(value: object) -> str:
    """A value as Kubernetes prints it in an error."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "list"
    text = str(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def child_key(path: str, key: str) -> str:
    """The path of a map's entry: `metadata.labels[a.b/c]`."""
    return f"{path}[{key}]"


@dataclass(frozen=True, slots=True)
class FieldError:
    """`at` is the finer place to look the line up by, where the path that Kubernetes prints is coarser."""

    field: str
    message: str
    at: str
    hint: str = ""
    warning: bool = False


class FieldErrors:
    """A list of errors with one method per kind of Kubernetes error."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: list[FieldError] = []

    def add(self, field: str, message: str, *, at: str = "", hint: str = "") -> None:
        self.found.append(FieldError(field, message, at or field, hint))

    def warn(self, field: str, message: str, *, at: str = "", hint: str = "") -> None:
        self.found.append(FieldError(field, message, at or field, hint, warning=True))

    def invalid(self, field: str, value: object, detail: str, *, at: str = "", hint: str = "") -> None:
        self.add(field, f"Invalid value: {show(value)}: {detail}", at=at, hint=hint)

    def invalid_all(self, field: str, value: object, details: Iterable[str], *, at: str = "") -> None:
        for detail in details:
            self.invalid(field, value, detail, at=at)

    def required(self, field: str, detail: str = "", *, hint: str = "") -> None:
        self.add(field, f"Required value: {detail}" if detail else "Required value", hint=hint)

    def duplicate(self, field: str, value: object) -> None:
        self.add(field, f"Duplicate value: {show(value)}")

    def unsupported(self, field: str, value: object, supported: Iterable[str]) -> None:
        names = ", ".join(quote(name) for name in sorted(supported))
        self.add(field, f"Unsupported value: {show(value)}: supported values: {names}")

    def forbidden(self, field: str, detail: str, *, hint: str = "") -> None:
        self.add(field, f"Forbidden: {detail}", hint=hint)

    def too_many(self, field: str, count: int, limit: int) -> None:
        self.add(field, f"Too many: {count}: must have at most {limit} items")

    def too_long(self, field: str, limit: int, *, at: str = "") -> None:
        self.add(field, f"Too long: may not be more than {limit} bytes", at=at)

    def not_negative(self, field: str, value: object) -> None:
        if isinstance(value, int) and value < 0:
            self.invalid(field, value, "must be greater than or equal to 0")

    def one_of(self, field: str, value: object, supported: Iterable[str]) -> None:
        """An enumerated string; an unset one is the caller's matter."""
        if isinstance(value, str) and value not in (names := tuple(supported)):
            self.unsupported(field, value, names)
