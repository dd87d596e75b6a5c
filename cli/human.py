"""Times and amounts as kubectl writes them for people. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

NONE = "<none>"
UNKNOWN = "<unknown>"
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def human_duration(seconds: float) -> str:
    """ "45s", "3m20s", "5h", "2d3h", "400d": apimachinery's duration.HumanDuration."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def since(instant: str | float | None, now: float) -> str:
    """How long ago an RFC 3339 instant, or seconds since the epoch, is; "<unknown>" when there is none."""
    moment = epoch(instant)
    return UNKNOWN if moment is None else human_duration(now - moment)


def epoch(instant: str | float | None) -> float | None:
    """Seconds since the epoch; None when it's absent or unreadable."""
    if instant is None or instant == "":
        return None
    if isinstance(instant, int | float):
        return float(instant)
    try:
        return datetime.fromisoformat(instant).timestamp()
    except ValueError:
        return None


def rfc1123(instant: str | float | None) -> str:
    """ "Mon, 01 Dec 2025 00:00:02 +0000", in the machine's time zone; "" when there is none."""
    moment = epoch(instant)
    if moment is None:
        return ""
    local = datetime.fromtimestamp(moment, UTC).astimezone()
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[local.weekday()]
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return f"{day}, {local.day:02d} {months[local.month - 1]} {local.year} {local:%H:%M:%S %z}"


def _two(whole: int, unit: int, name: str, small: int, small_name: str) -> str:
    first, rest = divmod(whole, unit)
    second = rest // small
    return f"{first}{name}{second}{small_name}" if second else f"{first}{name}"
