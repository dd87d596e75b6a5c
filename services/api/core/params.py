"""The query of /containerLogs -> LogOptions, or the kubelet's refusal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.contracts.streams import LogOptions
from shared.kube.times import parse_rfc3339

Query = Mapping[str, Sequence[str]]

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})", re.ASCII
)


@dataclass(frozen=True)
class Refusal:
    status: int
    text: str


UNDECODABLE = Refusal(400, '{"message": "Unable to decode query."}')
INVALID = Refusal(422, '{"message": "Invalid request."}')


def log_options(given: Query, now: float) -> LogOptions | Refusal:
    """kubelet 1.36: decode, then validate. Unknown keys are ignored; of several values the first counts."""
    try:
        query = dict(given)
        if tail := query.get("tail", [""])[0]:  # the old name of tailLines
            query["tailLines"] = [tail]
            if tail == "all":
                del query["tailLines"]
        tail_lines = _whole(query, "tailLines")
        limit_bytes = _whole(query, "limitBytes")
        since_seconds = _whole(query, "sinceSeconds")
        since_time = _instant(query, "sinceTime")
    except ValueError:
        return UNDECODABLE
    if (stream := query.get("stream", [""])[0]) not in ("", "All"):
        return Refusal(
            400,
            f'unable to return the given log stream: "{stream}".'
            " Please enable PodLogsQuerySplitStreams feature gate in kubelet",
        )
    if (
        (tail_lines is not None and tail_lines < 0)
        or (limit_bytes is not None and limit_bytes < 1)
        or (since_seconds is not None and since_seconds < 1)
        or (since_seconds is not None and since_time is not None)
    ):
        return INVALID
    return LogOptions(
        follow=_flag(query, "follow"),
        previous=_flag(query, "previous"),
        timestamps=_flag(query, "timestamps"),
        tail_lines=tail_lines,
        limit_bytes=limit_bytes,
        since=since_time if since_seconds is None else now - since_seconds,
    )


def _flag(query: Query, key: str) -> bool:
    """apimachinery: present is true but for "0" and "false" in any case; `?follow` alone is true."""
    values = query.get(key)
    return values is not None and values[0].lower() not in ("0", "false")


def _whole(query: Query, key: str) -> int | None:
    """A signed 64-bit number as Go's ParseInt reads it. Raises ValueError."""
    values = query.get(key)
    if values is None:
        return None
    if not _WHOLE.fullmatch(values[0]) or not -(1 << 63) <= int(values[0]) < 1 << 63:
        raise ValueError(key)
    return int(values[0])


def _instant(query: Query, key: str) -> float | None:
    """Raises ValueError. apimachinery: "" and "null" are the zero time, which is as good as none."""
    text = query.get(key, [""])[0]
    if text in ("", "null"):
        return None
    if not _RFC3339.fullmatch(text):
        raise ValueError(key)
    return parse_rfc3339(text)


_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}")


def form_problem(raw: str) -> str | None:
    """Why Go's ParseForm refuses it, in its words; None = it doesn't."""
    if bad := _BAD_ESCAPE.search(raw):
        return f'invalid URL escape "{bad.group()}"'
    return "invalid semicolon separator in query" if ";" in raw else None


def only_cpu_and_memory(query: Query) -> bool:
    """kubelet: exactly one value in query and form together, and exactly `true`."""
    return query.get("only_cpu_and_memory") == ["true"]


def read_timeout(query: Query) -> bool:
    """Whether `timeout`, of several the last one, is a whole number of seconds. It has no effect."""
    values = query.get("timeout")
    return not values or (values[-1].isascii() and values[-1].isdigit())


def takes_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header allows gzip: named, and not with q=0."""
    for part in accept_encoding.split(","):
        name, _, weight = part.partition(";")
        if name.strip().lower() == "gzip":
            return weight.replace(" ", "").lower() not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
