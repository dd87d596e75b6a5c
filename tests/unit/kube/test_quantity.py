"""Quantities read, compare and print as apimachinery's resource.Quantity does."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.kube.quantity import (
    FORMAT_ERROR,
    MAX_NANO,
    NUMERIC_ERROR,
    SUFFIX_ERROR,
    Quantity,
    QuantityError,
    QuantityFormat,
)

NANO = 10**9


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("0", 0),
        ("1", NANO),
        ("+1", NANO),
        ("-1", -NANO),
        ("100m", NANO // 10),
        ("0.1", NANO // 10),
        (".5", NANO // 2),
        ("1.", NANO),
        ("1n", 1),
        ("1u", 1000),
        ("1k", 1000 * NANO),
        ("1M", 10**6 * NANO),
        ("1G", 10**9 * NANO),
        ("1T", 10**12 * NANO),
        ("1P", 10**15 * NANO),
        ("1E", 10**18 * NANO),
        ("1Ki", 1024 * NANO),
        ("64Mi", 64 * 2**20 * NANO),
        ("1.5Gi", 3 * 2**29 * NANO),
        ("2Ti", 2**41 * NANO),
        ("1Pi", 2**50 * NANO),
        ("1Ei", 2**60 * NANO),
        ("1e3", 1000 * NANO),
        ("1E3", 1000 * NANO),
        ("1e-3", NANO // 1000),
        ("12.5e+1", 125 * NANO),
        ("00042", 42 * NANO),
    ],
)
def test_every_suffix_has_its_amount(text: str, nano: int) -> None:
    """Binary, decimal and exponent suffixes, signs and fractions."""
    assert Quantity.parse(text).nano == nano


@pytest.mark.parametrize(("text", "nano"), [("0.1n", 1), ("-0.1n", -1), ("1e-30", 1), ("1.0000000001", NANO + 1)])
def test_what_is_finer_than_a_nano_rounds_away_from_zero(text: str, nano: int) -> None:
    assert Quantity.parse(text).nano == nano


@pytest.mark.parametrize("text", ["9223372036854775807", "1e30", "99999E", "1e999999999999"])
def test_amounts_beyond_int64_are_capped(text: str) -> None:
    assert Quantity.parse(text).nano == MAX_NANO


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", FORMAT_ERROR),
        (".", FORMAT_ERROR),
        ("+", FORMAT_ERROR),
        ("aoeu", FORMAT_ERROR),
        ("1.1.M", FORMAT_ERROR),
        ("1+1.0M", FORMAT_ERROR),
        ("64MB", FORMAT_ERROR),
        (" 1", FORMAT_ERROR),
        ("1 ", FORMAT_ERROR),
        ("1\n", FORMAT_ERROR),
        ("\u0661", FORMAT_ERROR),
        ("1" * 300, FORMAT_ERROR),
        ("0.1mi", SUFFIX_ERROR),
        ("1i", SUFFIX_ERROR),
        ("1Mm", SUFFIX_ERROR),
        ("1e", SUFFIX_ERROR),
        ("-3.01e-", SUFFIX_ERROR),
        ("Mi", NUMERIC_ERROR),
    ],
)
def test_a_bad_text_is_refused_with_kubernetes_message(text: str, error: str) -> None:
    with pytest.raises(QuantityError) as caught:
        Quantity.parse(text)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0Mi", "0"),
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1000", "1k"),
        ("1234567", "1234567"),
        ("5000000", "5M"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1000Ki", "1000Ki"),
        ("1.5Ki", "1536"),
        ("0.1Ki", "102400m"),
        ("-2048Ki", "-2Mi"),
        ("1e3", "1e3"),
        ("10e2", "1e3"),
        ("1e4", "10e3"),
        ("100e-1", "10"),
        ("1n", "1n"),
        ("1E", "1E"),
        ("1Ei", "1Ei"),
    ],
)
def test_the_canonical_text_is_the_api_servers(text: str, canonical: str) -> None:
    assert str(Quantity.parse(text)) == canonical


def test_milli_value_and_rounding_go_up() -> None:
    assert Quantity.parse("0.0001").milli() == 1
    assert Quantity.parse("1500m").value() == 2
    assert Quantity.parse("-1500m").value() == -1
    assert str(Quantity.parse("100u").round_up_to_milli()) == "1m"


def test_equal_amounts_are_equal_however_they_are_written() -> None:
    assert Quantity.parse("1Ki") == Quantity.parse("1024") == Quantity.parse("1.024e3")
    assert len({Quantity.parse("1"), Quantity.parse("1000m")}) == 1
    assert Quantity.parse("1M") < Quantity.parse("1Mi")
    assert max(Quantity.parse("900m"), Quantity.parse("1")) == Quantity.from_value(1)


def test_a_sum_keeps_the_left_sides_format_unless_it_is_zero() -> None:
    assert str(Quantity.parse("1Gi") + Quantity.parse("1Gi")) == "2Gi"
    assert (Quantity(0) + Quantity.parse("1Gi")).format is QuantityFormat.BINARY_SI
    assert str(Quantity.parse("1") - Quantity.parse("100m")) == "900m"


@pytest.mark.parametrize(
    ("amount", "divisor", "result"), [("250m", "1", 1), ("250m", "1m", 250), ("64Mi", "1Mi", 64), ("1", "0", 1)]
)
def test_a_resource_field_is_divided_and_rounded_up(amount: str, divisor: str, result: int) -> None:
    assert Quantity.parse(amount).divided_by(Quantity.parse(divisor)) == result


@given(
    st.integers(-(10**12), 10**12),
    st.integers(0, 999),
    st.sampled_from(["", "n", "u", "m", "k", "M", "Ki", "Mi", "e3", "E-2"]),
)
def test_reading_the_canonical_text_gives_the_same_amount(whole: int, fraction: int, suffix: str) -> None:
    quantity = Quantity.parse(f"{whole}.{fraction:03}{suffix}")
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity)


@given(st.integers(0, 10**15), st.sampled_from([("m", Fraction(1, 1000)), ("Ki", Fraction(1024)), ("", Fraction(1))]))
def test_amounts_are_exact(whole: int, suffix: tuple[str, Fraction]) -> None:
    assert Fraction(Quantity.parse(f"{whole}{suffix[0]}").nano, NANO) == min(
        whole * suffix[1], Fraction(MAX_NANO, NANO)
    )


@given(st.text(max_size=40))
def test_any_text_is_a_quantity_or_a_quantity_error(text: str) -> None:
    try:
        Quantity.parse(text)
    except QuantityError:
        pass
