"""Which events are the same."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from services.status.core.aggregate import event_key, tally
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
    events = [replace(EVENT, id=f"e{n}", time=time) for n, time in enumerate((30.0, 10.0, 20.0))]
    (found,) = tally(events).values()
    assert (found.count, found.first_seen, found.last_seen) == (3, 10.0, 30.0)


def test_an_id_counts_once() -> None:
    (found,) = tally([EVENT, EVENT]).values()
    assert found.count == 1
