"""Environment files of fileKeyRef: `KEY='value'` (lifecycle 7.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.podworker.core.config_objects import ConfigError
from services.podworker.core.env_file import env_file_value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("K='v'", "v"),
        ("# K='x'\n\n  K='v'\n", "v"),
        ("A='1'\nK='two\nlines'\nB='3'\n", "two\nlines"),
        ("K='a=b #c'", "a=b #c"),
        ("K='v' # told\n", "v"),
        ("K=\n", ""),
        ("K= 'v'\n", ""),
        ("K=''\n", ""),
        ("A='K=no'\n", None),
        ("A='1\nK=no\n'\nK='v'", "v"),
        ("", None),
        ("KK='v'", None),
        ("K='first'\nK='second'\n", "first"),
        ("K='v'\r\n", "v"),
    ],
)
def test_a_value_is_read(text: str, expected: str | None) -> None:
    assert env_file_value(text, "K") == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("K=v", "line 1: the value must be in single quotes"),
        ('K="v"', "line 1: the value must be in single quotes"),
        ("A='1'\n\nK ='v'", "line 3: no space may stand before ="),
        ("A='1\n2'\nK='v", "line 3: the closing quote is missing"),
        ("K='v'w", "line 1: nothing may follow the closing quote"),
        ("nonsense", "line 1: expected KEY='value'"),
    ],
)
def test_a_fault_is_told_by_its_line_and_without_its_text(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        env_file_value(text, "K")
    assert str(error.value) == told


@given(st.text(alphabet="K='\n #a"))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        env_file_value(text, "K")
    except ConfigError as error:
        assert str(error).startswith("line ")
