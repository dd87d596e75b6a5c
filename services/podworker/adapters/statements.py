"""The statements of pods.db. `make docs` writes their text to statements.json; pod_store runs that."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, delete, func, select, update
from sqlalchemy.dialects.sqlite import insert

from services.podworker.adapters.tables import ended_pods, events, pods, pulled_images
from shared.storage.compiling import compiled, listed_in
from shared.storage.statements import Statement

_OWN = ("namespace", "name", "slot", "source", "gen", "hash", "admitted", "ended", "memory", "body")
_WANTED = ("cpu_milli", "memory_bytes", "host_ports", "amounts")


def _upsert(columns: Sequence[str]) -> Statement:
    statement = insert(pods)
    changed = {column: statement.excluded[column] for column in columns}
    return compiled(
        statement.on_conflict_do_update(index_elements=["uid"], set_={**changed, "rev": pods.c.rev + 1}).returning(
            pods.c.rev
        ),
        ["uid", "rev", *columns],
    )


_row = select(pods.c.memory, pods.c.body, pods.c.rev)
_is_asked = pods.c.uid == bindparam("uid")
_others = (pods.c.admitted == 1) & (pods.c.ended == 0) & (pods.c.uid != bindparam("uid"))
_newest = select(func.max(events.c.seq)).scalar_subquery()

STATEMENTS = {
    "load": compiled(_row.where(_is_asked)),
    "load_slots": compiled(_row.where(listed_in(pods.c.slot, "slots")).order_by(pods.c.uid)),
    "all_uids": compiled(select(pods.c.uid)),
    "admitted": compiled(select(pods.c.admitted).where(_is_asked)),
    "delete": compiled(delete(pods).where(_is_asked)),
    "bury": compiled(
        insert(ended_pods).on_conflict_do_update(
            index_elements=["uid"],
            set_={
                "gen": func.max(ended_pods.c.gen, insert(ended_pods).excluded.gen),
                "ended_at": insert(ended_pods).excluded.ended_at,
            },
        ),
        ["uid", "gen", "ended_at"],
    ),
    "buried": compiled(
        select(ended_pods.c.gen).where(
            (ended_pods.c.uid == bindparam("uid")) & (ended_pods.c.ended_at > bindparam("since"))
        )
    ),
    "forget_buried": compiled(delete(ended_pods).where(ended_pods.c.ended_at <= bindparam("since"))),
    "save": _upsert(_OWN),
    "admit": _upsert((*_OWN, *_WANTED)),
    "sums": compiled(
        select(
            func.count(),
            func.coalesce(func.sum(pods.c.cpu_milli), 0),
            func.coalesce(func.sum(pods.c.memory_bytes), 0),
        ).where(_others)
    ),
    "ports": compiled(
        select(pods.c.namespace, pods.c.name, pods.c.host_ports).where(_others & (pods.c.host_ports != "[]"))
    ),
    "amounts": compiled(select(pods.c.amounts).where(_others & (pods.c.amounts != "{}"))),
    "candidates": compiled(
        select(pods.c.cpu_milli, pods.c.memory_bytes, pods.c.amounts, pods.c.memory, pods.c.body).where(_others)
    ),
    "preempted": compiled(
        select(func.json_extract(pods.c.memory, "$.preempts")).where(
            (pods.c.admitted == 0) & (func.json_array_length(pods.c.memory, "$.preempts") > 0)
        )
    ),
    "devices": compiled(
        select(func.json_extract(pods.c.memory, "$.devices")).where(
            _others & func.json_extract(pods.c.memory, "$.devices").is_not(None)
        )
    ),
    "image": compiled(
        select(pulled_images).where(
            (pulled_images.c.image_id == bindparam("image_id")) | (pulled_images.c.image_id == "")
        )
    ),
    "images": compiled(select(pulled_images).where(pulled_images.c.image_id != "")),
    "put_image": compiled(
        insert(pulled_images).on_conflict_do_update(
            index_elements=["image_id", "reference"],
            set_={
                "pulled_at": insert(pulled_images).excluded.pulled_at,
                "used_at": insert(pulled_images).excluded.used_at,
                "access": insert(pulled_images).excluded.access,
            },
        ),
        ["image_id", "reference", "is_ours", "pulled_at", "used_at", "access"],
    ),
    "use_images": compiled(
        update(pulled_images).where(listed_in(pulled_images.c.image_id, "ids")).values(used_at=bindparam("at")), []
    ),
    "forget_image": compiled(
        delete(pulled_images).where(
            (pulled_images.c.image_id == bindparam("image_id")) & (pulled_images.c.reference == bindparam("reference"))
        )
    ),
    "append": compiled(insert(events).on_conflict_do_nothing(index_elements=["id"]), ["id", "time", "body"]),
    "cut": compiled(delete(events).where(events.c.seq <= _newest - bindparam("most"))),
    "pending": compiled(select(events.c.body).order_by(events.c.seq).limit(bindparam("most"))),
    "acknowledge": compiled(delete(events).where(listed_in(events.c.id, "ids"))),
}
