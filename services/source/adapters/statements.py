"""The statements of source.db. `make docs` writes their text to statements.json; source_store runs that."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BindParameter, bindparam, delete, insert, select

from services.source.adapters.tables import objects, sources
from shared.storage.compiling import compiled

_asked: BindParameter[Any] = bindparam("source")

STATEMENTS = {
    "source": compiled(select(sources).where(sources.c.source == _asked)),
    "objects": compiled(select(objects).where(objects.c.source == _asked)),
    "forget_source": compiled(delete(sources).where(sources.c.source == _asked)),
    "forget_objects": compiled(delete(objects).where(objects.c.source == _asked)),
    "add_source": compiled(insert(sources), [column.name for column in sources.columns]),
    "add_object": compiled(insert(objects), [column.name for column in objects.columns]),
}
