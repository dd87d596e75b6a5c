"""Who should hold a slot, and when a join counts."""

from __future__ import annotations

from collections import Counter

from services.podworker.core.placement import (
    SETTLE_SECONDS,
    Membership,
    founded,
    observe,
    owner,
    wanted_slots,
)
from shared.kube.ids import SLOTS, slot_of


def test_nobody_should_hold_a_slot_without_members() -> None:
    assert owner(0, ()) is None


def test_a_worker_alone_wants_every_slot() -> None:
    assert wanted_slots(7, {7}) == frozenset(range(SLOTS))


def test_a_worker_outside_the_membership_wants_nothing() -> None:
    assert wanted_slots(3, {0, 1}) == frozenset()


def test_placement_never_changes_between_versions() -> None:
    """Two workers of different releases share the slots during an upgrade: the weights are pinned."""
    assert [owner(slot, {0, 1, 2, 3}) for slot in range(16)] == PINNED


def test_forty_pods_spread_over_four_workers() -> None:
    """No worker is left without work, none has most of it."""
    pods = Counter(owner(slot_of("default", f"pod-{n}"), {0, 1, 2, 3}) for n in range(40))
    assert len(pods) == 4
    assert max(pods.values()) <= 20


def test_a_worker_alone_settles_at_once() -> None:
    assert founded((), 0, 10.0) == Membership(settled=frozenset({0}))


def test_a_worker_that_finds_others_joins_after_them() -> None:
    assert founded({0, 1}, 2, 10.0) == Membership(settled=frozenset({0, 1}), joining=((2, 10.0),))


def test_a_join_counts_after_a_second_without_a_break() -> None:
    known = observe(Membership(settled=frozenset({0})), {0, 1}, 10.0)
    assert known.settled == {0}
    assert observe(known, {0, 1}, 10.0 + SETTLE_SECONDS - 0.01).settled == {0}
    assert observe(known, {0, 1}, 10.0 + SETTLE_SECONDS).settled == {0, 1}


def test_a_join_that_breaks_off_starts_anew() -> None:
    known = observe(Membership(settled=frozenset({0})), {0, 1}, 10.0)
    known = observe(known, {0}, 10.5)
    assert known.seen == {0}
    known = observe(known, {0, 1}, 10.6)
    assert observe(known, {0, 1}, 11.1).settled == {0}


def test_a_death_counts_at_once() -> None:
    known = Membership(settled=frozenset({0, 1}))
    assert observe(known, {1}, 10.0) == Membership(settled=frozenset({1}))


def test_joiners_count_at_once_when_nobody_settled_is_left() -> None:
    """All old workers died while new ones joined: the pods must not wait."""
    known = observe(Membership(settled=frozenset({0})), {0, 1, 2}, 10.0)
    assert observe(known, {1, 2}, 10.1) == Membership(settled=frozenset({1, 2}))


def test_each_joiner_settles_on_its_own() -> None:
    """A worker in a crash loop must not hold up the others' joins."""
    known = observe(Membership(settled=frozenset({0})), {0, 1}, 10.0)
    known = observe(known, {0, 1, 2}, 10.9)
    known = observe(known, {0, 1, 2}, 11.0)
    assert known == Membership(settled=frozenset({0, 1}), joining=((2, 10.9),))


PINNED = [1, 0, 3, 0, 0, 0, 1, 2, 0, 0, 1, 3, 1, 0, 0, 2]
