"""A listing of a source -> what should run, what is wrong, what to remember.

A fault never removes a pod: the last good version of a broken file or document stays, a directory that has
gone keeps its set, and of two files that claim the same pod the one that runs keeps it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from services.source.core.accept import accept
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
    why a file that is there couldn't be read; `fresh`: files that were written to a moment ago, so somebody may be at
    it still; `missing`: the directory isn't there or couldn't be listed, or the URL gave no answer; `error` says why.
    """

    origin: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    fresh: frozenset[str] = frozenset()
    skipped: tuple[SkippedFile, ...] = ()
    missing: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """`pods` and `configs` (ConfigMaps and Secrets) are everything that should be there, in path order. `abroad`:
    problems to be told at other sources' places, by the source's name. `unsettled`: look again soon, for a file
    seems to be half written."""

    state: SourceState
    pods: tuple[SourceObject, ...]
    configs: tuple[SourceObject, ...]
    problems: tuple[Problem, ...]
    skipped: tuple[SkippedFile, ...] = ()
    abroad: Mapping[str, tuple[Problem, ...]] = field(default_factory=dict)
    unsettled: bool = False


Held = Mapping[str, Mapping[ObjectKey, SourceObject]]
"""What each of the other sources has on the node."""
_MAX_RETIRED = 1000


def plan_sources(
    previous: SourceState,
    listing: Listing,
    node: str,
    now: float,
    *,
    source: str = "file",
    strict: bool = False,
    others: Held | None = None,
) -> SourcePlan:
    """What the source wants after this listing. Pure; `now` in seconds since the epoch; never raises."""
    if listing.missing:
        return _without_listing(previous, listing, now, source, others or {})
    basis = f"{_READER} {source} {node} {strict}"
    files: dict[str, FileState] = {}
    unsettled: set[str] = set()
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
            if before is not None and path in listing.fresh and _lost(before, files[path]):
                # A file that is rewritten in place is shorter for a moment: what it lost may be on its way.
                files[path] = replace(before, digest="")
                unsettled.add(path)
    place = files.get(listing.origin)
    if source == "file" and place is not None and not place.objects and _has_other_files(previous, listing.origin):
        # The directory's name is a file now: without an object of its own it says nothing about the pods.
        error = f"{listing.origin} is a file without a pod now, no longer a directory"
        return _without_listing(previous, replace(listing, error=error), now, source, others or {})
    state = replace(previous, files=files, present=True, listed_at=now, basis=basis)
    return replace(_decided(state, now, others or {}, listing.skipped), unsettled=bool(unsettled))


def replan(previous: SourceState, now: float, others: Held) -> SourcePlan:
    """What the source wants of what it has read already: for when what other sources hold has changed."""
    return _decided(previous, now, others, ())


def _decided(state: SourceState, now: float, others: Held, skipped: tuple[SkippedFile, ...]) -> SourcePlan:
    """What may run of what the files hold."""
    offered = [item for path in sorted(state.files) for item in state.files[path].objects]
    accepted = accept(offered, state.running, state.retired, others)
    running, gen = _numbered(accepted.objects, state, now)
    uids = {item.uid for item in running.values()}
    retired = dict(state.retired)
    for item in state.running.values():
        if item.is_pod and item.uid not in uids:
            retired[item.uid] = final_key(item)
    state = replace(state, running=running, gen=gen, retired=dict(list(retired.items())[-_MAX_RETIRED:]))
    problems = [problem for file in state.files.values() for problem in file.problems]
    return replace(_plan(state, [*problems, *accepted.problems], skipped), abroad=accepted.abroad)


def _plan(state: SourceState, problems: list[Problem], skipped: tuple[SkippedFile, ...]) -> SourcePlan:
    wanted = sorted(state.running.values(), key=lambda item: (item.path, item.document, item.name))
    return SourcePlan(
        state,
        pods=tuple(item for item in wanted if item.is_pod),
        configs=tuple(item for item in wanted if not item.is_pod),
        problems=_in_order(problems),
        skipped=skipped,
    )


def _in_order(problems: list[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: (problem.path, problem.document, problem.line)))


def _has_other_files(previous: SourceState, origin: str) -> bool:
    return any(item.path != origin for item in previous.running.values())


def _without_listing(previous: SourceState, listing: Listing, now: float, source: str, others: Held) -> SourcePlan:
    """The place can't be read: what was there goes on."""
    if source == "http":
        plan = _decided(previous, now, others, ())
        hint = "the last pods keep running" if previous.present else "nothing is known of its pods until it answers"
        failed = Problem(Severity.ERROR, listing.origin, listing.error, hint=hint)
        return replace(plan, problems=(*plan.problems, failed))
    plan = _decided(replace(previous, listed_at=now), now, others, listing.skipped)
    reason = listing.error or "the manifest directory does not exist"
    if previous.present or previous.running:
        told = Problem(Severity.ERROR, listing.origin, reason, hint="the last pods keep running")
    else:
        told = Problem(Severity.WARNING, listing.origin, reason, hint="no pods until it is made")
    return replace(plan, problems=_in_order([*plan.problems, told]))


def _lost(before: FileState, after: FileState) -> bool:
    return not {item.key for item in before.objects} <= {item.key for item in after.objects}


def _unreadable(path: str, before: FileState | None, reason: str) -> FileState:
    problems = [Problem(Severity.ERROR, path, f"cannot be read: {reason}")]
    kept = before.objects if before else ()
    problems += (_kept(item, path) for item in kept)
    return FileState(path, "", kept, tuple(problems))


def _read(
    path: str, data: bytes, digest: str, before: FileState | None, node: str, source: str, *, strict: bool
) -> FileState:
    if source == "http" and not data:
        return FileState(path, digest, (), (Problem(Severity.WARNING, path, "the answer is empty: no pods"),))
    read = read_manifests(path, data, strict=strict, whole_lists=source == "http")
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


def _numbered(
    accepted: Iterable[SourceObject], previous: SourceState, now: float
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
