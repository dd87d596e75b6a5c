"""Where a field that Kubernetes doesn't know probably belongs."""

from __future__ import annotations

import difflib
from functools import cache

from services.source.core.field_table import SCALARS, TYPES

#: How alike a misspelt name must be to be suggested (difflib ratio); elsewhere in the object it must be
#: closer.
_NEAR = 0.75
_NEAR_ELSEWHERE = 0.85

Pattern = tuple[str, ...]


def suggest(root_type: str, pattern: Pattern, owner_type: str, key: str) -> str:
    """A hint for the unknown `key` of a value of `owner_type` that stands at `pattern`, or "".

    `pattern` is the place below the root: ("spec", "containers[0]"). First a near name in the same object,
    then the same name elsewhere, nearest first, then a near name elsewhere.
    """
    near = _near(key, tuple(TYPES[owner_type]), _NEAR)
    if near and near.lower() == key.lower():
        return _hint((*pattern, near))
    places = _places(root_type)
    found = places.get(key)
    if found is None and near:
        return _hint((*pattern, near))
    if found is None:
        other = _near(key, tuple(places), _NEAR_ELSEWHERE)
        found = places[other] if other else None
    if not found:
        return ""
    general = tuple(_general(step) for step in pattern)
    best = min(found, key=lambda place: _distance(general, place))
    return _hint(_indexed(best, pattern))


def _hint(place: Pattern) -> str:
    return f'did you mean "{".".join(place)}"?'


def _near(key: str, names: tuple[str, ...], cutoff: float) -> str:
    lowered = {name.lower(): name for name in names}
    # difflib is quadratic: nobody misspells a name at this length.
    if len(key) > 100:
        return ""
    found = difflib.get_close_matches(key.lower(), lowered, n=1, cutoff=cutoff)
    return lowered[found[0]] if found else ""


def _general(step: str) -> str:
    return step.partition("[")[0] + "[]" if step.endswith("]") else step


def _distance(here: Pattern, place: Pattern) -> tuple[int, int, Pattern]:
    """Steps up and down the tree, then the length of the place."""
    common = 0
    for mine, theirs in zip(here, place[:-1], strict=False):
        if mine != theirs:
            break
        common += 1
    return len(here) - common + len(place) - 1 - common, len(place), place


def _indexed(place: Pattern, pattern: Pattern) -> Pattern:
    """The place with the indexes of the pattern, as far as the two go together."""
    steps = list(place)
    for number, step in enumerate(pattern):
        if number >= len(steps) or steps[number] != _general(step):
            break
        steps[number] = step
    return tuple(steps)


@cache
def _places(root_type: str) -> dict[str, list[Pattern]]:
    """Field name -> every place below the root where it is known."""
    places: dict[str, list[Pattern]] = {}
    queue: list[tuple[str, Pattern]] = [(root_type, ())]
    while queue:
        name, path = queue.pop()
        for key, kind in TYPES[name].items():
            base = kind.removeprefix("[]").removeprefix("{}")
            step = f"{key}[]" if kind.startswith("[]") else key
            places.setdefault(key, []).append((*path, key))
            if base not in SCALARS:
                queue.append((base, (*path, step)))
    return places
