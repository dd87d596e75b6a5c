"""Elastic tab stops, as Go's text/tabwriter."""

from __future__ import annotations

from cli.columns import align, table


def test_adjacent_lines_share_a_column() -> None:
    assert align(["a:\t1", "long:\t2"], minimum=0, padding=2) == ["a:     1", "long:  2"]


def test_a_line_without_the_cell_ends_the_column() -> None:
    lines = ["a:\t1", "IPs:", "longer:\t2"]
    assert align(lines, minimum=0, padding=2) == ["a:  1", "IPs:", "longer:  2"]


def test_an_inner_column_is_laid_out_within_the_lines_that_have_it() -> None:
    lines = ["a\tb\tc", "a\tbbbb\tc", "a\tx", "a\tb\tc"]
    assert align(lines, minimum=0, padding=1) == ["a b    c", "a bbbb c", "a x", "a b c"]


def test_the_last_cell_of_a_line_is_never_padded() -> None:
    assert table(["NAME", "AGE"], [["x", "5s"], ["longname", "100s"]]) == (
        "NAME       AGE\nx          5s\nlongname   100s\n"
    )


def test_a_column_of_kubectl_is_at_least_six_wide() -> None:
    assert table(["A", "B"], [["1", "2"]]) == "A     B\n1     2\n"
