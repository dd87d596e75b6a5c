"""Go durations ("1m30s"), the form in which Kubernetes' configuration files write times."""

from __future__ import annotations

import re

NANOSECONDS_PER_SECOND = 1_000_000_000
_UNITS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # micro sign
    "\u03bcs": 1_000,  # Greek letter mu
    "ms": 1_000_000,
    "s": NANOSECONDS_PER_SECOND,
    "m": 60 * NANOSECONDS_PER_SECOND,
    "h": 3600 * NANOSECONDS_PER_SECOND,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)", re.ASCII)
_LIMIT = 2**63


class DurationError(ValueError):
    """The text isn't a duration; `str(error)` is what Go's time.ParseDuration says."""


def parse_duration(text: str) -> int:
    """Nanoseconds of a Go duration; raises `DurationError`."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    negative = text.startswith("-")
    if rest == "0":
        return 0
    if not rest:
        raise DurationError(f"time: invalid duration {_quote(text)}")
    total = 0
    while rest:
        match = _PART.match(rest)
        if match is None or not (match[1] or match[2]) or len(match[1]) > 20:
            raise DurationError(f"time: invalid duration {_quote(text)}")
        whole, fraction, unit = match[1], match[2] or "", match[3]
        if not unit:
            raise DurationError(f"time: missing unit in duration {_quote(text)}")
        if unit not in _UNITS:
            raise DurationError(f"time: unknown unit {_quote(unit)} in duration {_quote(text)}")
        scale = _UNITS[unit]
        # Eighteen digits are finer than a nanosecond of an hour, so the rest can't show.
        fraction = fraction[:18]
        total += int(whole or "0") * scale
        total += int(fraction or "0") * scale // 10 ** len(fraction)
        rest = rest[match.end() :]
    if total > _LIMIT - (0 if negative else 1):
        raise DurationError(f"time: invalid duration {_quote(text)}")
    return -total if negative else total


def parse_seconds(text: str) -> float:
    """Seconds of a Go duration; raises `DurationError`."""
    return parse_duration(text) / NANOSECONDS_PER_SECOND


def format_duration(nanoseconds: int) -> str:
    """The text of Go's Duration.String: "1m30s", "1.5s", "20ms", "0s"."""
    if nanoseconds == 0:
        return "0s"
    sign, left = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if left < NANOSECONDS_PER_SECOND:
        for unit, scale in (("ms", 1_000_000), ("\u00b5s", 1_000), ("ns", 1)):
            if left >= scale:
                return f"{sign}{_decimal(left, scale)}{unit}"
    minutes, rest = divmod(left, 60 * NANOSECONDS_PER_SECOND)
    seconds = _decimal(rest, NANOSECONDS_PER_SECOND)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}s"
    if minutes:
        return f"{sign}{minutes}m{seconds}s"
    return f"{sign}{seconds}s"


def format_seconds(seconds: float) -> str:
    """`format_duration` of a number of seconds, to the nanosecond."""
    return format_duration(round(seconds * NANOSECONDS_PER_SECOND))


def _decimal(amount: int, scale: int) -> str:
    whole, rest = divmod(amount, scale)
    if rest == 0:
        return str(whole)
    digits = str(rest).rjust(len(str(scale)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}"


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
