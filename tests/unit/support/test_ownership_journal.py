"""The chaos tests' judge finds what it's there for."""

from __future__ import annotations

from tests.support.ownership_journal import (
    FOR_EVER,
    Entry,
    Handling,
    Reversal,
    handlings,
    missing,
    overlaps,
    parse,
    reversals,
    takeovers,
)


def handling(start: int, end: int, worker: str = "w1", uid: str = "u1", gen: int = 1) -> Handling:
    return Handling(start, end, worker, uid, gen)


def test_a_line_is_read_and_a_cut_one_left_out() -> None:
    assert parse("5 w1 + u1 3\n9 w1 - u1 4\n12 w1 + u") == [
        Entry(5, "w1", True, "u1", 3),
        Entry(9, "w1", False, "u1", 4),
    ]


def test_a_cut_line_is_left_out_even_when_it_looks_whole() -> None:
    assert parse("5 w1 + u1 12") == []


def test_begin_and_end_make_a_handling_of_the_generation_at_its_end() -> None:
    entries = parse("5 w1 + u1 3\n6 w1 + u2 1\n9 w1 - u1 4\n9 w1 - u2 1\n")
    assert handlings(entries, {}) == [handling(5, 9, gen=4), handling(6, 9, uid="u2")]


def test_what_a_killed_worker_had_begun_ends_with_its_death() -> None:
    assert handlings(parse("5 w1 + u1 3\n"), {"w1": 8}) == [handling(5, 8, gen=3)]


def test_what_a_living_worker_never_ended_goes_on() -> None:
    assert handlings(parse("5 w1 + u1 3\n"), {}) == [handling(5, FOR_EVER, gen=3)]


def test_one_pod_in_two_workers_at_once_is_an_overlap() -> None:
    first, second = handling(0, 10_000_000), handling(9_000_000, 20_000_000, "w2")
    (found,) = overlaps([first, second], {})
    assert (found.pod, found.first, found.second, found.milliseconds) == ("u1", first, second, 1.0)


def test_an_overlap_with_a_long_handling_is_found_behind_a_short_one() -> None:
    long = handling(0, 100)
    found = overlaps([long, handling(5, 10), handling(50, 60, "w2")], {})
    assert [one.first for one in found] == [long]


def test_one_after_the_other_is_no_overlap() -> None:
    assert overlaps([handling(0, 10), handling(10, 20, "w2")], {}) == []


def test_two_uids_of_one_name_in_two_workers_are_an_overlap() -> None:
    names = {"u1": "default/a", "u2": "default/a"}
    assert len(overlaps([handling(0, 10), handling(5, 20, "w2", "u2")], names)) == 1


def test_two_uids_of_one_name_in_one_worker_are_none() -> None:
    """The old version ends while the new one waits."""
    names = {"u1": "default/a", "u2": "default/a"}
    assert overlaps([handling(0, 10), handling(5, 20, "w1", "u2")], names) == []


def test_two_pods_in_two_workers_are_no_overlap() -> None:
    assert overlaps([handling(0, 10), handling(5, 20, "w2", "u2")], {}) == []


def test_a_generation_that_goes_back_is_a_reversal_in_whichever_worker() -> None:
    found = [handling(0, 10, gen=1), handling(10, 20, gen=3), handling(30, 40, "w2", gen=2)]
    assert reversals(found) == [Reversal("u1", 40, 2, 3)]


def test_the_same_generation_again_is_none() -> None:
    """A new owner can't know how far the dead one got."""
    assert reversals([handling(0, 10, gen=3), handling(10, 20, "w2", gen=3)]) == []


def test_a_pod_that_is_not_known_any_more_is_no_reversal() -> None:
    assert reversals([handling(0, 10, gen=3), handling(10, 20, gen=0)]) == []


def test_a_last_version_that_is_not_shown_is_missing() -> None:
    assert missing({"a": 3, "b": 2, "c": 1}, {"a": 3, "b": 1}) == {"b": (2, 1), "c": (1, None)}


def test_a_takeover_is_counted_from_the_death() -> None:
    found = [
        handling(0, 10),
        handling(80_000_000, 90_000_000, "w2"),
        handling(0, 5, uid="u2"),
        handling(21_000_000, 22_000_000, "w3", "u2"),
        handling(30_000_000, 31_000_000, "w2", "u2"),
    ]
    assert takeovers(found, {"w1": 1_000_000}) == {"w1": [20, 79]}


def test_a_pod_that_was_handed_over_before_the_death_is_no_takeover() -> None:
    found = [handling(0, 10), handling(20, 30, "w2")]
    assert takeovers(found, {"w1": 1_000_000}) == {}
