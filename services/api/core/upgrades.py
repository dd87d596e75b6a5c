"""Which upgrade a streaming request asks for, and what is agreed on; or why there is none.

kubelet 1.36 without the declared feature for WebSocket v5 and tunnels: what isn't offered must be refused with a plain
answer, since clients then fall back to SPDY.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha1

Headers = Sequence[tuple[bytes, bytes]]
"""Names in lower case, as ASGI gives them."""

REMOTE_COMMAND = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
PORT_FORWARD = ("portforward.k8s.io",)
WEBSOCKET_REMOTE_COMMAND = (
    "",
    "channel.k8s.io",
    "base64.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
)
WEBSOCKET_PORT_FORWARD = ("", "v4.channel.k8s.io", "v4.base64.channel.k8s.io")
BEARER_PROTOCOL = "base64url.bearer.authorization.k8s.io."
"""Before a token in base64url, as a WebSocket subprotocol: browsers can't set headers."""

_WEBSOCKET_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


@dataclass(frozen=True)
class Upgrade:
    kind: str
    """spdy or websocket."""
    protocol: str
    """"" = a WebSocket without a subprotocol."""
    head: bytes
    """The 101 answer."""


@dataclass(frozen=True)
class NoUpgrade:
    status: int
    text: str
    headers: tuple[tuple[str, str], ...] = ()
    nosniff: bool = True


def is_websocket(headers: Headers) -> bool:
    """`Upgrade` is websocket and some `Connection` value contains upgrade, in any case."""
    asks = any(b"upgrade" in value.lower() for value in _values(headers, b"connection"))
    return asks and [value.lower() for value in _values(headers, b"upgrade")][:1] == [b"websocket"]


def agree(method: str, headers: Headers, spdy: Sequence[str], websocket: Sequence[str]) -> Upgrade | NoUpgrade:
    """`spdy` and `websocket`: the protocols that this endpoint serves, the best first."""
    if is_websocket(headers):
        return _agree_websocket(method, headers, websocket)
    return _agree_spdy(headers, spdy)


def websocket_protocols(headers: Headers) -> list[str]:
    """The subprotocols that the client offers, without one that holds a token."""
    return [one for one in _offered(headers) if not one.startswith(BEARER_PROTOCOL)]


def websocket_token(headers: Headers) -> str | None:
    """A token in a subprotocol, in base64url; it counts only beside another subprotocol."""
    offered = _offered(headers)
    tokens = [one.removeprefix(BEARER_PROTOCOL) for one in offered if one.startswith(BEARER_PROTOCOL)]
    return tokens[0] if len(tokens) == 1 and len(offered) > 1 else None


def _agree_spdy(headers: Headers, served: Sequence[str]) -> Upgrade | NoUpgrade:
    wants = any(b"upgrade" in value.lower() for value in _values(headers, b"connection"))
    upgrade = next(iter(_values(headers, b"upgrade")), b"")
    if not wants or not upgrade:
        return NoUpgrade(500, "Upgrade request required\n")
    if b"spdy/3.1" not in upgrade.lower():
        told = sorted((name, value) for name, value in headers if name != b"host")
        shown = ", ".join(f'"{_go_name(name)}":[]string{{"{value.decode("latin-1")}"}}' for name, value in told)
        return NoUpgrade(400, f"unable to upgrade: missing upgrade headers in request: http.Header{{{shown}}}\n")
    lines = list(_values(headers, b"x-stream-protocol-version"))
    offered = _split(lines)
    if not offered:
        return NoUpgrade(400, "unable to upgrade: X-Stream-Protocol-Version is required\n")
    chosen = next((one for one in offered if one in served), None)
    if chosen is None:
        return NoUpgrade(
            403,
            f"unable to upgrade: unable to negotiate protocol: client supports [{' '.join(offered)}],"
            f" server accepts [{' '.join(served)}]\n",
            tuple(("X-Accepted-Stream-Protocol-Versions", one) for one in served),
        )
    return Upgrade(
        "spdy",
        chosen,
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
        f"X-Stream-Protocol-Version: {chosen}\r\n\r\n".encode(),
    )


def _agree_websocket(method: str, headers: Headers, served: Sequence[str]) -> Upgrade | NoUpgrade:
    if method != "GET":
        return NoUpgrade(405, "bad method", (("Connection", "close"),), nosniff=False)
    if list(_values(headers, b"sec-websocket-version")) != [b"13"]:
        told = (("Connection", "close"), ("Sec-Websocket-Version", "13"))
        return NoUpgrade(400, "missing or bad WebSocket Version", told, nosniff=False)
    key = next(iter(_values(headers, b"sec-websocket-key")), b"").strip()
    if not key:
        return NoUpgrade(400, "challenge response is missing", (("Connection", "close"),), nosniff=False)
    offered = websocket_protocols(headers)
    chosen = next((one for one in offered if one in served), None) if offered else ""
    if chosen is None:
        return NoUpgrade(403, "", (("Connection", "close"),), nosniff=False)
    accept = b64encode(sha1(key + _WEBSOCKET_GUID, usedforsecurity=False).digest()).decode()
    protocol = f"Sec-WebSocket-Protocol: {chosen}\r\n" if chosen else ""
    return Upgrade(
        "websocket",
        chosen,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {accept}\r\n{protocol}\r\n".encode(),
    )


def _values(headers: Headers, name: bytes) -> Iterable[bytes]:
    return (value for key, value in headers if key == name)


def _offered(headers: Headers) -> list[str]:
    return _split(list(_values(headers, b"sec-websocket-protocol")))


def _split(lines: Sequence[bytes]) -> list[str]:
    """One header line per protocol, or a list with commas: both are in use."""
    return [part.strip() for line in lines for part in line.decode("latin-1").split(",") if part.strip()]


def _go_name(name: bytes) -> str:
    return "-".join(part.capitalize() for part in name.decode("latin-1").split("-"))
