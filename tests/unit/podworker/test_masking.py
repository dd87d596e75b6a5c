"""Secrets' values out of what a container wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.podworker.core.masking import masked


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("login with s3cret failed", ["s3cret"], "login with *** failed"),
        ("s3cret s3cret2", ["s3cret", "s3cret2"], "*** ***"),
        ("a.c abc", ["a.c"], "*** abc"),
        ("first\nsecond", ["first\nsecond\n"], "***"),
        ("only second was printed", ["first\nsecond\n"], "only *** was printed"),
        ("nothing hidden", [], "nothing hidden"),
        ("12 of 12", ["12", ""], "12 of 12"),
        ("with newline: s3cret", ["s3cret\n"], "with newline: ***"),
    ],
)
def test_values_and_their_lines_are_masked_but_for_the_shortest(text: str, values: list[str], expected: str) -> None:
    assert masked(text, values) == expected


@given(before=st.text(max_size=5), after=st.text(max_size=5), value=st.text(alphabet="xyz-+$.\\", min_size=3))
def test_no_value_survives(before: str, after: str, value: str) -> None:
    assert value not in masked(before + value + after, [value]).replace("***", "\n")
