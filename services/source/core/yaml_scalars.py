"""What a plain YAML scalar means to Kubernetes (sigs.k8s.io/yaml, which is Go's yaml.v2: YAML 1.1 booleans).

Differs from PyYAML on purpose: no dates, no base-60 numbers, `0o17` is octal as `017` is, and `y`/`n` are
booleans.
"""

from __future__ import annotations

import re

_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_NOT_FINITE = frozenset(sign + word for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")) | frozenset(
    (".nan", ".NaN", ".NAN")
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_NUMBER_START = frozenset("+-.0123456789")
#: Nobody writes longer numbers; it bounds the conversion.
_MAX_NUMBER = 64

Scalar = str | int | float | bool | None


class ScalarError(ValueError):
    """The scalar has no JSON value."""


def plain_scalar(text: str) -> Scalar:
    """The value of an unquoted scalar; raises `ScalarError` for infinities and not-a-number."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMBER_START:
        return text
    if text in _NOT_FINITE:
        raise ScalarError(f"{text} can't be expressed in JSON")
    number = _number(text)
    return text if number is None else number


def tagged_scalar(tag: str, text: str) -> Scalar:
    """The value of a scalar with an explicit tag (`!!str 1`, short form); raises `ScalarError`."""
    if tag == "str" or tag == "timestamp":
        return text
    value = plain_scalar(text)
    if tag == "float" and isinstance(value, int) and not isinstance(value, bool):
        return value
    matches = {
        "bool": isinstance(value, bool),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, float),
        "null": value is None,
    }
    if tag not in matches:
        raise ScalarError(f"unknown tag !!{tag}")
    if not matches[tag]:
        raise ScalarError(f"the value is not a !!{tag}")
    return value


def key_text(value: Scalar) -> str:
    """A mapping's key as the string that JSON needs; raises `ScalarError` for null."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        raise ScalarError("a key can't be null")
    return str(value)


def _number(text: str) -> int | float | None:
    plain = text.replace("_", "") if "_" in text else text
    if len(plain) > _MAX_NUMBER:
        return None
    match = _INTEGER.fullmatch(plain)
    if match:
        sign, hexadecimal, binary, octal, decimal = match.groups()
        if hexadecimal:
            value = int(hexadecimal, 16)
        elif binary:
            value = int(binary, 2)
        elif octal:
            value = int(octal, 8)
        else:
            value = int(decimal)
        return -value if sign == "-" else value
    if _FLOAT.fullmatch(plain):
        value_float = float(plain)
        if value_float in (float("inf"), float("-inf")):
            return None
        # Go prints a whole float without a fraction, so that it is an integer again in JSON.
        whole = int(value_float)
        return whole if whole == value_float and abs(whole) < 10**21 else value_float
    return None
