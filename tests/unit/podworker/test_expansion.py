"""$(VAR) references (lifecycle 7.1, 7.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.podworker.core.expansion import expand, expand_all

VARIABLES = {"A": "1", "B": "$(A)", "a b": "blank", "": "empty"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(A)", "x1y1"),
        ("$(C)", "$(C)"),
        ("$(B)", "$(A)"),
        ("$$", "$"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$(A", "$(A"),
        ("$A", "$A"),
        ("$", "$"),
        ("a$", "a$"),
        ("$(a b)", "blank"),
        ("$()", "empty"),
        ("$($(A))", "$($(A))"),
        ("$(A)$(", "1$("),
        ("", ""),
    ],
)
def test_references_are_replaced_as_kubernetes_does(text: str, expected: str) -> None:
    assert expand(text, VARIABLES) == expected


@given(st.text(alphabet=st.characters(exclude_characters="$")))
def test_a_text_without_a_dollar_stays(text: str) -> None:
    assert expand(text, VARIABLES) == text


@given(st.text(alphabet="$()AX"))
def test_any_text_can_be_expanded_and_unknown_names_lose_nothing_but_doubled_dollars(text: str) -> None:
    assert len(expand(text, {})) == len(text) - _doubled(text)


def _doubled(text: str) -> int:
    count = at = 0
    while at < len(text) - 1:
        if text[at] != "$":
            at += 1
        elif text[at + 1] == "$":
            count, at = count + 1, at + 2
        elif text[at + 1] == "(" and ")" in text[at + 2 :]:
            at = text.index(")", at + 2) + 1
        else:
            at += 2
    return count


def test_each_item_of_a_command_is_expanded_by_itself() -> None:
    assert expand_all(["$(A)", "$(A", ")"], VARIABLES) == ("1", "$(A", ")")
