"""A copy of a list that the API server holds, kept equal by the changes that a watch tells. Plain, frozen data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reflected:
    """Objects may be Secrets: they are in no repr."""

    objects: Mapping[str, JsonObject] = field(default_factory=dict, repr=False)
    """By namespace/name."""
    version: str = ""
    """resourceVersion to watch from; "" = it must be listed (again)."""
    was_listed: bool = False


def listed(objects: Iterable[JsonObject], version: str) -> Reflected:
    """After a complete list."""
    return Reflected({name_of(found): found for found in objects}, version, was_listed=True)


def told(before: Reflected, kind: str, found: JsonObject) -> Reflected:
    """After one event of a watch. A BOOKMARK, and a kind that isn't known, moves only the version."""
    objects = before.objects
    if kind in ("ADDED", "MODIFIED"):
        objects = {**objects, name_of(found): found}
    elif kind == "DELETED":
        gone = name_of(found)
        objects = {name: kept for name, kept in objects.items() if name != gone}
    version = (found.get("metadata") or {}).get("resourceVersion") or before.version
    return Reflected(objects, version, was_listed=before.was_listed)


def expired(before: Reflected) -> Reflected:
    """After 410: what was known stays until it's listed anew."""
    return Reflected(before.objects, "", was_listed=before.was_listed)


def name_of(found: JsonObject) -> str:
    meta = found.get("metadata") or {}
    return f"{meta.get('namespace', '')}/{meta.get('name', '')}"
