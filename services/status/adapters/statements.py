"""The statements of status.db. `make docs` writes their text to statements.json; event_store runs that."""

from __future__ import annotations

from itertools import combinations

from sqlalchemy import bindparam, delete, func, select
from sqlalchemy.dialects.sqlite import insert

from services.status.adapters.database import query_name
from services.status.adapters.tables import events, node, seen_events
from shared.storage.compiling import compiled, listed_in
from shared.storage.statements import Statement

_FILTERS = {
    "namespace": events.c.involved_namespace,
    "name": events.c.involved_name,
    "uid": events.c.involved_uid,
}

_newest_first = (events.c.last_seen.desc(), events.c.id.desc())
_add, _keep = insert(events), insert(node)


def _query(filters: tuple[str, ...]) -> Statement:
    statement = select(events).order_by(*_newest_first).limit(bindparam("most"))
    for name in filters:
        statement = statement.where(_FILTERS[name] == bindparam(name))
    return compiled(statement)


STATEMENTS = {
    "known": compiled(select(seen_events.c.id).where(listed_in(seen_events.c.id, "ids"))),
    "remember": compiled(insert(seen_events), ["id", "time"]),
    "count": compiled(
        _add.on_conflict_do_update(
            index_elements=["key"],
            set_={
                # of events that are combined, the last one's
                "message": _add.excluded.message,
                "involved": _add.excluded.involved,
                "count": events.c.count + _add.excluded.count,
                "first_seen": func.min(events.c.first_seen, _add.excluded.first_seen),
                "last_seen": func.max(events.c.last_seen, _add.excluded.last_seen),
            },
        ),
        [column.name for column in events.columns if not column.primary_key],
    ),
    **{
        query_name(filters): _query(filters)
        for count in range(len(_FILTERS) + 1)
        for filters in combinations(_FILTERS, count)
    },
    "old_events": compiled(delete(events).where(events.c.last_seen < bindparam("oldest"))),
    "old_seen": compiled(delete(seen_events).where(seen_events.c.time < bindparam("oldest"))),
    "surplus_events": compiled(
        delete(events).where(
            events.c.id.in_(select(events.c.id).order_by(*_newest_first).limit(-1).offset(bindparam("most")))
        )
    ),
    "surplus_seen": compiled(
        delete(seen_events).where(
            seen_events.c.id.in_(
                select(seen_events.c.id).order_by(seen_events.c.time.desc()).limit(-1).offset(bindparam("most"))
            )
        )
    ),
    "load_node": compiled(select(node.c.memory)),
    "save_node": compiled(
        _keep.on_conflict_do_update(index_elements=["id"], set_={"memory": _keep.excluded.memory}), ["id", "memory"]
    ),
}
