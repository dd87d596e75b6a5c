"""A listing of a source -> what should run, what is wrong, what to remember.

A fault never removes a pod: the last good version of a broken file or document stays, a directory that has
gone keeps its set, and of two files that claim the same pod the one that runs keeps it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from services.source.core.field_errors import quote
from services.source.core.files import SkippedFile
from services.source.core.manifest import Manifest, ObjectKey, describe, read_manifests
from services.source.core.problems import Problem, Severity
from services.source.core.state import FileState, SourceObject, SourceState, final_key
from services.source.core.static_pods import CONFIG_SEEN, content_hash, make_static_pod
from shared.kube.times import rfc3339_nano

JsonObject = dict[str, Any]

#: A change here makes every file be read anew, whatever is remembered.
_READER = "1"


@dataclass(frozen=True, slots=True)
class Listing:
    """One complete look at the source. `files`: path -> bytes of every manifest file; `unreadable`: path ->
    why a file that is there couldn't be read; `missing`: the directory isn't there or couldn't be listed,
    `error` says why.
    """

    origin: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    skipped: tuple[SkippedFile, ...] = ()
    missing: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """`pods` and `configs` (ConfigMaps and Secrets) are everything that should be there, in path order."""

    state: SourceState
    pods: tuple[SourceObject, ...]
    configs: tuple[SourceObject, ...]
    problems: tuple[Problem, ...]
    skipped: tuple[SkippedFile, ...]


def plan_sources(
    previous: SourceState,
    listing: Listing,
    node: str,
    now: float,
    *,
    source: str = "file",
    strict: bool = False,
) -> SourcePlan:
    """What the source wants after this listing. Pure; `now` in seconds since the epoch; never raises."""
    if listing.missing:
        return _without_directory(previous, listing, now)
    basis = f"{_READER} {source} {node} {strict}"
    files: dict[str, FileState] = {}
    for path in sorted({*listing.files, *listing.unreadable}):
        before = previous.files.get(path)
        data = listing.files.get(path)
        if data is None:
            files[path] = _unreadable(path, before, listing.unreadable[path])
            continue
        digest = hashlib.blake2b(data, digest_size=16).hexdigest()
        if before is not None and before.digest == digest and previous.basis == basis:
            files[path] = before
        else:
            files[path] = _read(path, data, digest, before, node, source, strict=strict)
    place = files.get(listing.origin)
    if place is not None and not place.objects and _has_other_files(previous, listing.origin):
        # The directory's name is a file now: without an object of its own it says nothing about the pods.
        error = f"{listing.origin} is a file without a pod now, no longer a directory"
        return _without_directory(previous, replace(listing, error=error), now)
    accepted, clashes = _accept(files, previous.running)
    running, gen = _numbered(accepted, previous, now)
    state = SourceState(files, running, present=True, gen=gen, listed_at=now, basis=basis)
    problems = [problem for file in files.values() for problem in file.problems] + clashes
    return _plan(state, problems, listing.skipped)


def _plan(state: SourceState, problems: list[Problem], skipped: tuple[SkippedFile, ...]) -> SourcePlan:
    wanted = sorted(state.running.values(), key=lambda item: (item.path, item.document, item.name))
    return SourcePlan(
        state,
        pods=tuple(item for item in wanted if item.is_pod),
        configs=tuple(item for item in wanted if not item.is_pod),
        problems=tuple(sorted(problems, key=lambda problem: (problem.path, problem.document, problem.line))),
        skipped=skipped,
    )


def _has_other_files(previous: SourceState, origin: str) -> bool:
    return any(item.path != origin for item in previous.running.values())


def _without_directory(previous: SourceState, listing: Listing, now: float) -> SourcePlan:
    problems = [problem for file in previous.files.values() for problem in file.problems]
    reason = listing.error or "the manifest directory does not exist"
    if previous.present or previous.running:
        problems.append(Problem(Severity.ERROR, listing.origin, reason, hint="the last pods keep running"))
    else:
        problems.append(Problem(Severity.WARNING, listing.origin, reason, hint="no pods until it is made"))
    return _plan(replace(previous, listed_at=now), problems, listing.skipped)


def _unreadable(path: str, before: FileState | None, reason: str) -> FileState:
    problems = [Problem(Severity.ERROR, path, f"cannot be read: {reason}")]
    kept = before.objects if before else ()
    problems += (_kept(item, path) for item in kept)
    return FileState(path, "", kept, tuple(problems))


def _read(
    path: str, data: bytes, digest: str, before: FileState | None, node: str, source: str, *, strict: bool
) -> FileState:
    read = read_manifests(path, data, strict=strict)
    problems = list(read.problems)
    broken = set(read.broken)
    objects: list[SourceObject] = []
    for manifest in read.manifests:
        item, faults = _source_object(manifest, path, node, source)
        if faults:
            problems += faults
            broken.add(manifest.key)
        else:
            objects.append(item)
    good = {item.key for item in objects}
    for item in before.objects if before else ():
        # What the file broke keeps its last good version. Where a document can't be told at all, any object
        # that the file held before may be the one.
        if item.key not in good and (item.key in broken or read.unread):
            objects.append(item)
            good.add(item.key)
            problems.append(_kept(item, path))
    return FileState(path, digest, tuple(objects), tuple(problems))


def _kept(item: SourceObject, path: str) -> Problem:
    return Problem(Severity.WARNING, path, f"the last good version of {describe(item.key)} keeps running")


def _source_object(manifest: Manifest, path: str, node: str, source: str) -> tuple[SourceObject, list[Problem]]:
    key = manifest.key
    if key.kind != "Pod":
        item = SourceObject(
            key,
            path,
            manifest.line,
            manifest.document,
            key.namespace,
            key.name,
            "",
            content_hash(manifest.body),
            manifest.body,
        )
        return item, []
    pod, errors = make_static_pod(manifest.body, source=source, node=node, origin=path)
    meta: JsonObject = pod["metadata"]
    item = SourceObject(
        key,
        path,
        manifest.line,
        manifest.document,
        meta["namespace"],
        meta["name"],
        meta["uid"],
        content_hash(pod),
        pod,
    )
    faults = [
        Problem(
            Severity.ERROR,
            path,
            error.message,
            manifest.line,
            manifest.document,
            error.field,
            "the node's name is added to a static pod's name",
        )
        for error in errors.found
    ]
    return item, faults


def _accept(
    files: Mapping[str, FileState], running: Mapping[ObjectKey, SourceObject]
) -> tuple[list[SourceObject], list[Problem]]:
    """One object per name and per UID: the one that runs, else the first in path order."""
    claims: dict[ObjectKey, list[SourceObject]] = {}
    for path in sorted(files):
        for item in files[path].objects:
            claims.setdefault(final_key(item), []).append(item)
    problems: list[Problem] = []
    winners: list[SourceObject] = []
    for key, items in claims.items():
        winner = _preferred(items, running.get(key))
        winners.append(winner)
        for item in items:
            if item is not winner:
                problems += _clash(winner, item, f"{describe(item.key)} is", running.get(key))
    return _distinct_uids(winners, running, problems), problems


def _distinct_uids(
    items: list[SourceObject], running: Mapping[ObjectKey, SourceObject], problems: list[Problem]
) -> list[SourceObject]:
    """A UID is one pod's: two names with the same fixed metadata.uid can't both run."""
    by_uid: dict[str, list[SourceObject]] = {}
    for item in items:
        if item.uid:
            by_uid.setdefault(item.uid, []).append(item)
    losers: set[int] = set()
    for same in by_uid.values():
        if len(same) == 1:
            continue
        held = [item for item in same if _holds(running.get(final_key(item)), item)]
        winner = held[0] if held else min(same, key=lambda item: (item.path, item.document))
        for item in same:
            if item is not winner:
                losers.add(id(item))
                before = running.get(final_key(winner))
                problems += _clash(winner, item, f"the UID {quote(item.uid)} of {describe(item.key)} is", before)
    return [item for item in items if id(item) not in losers]


def _holds(before: SourceObject | None, item: SourceObject) -> bool:
    return before is not None and before.uid == item.uid and before.path == item.path


def _preferred(items: list[SourceObject], before: SourceObject | None) -> SourceObject:
    if before is not None and len(items) > 1:
        same_file = [item for item in items if item.path == before.path]
        unchanged = [item for item in same_file if item.hash == before.hash and item.uid == before.uid]
        return (unchanged or same_file or items)[0]
    return items[0]


def _clash(winner: SourceObject, loser: SourceObject, what: str, before: SourceObject | None) -> list[Problem]:
    keeps = "keeps running" if _holds(before, winner) else "is used"
    return [
        Problem(
            Severity.ERROR,
            loser.path,
            f"{what} also in {_place(winner)}, which {keeps}; this one is ignored",
            loser.line,
            loser.document,
        ),
        Problem(
            Severity.ERROR,
            winner.path,
            f"{what} also in {_place(loser)}, which is ignored",
            winner.line,
            winner.document,
        ),
    ]


def _place(item: SourceObject) -> str:
    return f"{item.path}:{item.line}" if item.line else item.path


def _numbered(
    accepted: list[SourceObject], previous: SourceState, now: float
) -> tuple[dict[ObjectKey, SourceObject], int]:
    """Generation and time of first sight; both stay while the content does."""
    gen = previous.gen
    known = {item.uid: item for item in previous.running.values() if item.uid}
    running: dict[ObjectKey, SourceObject] = {}
    for item in accepted:
        key = final_key(item)
        before = known.get(item.uid) if item.is_pod else previous.running.get(key)
        seen = before.seen if before else now
        if before is not None and before.hash == item.hash and final_key(before) == key:
            number = before.gen
        else:
            gen += 1
            number = gen
        running[key] = replace(item, gen=number, seen=seen, body=_with_seen(item, seen))
    return running, gen


def _with_seen(item: SourceObject, seen: float) -> JsonObject:
    if not item.is_pod:
        return item.body
    meta: JsonObject = item.body["metadata"]
    annotations = {**meta["annotations"], CONFIG_SEEN: rfc3339_nano(seen)}
    return {**item.body, "metadata": {**meta, "annotations": annotations}}
