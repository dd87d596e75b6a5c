"""The judge of the engine's record finds what it's there for."""

from __future__ import annotations

from tests.support.engine_record import Run, backwards, doubles, repeats, running, runs
from tests.support.ownership_journal import FOR_EVER


def test_a_start_and_an_end_make_a_run() -> None:
    text = "1 + default/a u1 c1 1\n4 - default/a u1 c1 1\n5 + default/a u1 c2 2\n"
    assert runs(text) == [
        Run(1, 4, "default/a", "u1", "c1", 1),
        Run(5, FOR_EVER, "default/a", "u1", "c2", 2),
    ]
    assert running(runs(text)) == {"default/a": 2}


def test_a_new_version_that_starts_before_the_old_has_ended_is_a_double() -> None:
    found = runs("1 + default/a u1 c1 1\n3 + default/a u2 c2 2\n4 - default/a u1 c1 1\n")
    assert [(a.uid, b.uid) for a, b in doubles(found)] == [("u1", "u2")]


def test_one_after_the_other_is_none() -> None:
    assert doubles(runs("1 + default/a u1 c1 1\n4 - default/a u1 c1 1\n5 + default/a u2 c2 2\n")) == []


def test_two_pods_side_by_side_are_none() -> None:
    assert doubles(runs("1 + default/a u1 c1 1\n2 + default/b u2 c2 1\n")) == []


def test_an_older_version_after_a_newer_one_is_backwards() -> None:
    found = runs("1 + default/a u1 c1 2\n4 - default/a u1 c1 2\n5 + default/a u1 c2 1\n")
    assert [(a.version, b.version) for a, b in backwards(found)] == [(2, 1)]


def test_the_same_version_again_is_not_backwards() -> None:
    assert backwards(runs("1 + default/a u1 c1 2\n4 - default/a u1 c1 2\n5 + default/a u1 c2 2\n")) == []


def test_a_version_that_runs_again_is_a_repeat() -> None:
    found = runs("1 + default/a u1 c1 1\n4 - default/a u1 c1 1\n5 + default/a u1 c2 1\n6 + default/b u2 c3 1\n")
    assert [run.container for run in repeats(found)] == ["c2"]
