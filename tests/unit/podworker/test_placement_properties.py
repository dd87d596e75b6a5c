"""What holds of placement for any membership."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.podworker.core.placement import SETTLE_SECONDS, Membership, observe, owner, wanted_slots
from shared.kube.ids import SLOTS

members = st.frozensets(st.integers(0, 63), min_size=1, max_size=8)
slots = range(SLOTS)


@given(members)
def test_every_slot_has_exactly_one_wanted_owner(present: frozenset[int]) -> None:
    shares = [wanted_slots(member, present) for member in present]
    assert sum(map(len, shares)) == SLOTS
    assert frozenset().union(*shares) == frozenset(slots)
    for member in present:
        assert wanted_slots(member, present) == {slot for slot in slots if owner(slot, present) == member}


@given(members, st.integers(0, 63))
def test_a_join_moves_slots_only_to_the_new_worker(present: frozenset[int], joined: int) -> None:
    for slot in slots:
        before, after = owner(slot, present), owner(slot, present | {joined})
        assert after in (before, joined)


@given(members, st.data())
def test_a_death_moves_only_the_dead_workers_slots(present: frozenset[int], data: st.DataObject) -> None:
    dead = data.draw(st.sampled_from(sorted(present)))
    for slot in slots:
        before = owner(slot, present)
        if before != dead:
            assert owner(slot, present - {dead}) == before


@given(st.lists(st.integers(0, 63), min_size=1, max_size=8, unique=True))
def test_the_order_of_the_members_does_not_matter(present: list[int]) -> None:
    assert [owner(slot, present) for slot in slots] == [owner(slot, reversed(present)) for slot in slots]


scans = st.lists(st.tuples(st.frozensets(st.integers(0, 5)), st.floats(0.01, 1.5)), max_size=20)


@given(scans)
def test_a_settled_worker_was_seen_at_the_last_scan(history: list[tuple[frozenset[int], float]]) -> None:
    known, now = Membership(settled=frozenset({0})), 0.0
    for seen, passed in history:
        now += passed
        known = observe(known, seen, now)
        assert known.seen == seen
        assert not known.settled & {member for member, _ in known.joining}
        assert known.settled or not seen


@given(scans, st.frozensets(st.integers(0, 5), min_size=1))
def test_workers_with_any_past_agree_once_nothing_changes(
    history: list[tuple[frozenset[int], float]], present: frozenset[int]
) -> None:
    """Whatever two workers saw before, a quiet second later both count with the same members."""
    known, now = Membership(settled=frozenset({0})), 0.0
    for seen, passed in history:
        now += passed
        known = observe(known, seen, now)
    known = observe(known, present, now)
    assert observe(known, present, now + SETTLE_SECONDS + 0.001) == Membership(settled=present)
