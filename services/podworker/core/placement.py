"""Which worker should hold which ownership slot, and when a change of the membership is acted on.

Placement only says who *should* hold a slot; that nobody else does is the kernel's business
(adapters/owner_locks.py). A worker is known by its member index (0..63), as long as it lives.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

import msgspec

from shared.kube.ids import SLOTS

SETTLE_SECONDS = 1.0
"""A worker that joined gets slots after it has been seen for so long: a crash loop must not shuffle pods
around."""


@lru_cache(maxsize=64)
def _weights(member: int) -> tuple[int, ...]:
    """The member's weight for each slot: fixed for ever, so that workers of two versions agree."""
    return tuple(
        int.from_bytes(blake2b(f"{member}|{slot}".encode(), digest_size=8).digest(), "big") for slot in range(SLOTS)
    )


def owner(slot: int, members: Iterable[int]) -> int | None:
    """The member that should hold the slot (rendezvous hashing: a change of the membership moves only what it
    must); None without members."""
    return max(members, key=lambda member: (_weights(member)[slot], member), default=None)


def wanted_slots(me: int, members: Iterable[int]) -> frozenset[int]:
    """The slots that `me` should hold. Empty when `me` is not a member."""
    present = tuple(members)
    if present == (me,):
        return frozenset(range(SLOTS))
    return frozenset(slot for slot in range(SLOTS) if owner(slot, present) == me)


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the workers: those that placement counts with, and those that joined a moment ago."""

    settled: frozenset[int]
    joining: tuple[tuple[int, float], ...] = ()
    """(member, when it was first seen), in order of member."""

    @property
    def seen(self) -> frozenset[int]:
        return self.settled | {member for member, _ in self.joining}


def founded(before: Iterable[int], me: int, now: float) -> Membership:
    """The membership of a worker that has just joined and saw `before` just before it did.

    Alone, it settles at once: there is nobody whose pods could be disturbed. Else the others are settled and
    it joins, as the others see it.
    """
    others = frozenset(before) - {me}
    if not others:
        return Membership(settled=frozenset({me}))
    return Membership(settled=others, joining=((me, now),))


def observe(known: Membership, seen: Iterable[int], now: float) -> Membership:
    """The membership after a scan that found `seen`. A death acts at once; a join after SETTLE_SECONDS
    without a break, or at once when nobody settled is left. `now`: seconds on a clock that never steps."""
    present = frozenset(seen)
    settled = known.settled & present
    since = dict(known.joining)
    joining = {member: min(since.get(member, now), now) for member in present - settled}
    if not settled:
        return Membership(settled=present)
    ripe = {member for member, first in joining.items() if now - first >= SETTLE_SECONDS}
    return Membership(
        settled=settled | ripe,
        joining=tuple(sorted((member, first) for member, first in joining.items() if member not in ripe)),
    )
