"""What a source knows between two listings, and the part of it that survives a restart. Plain, frozen
data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from services.source.core.manifest import ObjectKey
from services.source.core.problems import Problem
from services.source.core.static_pods import canonical_json

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SourceObject:
    """One good object of a file. For a pod `name` has the node's suffix and `uid` is set; for the others
    uid is "".

    `gen` and `seen` are 0 until the object is accepted (an object that another file holds already never is).
    """

    key: ObjectKey
    path: str
    line: int
    document: int
    namespace: str
    name: str
    uid: str
    hash: str
    body: JsonObject = field(repr=False)
    gen: int = 0
    seen: float = 0.0

    @property
    def kind(self) -> str:
        return self.key.kind

    @property
    def is_pod(self) -> bool:
        return self.key.kind == "Pod"


@dataclass(frozen=True, slots=True)
class FileState:
    """The last reading of a file: its good objects (also such as an older version of the file held and this
    one broke), what was wrong, and the digest of the bytes ("" = read it again)."""

    path: str
    digest: str
    objects: tuple[SourceObject, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class SourceState:
    """`running` = the accepted objects, by kind and final name. `present` = the directory was seen at least
    once. `gen` = the last generation given out; it only grows."""

    files: Mapping[str, FileState] = field(default_factory=dict)
    running: Mapping[ObjectKey, SourceObject] = field(default_factory=dict)
    present: bool = False
    gen: int = 0
    listed_at: float = 0.0
    retired: Mapping[str, ObjectKey] = field(default_factory=dict)
    """UIDs of pods that are gone, and what they were called: no other pod may have them. Not kept over a restart."""
    basis: str = ""
    """What readings depend on besides the bytes (node, source, strictness); another basis reads all files
    again."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One row of source.db. `document` says which object of its file it is; `body` is JSON."""

    path: str
    document: str
    uid: str
    namespace: str
    name: str
    body: bytes
    hash: str
    gen: int
    seen: float


def stored_objects(state: SourceState) -> list[StoredObject]:
    """The accepted objects as rows, in path order. Secrets are left out: their values are never written
    down."""
    return [
        StoredObject(
            path=item.path,
            document="/".join(item.key),
            uid=item.uid,
            namespace=item.namespace,
            name=item.name,
            body=canonical_json(item.body),
            hash=item.hash,
            gen=item.gen,
            seen=item.seen,
        )
        for item in sorted(state.running.values(), key=lambda item: (item.path, item.document))
        if item.kind != "Secret"
    ]


def restored_state(rows: Iterable[StoredObject], *, gen: int, listed_at: float) -> SourceState:
    """The state of before a restart, or an empty one. A row that can't be read is left out.

    The files are read again at the next listing: this version may understand more than the last one did.
    """
    files: dict[str, list[SourceObject]] = {}
    running: dict[ObjectKey, SourceObject] = {}
    for row in rows:
        parts = row.document.split("/")
        try:
            body = json.loads(row.body)
        except ValueError:
            continue
        if len(parts) != 3 or not isinstance(body, dict):
            continue
        key = ObjectKey(*parts)
        item = SourceObject(key, row.path, 0, 0, row.namespace, row.name, row.uid, row.hash, body, row.gen, row.seen)
        files.setdefault(row.path, []).append(item)
        running[final_key(item)] = item
    return SourceState(
        files={path: FileState(path, "", tuple(objects), ()) for path, objects in files.items()},
        running=running,
        present=listed_at > 0,
        gen=gen,
        listed_at=listed_at,
    )


def final_key(item: SourceObject) -> ObjectKey:
    """What an object is called on the node."""
    return ObjectKey(item.key.kind, item.namespace, item.name)
