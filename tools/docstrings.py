"""The docstring under a class's field, which Python drops: read from the source by ast."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path


def field_texts(paths: Iterable[Path]) -> dict[str, dict[str, str]]:
    """Class name -> field -> its docstring on one line ("" = none). A subclass has its bases' fields too, first."""
    bases: dict[str, list[str]] = {}
    own: dict[str, dict[str, str]] = {}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]
                own[node.name] = _own_fields(node)

    def full(name: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for base in bases.get(name, []):
            found.update(full(base))
        return {**found, **own.get(name, {})}

    return {name: full(name) for name in own}


def _own_fields(node: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    previous = ""
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            previous = statement.target.id
            found[previous] = ""
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and previous:
            found[previous] = " ".join(str(statement.value.value).split())
            previous = ""
        else:
            previous = ""
    return found
