"""Which images go when the engine's disk is full or they have grown old. Only images that podbus has pulled.

kubelet: realImageGCManager; there any unused image of the engine goes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from services.podworker.core.image_access import PulledImage


class GcPolicy(msgspec.Struct, frozen=True, kw_only=True):
    high_percent: int = 85
    low_percent: int = 80
    min_age: float = 120.0
    """Seconds since the pull and the last use."""
    max_age: float = 0.0
    """Seconds since the last use; 0 = old images stay."""


class Disk(msgspec.Struct, frozen=True, kw_only=True):
    """Of the engine's images, in bytes."""

    capacity: int
    available: int


class LocalImage(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    tags: tuple[str, ...]
    size: int


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    image_id: str
    tags: tuple[str, ...]
    """To be taken off it."""
    whole: bool
    """Nobody else has given it a name: the image itself goes."""
    size: int
    last_used: float
    is_old: bool = False
    """It goes however full the disk is."""


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    removals: tuple[Removal, ...]
    """The longest unused first."""
    to_free: int
    """Bytes that are too many on the disk: removals that aren't old stop when so many are gone."""
    usage_percent: int = 0


def image_sweep(
    images: Sequence[LocalImage],
    records: Sequence[PulledImage],
    used_ids: Collection[str],
    *,
    now: float,
    disk: Disk | None,
    policy: GcPolicy,
) -> Sweep:
    """`used_ids`: of images that any container has, a dead one too. `disk` None = it can't be looked at."""
    by_id: dict[str, list[PulledImage]] = {}
    for record in records:
        by_id.setdefault(record.image_id, []).append(record)
    usage, to_free = _excess(disk, policy)
    found = [
        _removal(image, by_id[image.id], now, policy)
        for image in images
        if image.id not in used_ids and _may_go(by_id.get(image.id, []), now, policy)
    ]
    wanted = [one for one in found if one.is_old or to_free > 0]
    return Sweep(
        removals=tuple(sorted(wanted, key=lambda one: (one.last_used, one.image_id))),
        to_free=to_free,
        usage_percent=usage,
    )


def _excess(disk: Disk | None, policy: GcPolicy) -> tuple[int, int]:
    if disk is None or disk.capacity <= 0:
        return 0, 0
    usage = 100 - disk.available * 100 // disk.capacity
    if policy.high_percent >= 100 or usage < policy.high_percent:
        return usage, 0
    return usage, max(0, disk.capacity * (100 - policy.low_percent) // 100 - disk.available)


def _may_go(records: Sequence[PulledImage], now: float, policy: GcPolicy) -> bool:
    return any(record.is_ours for record in records) and now - _last_used(records) >= policy.min_age


def _last_used(records: Sequence[PulledImage]) -> float:
    return max(max(record.used_at, record.pulled_at) for record in records)


def _removal(image: LocalImage, records: Sequence[PulledImage], now: float, policy: GcPolicy) -> Removal:
    ours = {familiar(record.reference) for record in records}
    tags = tuple(tag for tag in image.tags if familiar(tag) in ours)
    last_used = _last_used(records)
    return Removal(
        image_id=image.id,
        tags=tags,
        whole=len(tags) == len(image.tags),
        size=image.size,
        last_used=last_used,
        is_old=policy.max_age > 0 and now - last_used > policy.max_age,
    )


def familiar(reference: str) -> str:
    """As the engine writes it: docker.io/library/busybox:1 is busybox:1."""
    for prefix in ("docker.io/", "index.docker.io/"):
        reference = reference.removeprefix(prefix)
    return reference.removeprefix("library/")


def gone_records(records: Sequence[PulledImage], images: Mapping[str, LocalImage]) -> list[PulledImage]:
    """Of images that aren't on the engine any more: somebody else has removed them."""
    return [record for record in records if record.image_id not in images]
