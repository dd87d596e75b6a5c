"""Instants as Kubernetes writes them: RFC 3339 in UTC; in statuses cut to whole seconds."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(seconds: float) -> str:
    """Seconds since the epoch -> "2026-12-01T00:33:27Z", cut (not rounded) to whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_nano(seconds: float) -> str:
    """Seconds since the epoch -> RFC 3339 with microseconds, as `kubernetes.io/config.seen` carries it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_rfc3339(text: str) -> float:
    """RFC 3339 (any fraction, any offset) -> seconds since the epoch. Raises ValueError on anything else.

    Docker writes nanoseconds, which datetime refuses beyond six digits: the rest is cut.
    """
    body, dot, tail = text.partition(".")
    if dot:
        digits = len(tail) - len(tail.lstrip("0123456789"))
        text = f"{body}.{tail[:digits][:6].ljust(6, '0')}{tail[digits:]}"
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return moment.timestamp()
