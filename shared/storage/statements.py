"""Ready-made SQL. Statements are written with SQLAlchemy's core in a service's `adapters/statements.py`; `make docs`
writes their text beside it, and that is what the service loads and sqlite3 runs.

Why: SQLAlchemy is 15 MiB, and its first statements make each forked process copy another 9 MiB that it would otherwise
share. So only the migrations and the tools load it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

Values = Mapping[str, Any]

FILE = "statements.json"
"""Beside `statements.py`."""


class Statement(msgspec.Struct, frozen=True, omit_defaults=True):
    """One statement as text. Values are named as the columns or bind parameters are; lists aren't bound, see
    `listed_in` (shared.storage.compiling)."""

    text: str
    constants: dict[str, str | int | float] = {}
    """The literals that it was written with."""

    def with_constants(self, values: Values) -> Values:
        """The values, and the literals."""
        return {**self.constants, **values} if self.constants else values


def load_statements(directory: Path) -> dict[str, Statement]:
    """Those of a service, by name. Raises FileNotFoundError."""
    return msgspec.json.decode((directory / FILE).read_bytes(), type=dict[str, Statement])


def statements_text(statements: Mapping[str, Statement]) -> str:
    """The file's content: one statement a line."""
    lines = (f"{msgspec.json.encode(name).decode()}: {_line(one)}" for name, one in statements.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _line(statement: Statement) -> str:
    return msgspec.json.encode(statement).decode()
