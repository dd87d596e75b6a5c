"""Which events are the same, which are combined, and which are cut."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from services.status.core.aggregate import (
    BURST,
    COMBINED_PREFIX,
    REFILL_SECONDS,
    SIMILAR_MOST,
    SIMILAR_SECONDS,
    ObjectMemory,
    Tally,
    correlate,
    event_key,
    unique,
)
from shared.contracts.events import Event, InvolvedObject

EVENT = Event(
    id="e1",
    time=10.0,
    type="Warning",
    reason="BackOff",
    message="Back-off restarting failed container c",
    involved=InvolvedObject(kind="Pod", name="web", namespace="default", uid="u1", field_path="spec.containers{c}"),
    component="podworker",
)


def numbered(count: int, *, start: int = 0, time: float = 10.0, step: float = 1.0) -> list[Event]:
    """Events that differ in their messages."""
    numbers = range(start, start + count)
    return [replace(EVENT, id=f"n{n}", message=f"m{n}", time=time + step * (n - start)) for n in numbers]


def told(*events: Event, memory: dict[str, ObjectMemory] | None = None) -> list[Tally]:
    return list(correlate(memory or {}, events).tallies.values())


def test_time_and_id_do_not_make_an_event_another_one() -> None:
    assert event_key(replace(EVENT, id="e2", time=99.0)) == event_key(EVENT)


@pytest.mark.parametrize(
    "other",
    [
        replace(EVENT, type="Normal"),
        replace(EVENT, reason="Failed"),
        replace(EVENT, message="x"),
        replace(EVENT, component="source"),
        *(
            replace(EVENT, involved=replace(EVENT.involved, **{field: "x"}))
            for field in ("kind", "name", "namespace", "uid", "field_path")
        ),
    ],
)
def test_every_other_part_makes_it_another_one(other: Event) -> None:
    assert event_key(other) != event_key(EVENT)


def test_a_part_cannot_be_taken_for_its_neighbour() -> None:
    one = replace(EVENT, reason="ab", message="c")
    assert event_key(one) != event_key(replace(EVENT, reason="a", message="bc"))


def test_the_same_event_is_counted_from_its_earliest_to_its_latest_time() -> None:
    """Also when they come out of order."""
    (found,) = told(*(replace(EVENT, id=f"e{n}", time=time) for n, time in enumerate((30.0, 10.0, 20.0))))
    assert (found.count, found.first_seen, found.last_seen) == (3, 10.0, 30.0)


def test_an_id_counts_once() -> None:
    assert unique([EVENT, EVENT]) == [EVENT]


def test_thirty_similar_events_are_nine_and_one_combined_with_at_most_25_told() -> None:
    """Case 29 of the node's duties."""
    found = told(*numbered(30))
    assert [one.event.message for one in found[:9]] == [f"m{n}" for n in range(9)]
    (combined,) = found[9:]
    assert combined.event.message == f"{COMBINED_PREFIX}m24"
    assert combined.count == 16
    assert sum(one.count for one in found) == BURST


def test_a_message_that_is_known_is_counted_by_itself_among_combined_ones() -> None:
    first = correlate({}, numbered(SIMILAR_MOST + 2))
    (again,) = told(replace(EVENT, id="x", message="m3", time=30.0), memory=first.memory)
    assert (again.event.message, again.count) == ("m3", 1)


def test_after_ten_quiet_minutes_events_are_told_one_by_one_again() -> None:
    first = correlate({}, numbered(SIMILAR_MOST))
    late = 10.0 + SIMILAR_MOST + SIMILAR_SECONDS + 1
    (found,) = told(*numbered(1, start=50, time=late), memory=first.memory)
    assert found.event.message == "m50"


def test_another_type_or_reason_is_not_similar() -> None:
    first = correlate({}, numbered(SIMILAR_MOST))
    (found,) = told(replace(EVENT, id="x", reason="Failed", time=30.0), memory=first.memory)
    assert found.event.message == EVENT.message


def test_containers_of_a_pod_share_what_is_similar() -> None:
    """client-go: the field path is no part of the aggregation."""
    first = correlate({}, numbered(SIMILAR_MOST - 1))
    involved = replace(EVENT.involved, field_path="spec.containers{other}")
    (found,) = told(replace(EVENT, id="x", involved=involved, message="new", time=30.0), memory=first.memory)
    assert found.event.message == f"{COMBINED_PREFIX}new"


def test_what_was_cut_is_counted_with_the_next_that_is_let_through() -> None:
    events = [replace(EVENT, id=f"e{n}", time=10.0 + n) for n in range(int(BURST) + 5)]
    first = correlate({}, events)
    assert [one.count for one in first.tallies.values()] == [BURST]
    later = replace(EVENT, id="later", time=100.0 + REFILL_SECONDS)
    (found,) = told(later, memory=first.memory)
    assert (found.count, found.first_seen, found.last_seen) == (6, 10.0 + BURST, later.time)


def test_an_object_gets_one_more_every_five_minutes() -> None:
    first = correlate({}, [replace(EVENT, id=f"e{n}") for n in range(int(BURST))])
    early = replace(EVENT, id="early", time=10.0 + REFILL_SECONDS - 1)
    assert told(early, memory=first.memory) == []
    assert len(told(replace(early, time=10.0 + REFILL_SECONDS), memory=first.memory)) == 1


def test_one_object_does_not_cut_another_short() -> None:
    first = correlate({}, [replace(EVENT, id=f"e{n}") for n in range(int(BURST) + 1)])
    other = replace(EVENT, id="x", involved=replace(EVENT.involved, uid="u2"))
    assert len(told(other, memory=first.memory)) == 1
