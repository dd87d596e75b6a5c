"""Which of the objects that a source offers may be on the node: one per name and one per UID, over all sources.

What runs keeps its name and its UID; else the first in path order has them. Whoever is turned down is told, at
both places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from services.source.core.field_errors import quote
from services.source.core.manifest import ObjectKey, describe
from services.source.core.problems import Problem, Severity
from services.source.core.state import SourceObject, final_key

DUPLICATE = "FailedValidation"
"""The kubelet's reason for the event of a pod that a list holds twice."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """`abroad`: what has to be told at other sources' places, by the source's name."""

    objects: tuple[SourceObject, ...]
    problems: tuple[Problem, ...]
    abroad: Mapping[str, tuple[Problem, ...]]


@dataclass(slots=True)
class _Choice:
    running: Mapping[ObjectKey, SourceObject]
    problems: list[Problem] = field(default_factory=list)
    abroad: dict[str, list[Problem]] = field(default_factory=dict)


def accept(
    offered: Iterable[SourceObject],
    running: Mapping[ObjectKey, SourceObject],
    retired: Mapping[str, ObjectKey],
    others: Mapping[str, Mapping[ObjectKey, SourceObject]],
) -> Accepted:
    """`offered` in path order; `running` is what this source has on the node, `others` what the other sources have;
    `retired` are UIDs that were on the node under these names."""
    choice = _Choice(running)
    items = _without_renamed(list(offered), retired, choice)
    items = _not_held_elsewhere(items, others, choice)
    items = _distinct_uids(_distinct_names(items, choice), choice)
    abroad = {source: tuple(problems) for source, problems in choice.abroad.items()}
    return Accepted(tuple(items), tuple(choice.problems), abroad)


def _without_renamed(
    items: list[SourceObject], retired: Mapping[str, ObjectKey], choice: _Choice
) -> list[SourceObject]:
    """A UID is one pod's for ever: under another name it would be another pod with the same containers. The one that
    runs goes on as long as its file is there."""
    by_uid = {item.uid: item for item in choice.running.values() if item.uid}
    offered = {(final_key(item), item.uid, item.path) for item in items}
    names = {key for key, _, _ in offered}
    kept: list[SourceObject] = []
    for item in items:
        before = by_uid.get(item.uid) if item.uid else None
        known = final_key(before) if before is not None else retired.get(item.uid)
        holder_is_there = before is not None and (known, item.uid, before.path) in offered
        if known is None or known == final_key(item) or holder_is_there:  # the last is told as a clash
            kept.append(item)
            continue
        choice.problems.append(
            Problem(
                Severity.ERROR,
                item.path,
                f"the UID {quote(item.uid)} is that of {describe(known)}: a pod can't be renamed",
                item.line,
                item.document,
                "metadata.uid",
                "give the pod of the new name another uid, or none",
            )
        )
        if before is not None and before.path == item.path and known not in names:
            kept.append(before)
            names.add(known)
            text = f"the last good version of {describe(before.key)} keeps running"
            choice.problems.append(Problem(Severity.WARNING, item.path, text))
    return kept


def _not_held_elsewhere(
    items: list[SourceObject], others: Mapping[str, Mapping[ObjectKey, SourceObject]], choice: _Choice
) -> list[SourceObject]:
    by_uid = {source: {item.uid: item for item in held.values() if item.uid} for source, held in others.items() if held}
    free: list[SourceObject] = []
    for item in items:
        for source, held in others.items():
            winner = held.get(final_key(item))
            what = f"{describe(item.key)} is"
            if winner is None and item.uid:
                winner = by_uid.get(source, {}).get(item.uid)
                what = f"the UID {quote(item.uid)} of {describe(item.key)} is"
            if winner is not None:
                ours, theirs = _clash(winner, item, what, keeps=True)
                choice.problems.append(ours)
                choice.abroad.setdefault(source, []).append(theirs)
                break
        else:
            free.append(item)
    return free


def _distinct_names(items: list[SourceObject], choice: _Choice) -> list[SourceObject]:
    claims: dict[ObjectKey, list[SourceObject]] = {}
    for item in items:
        claims.setdefault(final_key(item), []).append(item)
    winners: list[SourceObject] = []
    for key, same in claims.items():
        before = choice.running.get(key)
        winner = _preferred(same, before)
        winners.append(winner)
        for item in same:
            if item is not winner:
                choice.problems += _clash(winner, item, f"{describe(item.key)} is", keeps=_holds(before, winner))
    return winners


def _distinct_uids(items: list[SourceObject], choice: _Choice) -> list[SourceObject]:
    """Two names with the same fixed metadata.uid can't both run."""
    by_uid: dict[str, list[SourceObject]] = {}
    for item in items:
        if item.uid:
            by_uid.setdefault(item.uid, []).append(item)
    losers: set[int] = set()
    for same in by_uid.values():
        if len(same) == 1:
            continue
        held = [item for item in same if _holds(choice.running.get(final_key(item)), item)]
        winner = held[0] if held else min(same, key=lambda item: (item.path, item.document))
        keeps = _holds(choice.running.get(final_key(winner)), winner)
        for item in same:
            if item is not winner:
                losers.add(id(item))
                what = f"the UID {quote(item.uid)} of {describe(item.key)} is"
                choice.problems += _clash(winner, item, what, keeps=keeps)
    return [item for item in items if id(item) not in losers]


def _holds(before: SourceObject | None, item: SourceObject) -> bool:
    return before is not None and before.uid == item.uid and before.path == item.path


def _preferred(items: list[SourceObject], before: SourceObject | None) -> SourceObject:
    if before is not None and len(items) > 1:
        same_file = [item for item in items if item.path == before.path]
        unchanged = [item for item in same_file if item.hash == before.hash and item.uid == before.uid]
        return (unchanged or same_file or items)[0]
    return items[0]


def _clash(winner: SourceObject, loser: SourceObject, what: str, *, keeps: bool) -> tuple[Problem, Problem]:
    """What is told at the loser's place, and at the winner's."""
    keeps_text = "keeps running" if keeps else "is used"
    return (
        Problem(
            Severity.ERROR,
            loser.path,
            f"{what} also in {_place(winner)}, which {keeps_text}; this one is ignored",
            loser.line,
            loser.document,
            reason=DUPLICATE,
        ),
        Problem(
            Severity.ERROR,
            winner.path,
            f"{what} also in {_place(loser)}, which is ignored",
            winner.line,
            winner.document,
            reason=DUPLICATE,
        ),
    )


def _place(item: SourceObject) -> str:
    return f"{item.path}:{item.line}" if item.line else item.path
