"""Desired pods: bucket podbus_pods, written by source only."""

from __future__ import annotations

from typing import Literal

import msgspec

from shared.contracts.envelope import Envelope

SourceName = Literal["file", "http", "api"]


class PodDesired(Envelope, frozen=True, kw_only=True):
    """`pod.<uid>`: one pod that should run. The body is the defaulted, validated v1.Pod, raw until someone needs it."""

    uid: str
    namespace: str
    name: str
    source: SourceName
    gen: int
    """The source's own counter: a newer version of this UID has a larger one. Survives the source's restart."""
    hash: str
    """Of the body's content; the same content is never published as a change."""
    seen: float
    """When the source first saw this UID (kubernetes.io/config.seen)."""
    body: msgspec.Raw
    refused: str = ""
    """Why podbus can't run it: the pod is to be seen as Failed. Of the API's pods only; others then aren't here."""
    deletion_grace: int | None = None
    """The API server wants the pod to end within so many seconds; None = it isn't being deleted."""


class FileProblem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One error or warning about a manifest, with its place."""

    severity: Literal["error", "warning"]
    path: str
    """The file, or the URL."""
    line: int = 0
    """1-based; 0 = of the whole file."""
    document: int = 0
    """1-based number of the document in its file; 0 = of the whole file."""
    field: str = ""
    """`spec.containers[0].image`"""
    message: str
    hint: str = ""


class SkippedFile(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    reason: str


class MirrorPod(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The picture of a static pod at the API server."""

    namespace: str
    name: str
    uid: str
    """Its own, not the static pod's."""
    hash: str
    """Of the static pod that it shows: the annotation kubernetes.io/config.mirror."""
    deleting: bool = False


class PodsSeen(msgspec.Struct, frozen=True, kw_only=True):
    """source.e.seen: somebody has written to these pods at the API server."""

    versions: dict[str, str]
    """UID there -> resourceVersion."""


class SourceMarker(Envelope, frozen=True, kw_only=True):
    """`source.<name>`: written after the pods of a complete listing. Only a ready marker that doesn't list a UID makes
    that pod go: an empty or missing bucket never does."""

    source: SourceName
    ready: bool
    epoch: str
    """New at each start of source: tells a re-publish from a change."""
    uids: list[str]
    origin: str = ""
    """The manifest directory, or the URL."""
    listed_at: float = 0.0
    errors: list[FileProblem] = []
    warnings: list[FileProblem] = []
    skipped: list[SkippedFile] = []
    mirrors: list[MirrorPod] = []
    """Of this node, as the API server has them; only in the marker of the API."""
