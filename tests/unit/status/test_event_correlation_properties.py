"""What holds for any stream of events, in whatever batches they are handed over."""

from __future__ import annotations

from collections import Counter, defaultdict

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from services.status.core.aggregate import (
    BURST,
    COMBINED_PREFIX,
    REFILL_SECONDS,
    SIMILAR_MOST,
    ObjectMemory,
    Tally,
    correlate,
    object_key,
)
from shared.contracts.events import Event, InvolvedObject

events = st.builds(
    lambda number, uid, reason, message, time: Event(
        id=str(number),
        time=time,
        type="Normal",
        reason=reason,
        message=f"m{message}",
        involved=InvolvedObject(kind="Pod", name="p", uid=uid),
        component="podworker",
    ),
    st.integers(),
    st.sampled_from(["u1", "u2"]),
    st.sampled_from(["A", "B"]),
    st.integers(0, 30),
    st.floats(0, 2000),
)
streams = st.lists(st.lists(events, max_size=40), max_size=4)


def played(batches: list[list[Event]]) -> tuple[list[tuple[str, Tally]], dict[str, ObjectMemory]]:
    memory: dict[str, ObjectMemory] = {}
    told: list[tuple[str, Tally]] = []
    for batch in batches:
        found = correlate(memory, batch)
        memory |= found.memory
        told += found.tallies.items()
    return told, memory


@given(streams)
def test_every_event_is_counted_or_remembered_as_cut(batches: list[list[Event]]) -> None:
    told, memory = played(batches)
    cut = sum(one.count for known in memory.values() for one in known.missed.values())
    assert sum(one.count for _, one in told) + cut == sum(map(len, batches))


@given(streams)
def test_no_object_is_told_of_more_often_than_its_tokens_allow(batches: list[list[Event]]) -> None:
    """Writes, not events: what is counted with a later one costs one."""
    memory: dict[str, ObjectMemory] = {}
    writes: Counter[str] = Counter()
    times: defaultdict[str, list[float]] = defaultdict(list)
    for event in [event for batch in batches for event in batch]:
        found = correlate(memory, [event])
        memory |= found.memory
        writes[object_key(event)] += len(found.tallies)
        times[object_key(event)].append(event.time)
    for key, count in writes.items():
        assert count <= BURST + (max(times[key]) - times[key][0]) / REFILL_SECONDS + 1e-6


@given(streams)
def test_batches_make_no_difference(batches: list[list[Event]]) -> None:
    """The same rows in the end: each key's count, first and last time."""

    def rows(told: list[tuple[str, Tally]]) -> dict[str, tuple[int, float, float]]:
        found: dict[str, tuple[int, float, float]] = {}
        for key, one in told:
            count, first, last = found.get(key, (0, one.first_seen, one.last_seen))
            found[key] = (count + one.count, min(first, one.first_seen), max(last, one.last_seen))
        return found

    at_once = [[event for batch in batches for event in batch]]
    (told, memory), (told_at_once, memory_at_once) = played(batches), played(at_once)
    assert (rows(told), memory) == (rows(told_at_once), memory_at_once)


@given(st.lists(events, max_size=60))
def test_within_ten_minutes_at_most_nine_similar_events_stand_by_themselves(batch: list[Event]) -> None:
    close = [replace(event, time=float(index)) for index, event in enumerate(batch)]
    plain: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for one in correlate({}, close).tallies.values():
        if not one.event.message.startswith(COMBINED_PREFIX):
            plain[one.event.involved.uid, one.event.reason].add(one.event.message)
    assert all(len(messages) < SIMILAR_MOST for messages in plain.values())
