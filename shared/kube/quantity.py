"""Kubernetes quantities ("250m", "64Mi", "1e3") as exact integers.

A quantity is held as an integer count of nano units (the finest that Kubernetes keeps) with the family of
suffixes it was written in, so that adding and comparing never round and the canonical text comes out as the
API server would print it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

NANO = 1_000_000_000
_MILLI_IN_NANO = 1_000_000
#: Larger amounts are capped here, as apimachinery's resource.Quantity does (2^63-1 whole units).
MAX_NANO = (2**63 - 1) * NANO

_PATTERN = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]{1,18})", re.ASCII)
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_BY_EXPONENT = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

FORMAT_ERROR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
SUFFIX_ERROR = "unable to parse quantity's suffix"
NUMERIC_ERROR = "unable to parse numeric part of quantity"
#: Beyond this many characters a text is no quantity that anybody wrote on purpose; it bounds the arithmetic.
_MAX_TEXT = 256


class QuantityError(ValueError):
    """The text isn't a quantity; `str(error)` is Kubernetes' own message."""


class QuantityFormat(Enum):
    """The family of suffixes; it decides only how the amount is printed."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount in nano units. Equality and order look at the amount alone, never at how it was written."""

    nano: int
    format: QuantityFormat = QuantityFormat.DECIMAL_SI

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read a quantity; raises `QuantityError`. More than nano precision rounds away from zero."""
        return _parse(text)

    @classmethod
    def from_milli(cls, milli: int, fmt: QuantityFormat = QuantityFormat.DECIMAL_SI) -> Quantity:
        """A quantity of so many thousandths."""
        return cls(milli * _MILLI_IN_NANO, fmt)

    @classmethod
    def from_value(cls, value: int, fmt: QuantityFormat = QuantityFormat.DECIMAL_SI) -> Quantity:
        """A quantity of so many whole units (bytes, cores)."""
        return cls(value * NANO, fmt)

    def milli(self) -> int:
        """Thousandths, rounded up (what cpu is counted in)."""
        return -(-self.nano // _MILLI_IN_NANO)

    def value(self) -> int:
        """Whole units, rounded up (what memory is counted in)."""
        return -(-self.nano // NANO)

    def round_up_to_milli(self) -> Quantity:
        """The same amount with nothing finer than a milli (API defaulting of resource lists)."""
        return Quantity(self.milli() * _MILLI_IN_NANO, self.format)

    def divided_by(self, divisor: Quantity) -> int:
        """ceil(self / divisor), as a resourceFieldRef is computed; a zero divisor counts as 1."""
        return -(-self.nano // (divisor.nano or NANO))

    def is_zero(self) -> bool:
        return self.nano == 0

    def __add__(self, other: Quantity) -> Quantity:
        # As in Kubernetes the left side's format wins, unless it is zero.
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __le__(self, other: Quantity) -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: Quantity) -> bool:
        return self.nano > other.nano

    def __ge__(self, other: Quantity) -> bool:
        return self.nano >= other.nano

    def __str__(self) -> str:
        """The canonical text: no fraction, the largest suffix that leaves a whole number."""
        if self.nano == 0:
            return "0"
        if self.format is QuantityFormat.BINARY_SI:
            whole, rest = divmod(self.nano, NANO)
            # Below 1024, or with a fraction, a binary suffix would lose precision.
            if rest == 0 and abs(whole) >= 1024:
                return _binary_text(whole)
        return _decimal_text(self.nano, exponential=self.format is QuantityFormat.DECIMAL_EXPONENT)


def _binary_text(whole: int) -> str:
    power = 0
    while whole % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
        whole //= 1024
        power += 1
    return f"{whole}{_BINARY_SUFFIXES[power]}"


def _decimal_text(nano: int, *, exponential: bool) -> str:
    mantissa, exponent = nano, -9
    while exponent < 18 and mantissa % 1000 == 0:
        mantissa //= 1000
        exponent += 3
    if exponential:
        return f"{mantissa}e{exponent}" if exponent else f"{mantissa}"
    return f"{mantissa}{_DECIMAL_BY_EXPONENT[exponent]}"


@lru_cache(maxsize=4096)
def _parse(text: str) -> Quantity:
    match = _PATTERN.fullmatch(text) if len(text) <= _MAX_TEXT else None
    if match is None or not text:
        raise QuantityError(FORMAT_ERROR)
    sign, whole, fraction, suffix = match.groups()
    fraction = fraction or ""
    if not whole and not fraction:
        raise QuantityError(FORMAT_ERROR if suffix == "" else NUMERIC_ERROR)
    numerator = int(whole + fraction)
    # The amount is numerator * up / down units.
    up, down = 1, 10 ** len(fraction)
    fmt = QuantityFormat.DECIMAL_SI
    if suffix in _BINARY:
        fmt = QuantityFormat.BINARY_SI
        up = _BINARY[suffix]
    elif suffix in _DECIMAL:
        exponent = _DECIMAL[suffix]
        up, down = (up * 10**exponent, down) if exponent >= 0 else (up, down * 10**-exponent)
    else:
        found = _EXPONENT.fullmatch(suffix)
        if found is None:
            raise QuantityError(SUFFIX_ERROR)
        fmt = QuantityFormat.DECIMAL_EXPONENT
        # Past these bounds the result is the cap or one nano whatever the digits are.
        exponent = max(-600, min(600, int(found[1])))
        up, down = (up * 10**exponent, down) if exponent >= 0 else (up, down * 10**-exponent)
    nano = min(-(-numerator * up * NANO // down), MAX_NANO)
    return Quantity(-nano if sign == "-" else nano, fmt)
