"""Finds the line of a field path in a document, only when a problem has to be told."""

from __future__ import annotations

import re
from typing import Protocol

PathStep = str | int
_STEP = re.compile(r"\[([^\]]*)\]|([^.\[]+)")


class Located(Protocol):
    """A node of a parsed document that knows where it and its children stand."""

    @property
    def line(self) -> int:
        """The line in the file, from 1."""

    def child(self, step: PathStep) -> Located | None:
        """The entry of a mapping or the item of a list; None = there is none."""


def split_path(path: str) -> list[PathStep]:
    """`spec.containers[0].env[a.b]` as steps; a bracket holds an index or a map's key."""
    steps: list[PathStep] = []
    for match in _STEP.finditer(path):
        inside, name = match.groups()
        if name is not None:
            steps.append(name)
        else:
            steps.append(int(inside) if inside.isdecimal() and inside.isascii() and len(inside) < 9 else inside)
    return steps


def line_of(root: Located, path: str) -> int:
    """The line of the deepest part of the path that the document has."""
    node = root
    for step in split_path(path):
        inner = node.child(step)
        if inner is None and isinstance(step, int):
            inner = node.child(str(step))
        if inner is None:
            break
        node = inner
    return node.line
