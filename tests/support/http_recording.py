"""tests/golden/wire/http.txt: plain requests to a kubelet 1.20.2, and its answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_HEAD = re.compile(r"=== (?P<setup>[A-Z]+) (?P<method>[A-Z]+) (?P<target>\S+) map\[(?P<headers>.*)\]")
_BODIES = {
    "ALLOW PUT /debug/flags/v": "3",
    "ALLOW PUT /debug/flags/v #2": "abc",
    "ALLOW POST /run/ns/p1/c1 Content-Type:application/x-www-form-urlencoded": "cmd=ls+x",
}
"""The recording doesn't tell what was sent: these are seen from the answers."""


@dataclass(frozen=True)
class Recorded:
    setup: str
    """ALLOW, STALE, EMPTY, UNAUTH, FORBID, AUTHZERR, NODEBUG, NOSYSLOG or RO."""
    method: str
    target: str
    headers: dict[str, str]
    sent: str | None
    name: str
    """Of the row: unique."""
    status: int
    content_type: str | None
    nosniff: bool
    location: str | None
    body: bytes


def recorded() -> list[Recorded]:
    """Rows whose answer is whole; the one that ended without a byte isn't among them."""
    text = (Path(__file__).parents[1] / "golden/wire/http.txt").read_bytes().decode("latin-1")
    rows, seen = [], dict[str, int]()
    for block in re.split(r"(?m)^(?==== )", text)[1:]:
        first, _, answer = block.partition("\n")
        head = _HEAD.fullmatch(first)
        assert head is not None, first
        if not answer.startswith("HTTP/1.1 "):
            continue
        name = " ".join(part for part in head.groups() if part)
        seen[name] = seen.get(name, 0) + 1
        rows.append(_row(head, f"{name} #{seen[name]}" if seen[name] > 1 else name, answer))
    return rows


def _row(head: re.Match[str], name: str, answer: str) -> Recorded:
    top, _, rest = answer.partition("\r\n\r\n")
    lines = top.split("\r\n")
    headers = {key.lower(): value for key, _, value in (line.partition(": ") for line in lines[1:])}
    sent_headers = dict(re.findall(r"([A-Z][A-Za-z0-9-]*):(.*?)(?= [A-Z][A-Za-z0-9-]*:|$)", head["headers"]))
    return Recorded(
        head["setup"],
        head["method"],
        head["target"],
        sent_headers,
        _BODIES.get(name),
        name,
        int(lines[0].split()[1]),
        headers.get("content-type"),
        "x-content-type-options" in headers,
        headers.get("location"),
        _body(head["method"], headers, rest.encode("latin-1")),
    )


def _body(method: str, headers: dict[str, str], rest: bytes) -> bytes:
    if method == "HEAD":
        return b""
    if headers.get("transfer-encoding") != "chunked":
        return rest[: int(headers.get("content-length", 0))]
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :] if int(size, 16) else b""
    return body
