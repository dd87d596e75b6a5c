"""SQLAlchemy core -> ready-made SQL, for a service's `adapters/statements.py`. Loaded by the tools only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, bindparam, func, select
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.elements import ClauseElement

from shared.storage.statements import Statement

_DIALECT = sqlite.dialect(paramstyle="named")


def compiled(element: ClauseElement, columns: Sequence[str] | None = None) -> Statement:
    """`columns`: those that an INSERT is given values for."""
    found = element.compile(dialect=_DIALECT, column_keys=columns)
    # what isn't a literal of the statement has a mark here, not a plain value
    constants = {key: value for key, value in found.params.items() if type(value) in (str, int, float)}
    return Statement(" ".join(str(found).split()), constants)


def listed_in(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """`column IN (...)`, with the list bound as one value under that name: `as_list` (shared.storage.connection)."""
    each = func.json_each(bindparam(name)).table_valued("value")
    return column.in_(select(each.c.value))
