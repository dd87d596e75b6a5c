"""One HTTP/1.1 GET: the request's bytes, and a protocol that reads as much of the answer as a probe wants."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import cast
from urllib.parse import quote, urlsplit

import msgspec

from services.podworker.ports import MAX_OUTPUT_BYTES, Unreachable

LEAVES = frozenset((301, 302, 303, 307, 308))
"""Statuses that send the client elsewhere, when there is a Location."""
MAX_HEAD_BYTES = 1 << 20
_UNESCAPED = "!#$%&'()*+,/:;=?@[]~"
_HEADERS_END = re.compile(rb"\n\r?\n")
"""A bare line feed does, too: shell scripts answer so, and the kubelet takes it."""


class MalformedAnswer(Exception):
    """What came isn't HTTP."""


class Location(msgspec.Struct, frozen=True, kw_only=True):
    is_tls: bool
    host: str
    port: int
    target: str
    """Path and query, as they go into the request line."""

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def locate(url: str) -> Location:
    """Raises Unreachable: not a URL."""
    try:
        parts = urlsplit(url)
        is_tls = parts.scheme == "https"
        port = parts.port or (443 if is_tls else 80)
    except ValueError as error:
        raise Unreachable(f"invalid URL: {error}") from error
    target = quote(parts.path or "/", safe=_UNESCAPED) + (
        f"?{quote(parts.query, safe=_UNESCAPED)}" if parts.query else ""
    )
    return Location(is_tls=is_tls, host=parts.hostname or "", port=port, target=target)


@lru_cache(maxsize=1024)
def prepare(url: str, headers: tuple[tuple[str, str], ...]) -> tuple[Location, bytes]:
    """Where to go and what to say: the same at each run of a probe. Raises Unreachable."""
    at = locate(url)
    return at, encode_request(at, headers)


def encode_request(at: Location, headers: Sequence[tuple[str, str]]) -> bytes:
    """A Host among the headers replaces the URL's. Raises Unreachable for a header that would be another one."""
    host = next((value for name, value in headers if name.lower() == "host" and value), at.address)
    lines = [f"GET {at.target} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers if name.lower() not in ("host", "connection")]
    lines.append("Connection: close")
    for line in lines:
        if any(c < " " and c != "\t" for c in line) or "\x7f" in line:
            raise Unreachable(f'net/http: invalid header field value for "{line.partition(":")[0]}"')
    return "\r\n".join((*lines, "", "")).encode()


class HttpExchange(asyncio.Protocol):
    """Sends the request and ends `done` when the answer is there, or so much of it as is kept."""

    def __init__(self, request: bytes) -> None:
        self.status = 0
        self.location = ""
        self.body = bytearray()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._request = request
        self._pending = bytearray()
        self._in_body = False
        self._length: int | None = None
        """Of the body, as far as it's kept; None = until the end of the connection."""
        self._is_chunked = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        if self.done.done():
            return
        self._pending += data
        try:
            self._read()
        except (MalformedAnswer, ValueError) as error:
            self._fail(error if isinstance(error, MalformedAnswer) else MalformedAnswer(str(error)))

    def eof_received(self) -> None:
        """The server has said all it will say."""
        if self.done.done():
            return
        if self._in_body and self._length is None and not self._is_chunked:
            self.done.set_result(None)
        else:
            self._fail(EOFError("unexpected EOF" if self._in_body or self._pending else "EOF"))

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            if error is None:
                self.eof_received()
            else:
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)

    def _read(self) -> None:
        while not self._in_body:
            end = _HEADERS_END.search(self._pending)
            if end is None:
                self._refuse_what_is_no_head()
                return
            self._take_head(bytes(self._pending[: end.start()]))
            del self._pending[: end.end()]
        if self._is_chunked:
            self._take_chunks()
        else:
            self.body += self._pending
            self._pending.clear()
        whole = MAX_OUTPUT_BYTES if self._length is None else self._length
        if len(self.body) >= whole:
            self._finish(whole)

    def _finish(self, whole: int) -> None:
        del self.body[whole:]
        if not self.done.done():
            self.done.set_result(None)

    def _refuse_what_is_no_head(self) -> None:
        begin = bytes(self._pending[:5])
        if not b"HTTP/".startswith(begin):
            line = bytes(self._pending[:40]).split(b"\n")[0].decode("latin-1")
            raise MalformedAnswer(f'malformed HTTP response "{line}"')
        if len(self._pending) > MAX_HEAD_BYTES:
            raise MalformedAnswer("server response headers exceeded 1048576 bytes; aborted")

    def _take_head(self, head: bytes) -> None:
        first, *lines = (line.rstrip("\r") for line in head.decode("latin-1").split("\n"))
        version, _, rest = first.partition(" ")
        code = rest[:3]
        if not version.startswith("HTTP/1."):
            raise MalformedAnswer(f'malformed HTTP version "{version}"')
        if len(code) != 3 or not code.isdecimal():
            raise MalformedAnswer(f'malformed HTTP status code "{code}"')
        self.status = int(code)
        if 100 <= self.status < 200:
            return  # the answer proper follows
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if colon:
                headers.setdefault(name.strip().lower(), value.strip())
        self._take_headers(headers)

    def _take_headers(self, headers: Mapping[str, str]) -> None:
        self._in_body = True
        self.location = headers.get("location", "")
        if self.status in (204, 304):
            self._length = 0
        elif headers.get("transfer-encoding", "").lower().endswith("chunked"):
            self._is_chunked = True
        elif (length := headers.get("content-length")) is not None:
            if not length.isdecimal():
                raise MalformedAnswer(f'bad Content-Length "{length}"')
            self._length = min(int(length), MAX_OUTPUT_BYTES)

    def _take_chunks(self) -> None:
        """Whole chunks only: what's kept is bounded, so what waits here is, too."""
        while True:
            end = self._pending.find(b"\r\n")
            if end < 0:
                if len(self._pending) > MAX_OUTPUT_BYTES:
                    raise MalformedAnswer("header line too long")
                return
            size = int(bytes(self._pending[:end]).split(b";")[0].strip(), 16)
            if size < 0:
                raise MalformedAnswer("invalid chunk length")
            if size == 0:
                self._length = min(len(self.body), MAX_OUTPUT_BYTES)
                return
            begin = end + 2
            self_sufficient = len(self._pending) >= begin + size + 2
            if not self_sufficient and len(self.body) + len(self._pending) - begin < MAX_OUTPUT_BYTES:
                return
            self.body += self._pending[begin : begin + size]
            if not self_sufficient:
                return
            del self._pending[: begin + size + 2]
