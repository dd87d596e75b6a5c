"""Requests to the API server of a kubeconfig, and watches. Connections are kept; a dead one is replaced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from urllib.parse import quote, urlencode

import msgspec

from shared.apiserver.connection import Connection, open_connection
from shared.apiserver.errors import Answer, Unreachable, error_of
from shared.apiserver.link import Link, LinkFiles

_CONNECT_SECONDS = 10.0
_LARGEST_ANSWER = 256 << 20
_LONGEST_LINE = 32 << 20
_MOST_IDLE = 4


class WatchEvent(msgspec.Struct, frozen=True):
    type: str
    """ADDED, MODIFIED, DELETED, BOOKMARK."""
    object: msgspec.Raw


class ApiClient:
    """Any number of requests at a time, on one loop. Imports no YAML and opens nothing before the first request."""

    def __init__(self, kubeconfig: Path, user_agent: str) -> None:
        self._files = LinkFiles(kubeconfig)
        self._user_agent = user_agent
        self._idle: list[Connection] = []

    def check(self) -> None:
        """Raises OSError or ValueError when the kubeconfig can't be used now."""
        self._files.current()

    def close(self) -> None:
        """Idle connections; those in use end with their requests."""
        while self._idle:
            self._idle.pop().close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes = b"",
        content_type: str = "application/json",
        within: float = 30.0,
    ) -> Answer:
        """The whole answer, whatever its code. Raises Unreachable."""
        try:
            async with asyncio.timeout(within):
                return await self._request(method, path, query or {}, body, content_type)
        except TimeoutError:
            raise Unreachable(f"no answer within {within:g} s") from None

    async def watch(self, path: str, query: Mapping[str, str], *, silence: float = 360.0) -> AsyncIterator[WatchEvent]:
        """Each change as it comes, until the server ends the watch. On a connection of its own. `silence`: seconds
        without a byte after which the connection is given up. Raises ApiError (410: list anew), Unreachable."""
        link = self._current()
        async with asyncio.timeout(_CONNECT_SECONDS):
            connection = await open_connection(link)
        try:
            target = _target(link, path, {**query, "watch": "1"})
            async with asyncio.timeout(silence) as patience:
                head = await connection.ask("GET", target, self._headers(link), b"")
                patience.reschedule(asyncio.get_running_loop().time() + silence)
                if head.status_code >= 400:
                    raise error_of(head.status_code, await _whole(connection))
                rest = b""
                async for part in connection.data():
                    patience.reschedule(asyncio.get_running_loop().time() + silence)
                    *lines, rest = (rest + part).split(b"\n")
                    if len(rest) > _LONGEST_LINE:
                        raise Unreachable("a watch event is larger than 32 MiB")
                    for line in lines:
                        if line.strip():
                            yield _event(line)
        except TimeoutError:
            raise Unreachable(f"silent for {silence:g} s") from None
        finally:
            connection.close()

    async def _request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes, content_type: str
    ) -> Answer:
        link = self._current()
        headers = self._headers(link)
        if body:
            headers.append(("Content-Type", content_type))
        while True:
            kept = self._take_idle(link)
            connection = kept or await open_connection(link)
            done = False
            try:
                head = await connection.ask(method, _target(link, path, query), headers, body)
                answer = Answer(head.status_code, _named(head.headers), await _whole(connection))
                done = connection.is_reusable and len(self._idle) < _MOST_IDLE
            except Unreachable:
                if kept is None:
                    raise
                continue  # the server has closed an idle connection meanwhile: on another one
            finally:
                if not done:
                    connection.close()
            if done:
                self._idle.append(connection)
            return answer

    def _current(self) -> Link:
        try:
            return self._files.current()
        except (OSError, ValueError) as error:
            raise Unreachable(f"kubeconfig: {error}", is_lasting=True) from error

    def _take_idle(self, link: Link) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.link is link and connection.is_reusable:
                return connection
            connection.close()
        return None

    def _headers(self, link: Link) -> list[tuple[str, str]]:
        try:
            token = link.token()
        except OSError as error:
            raise Unreachable(f"kubeconfig: {error}", is_lasting=True) from error
        server = link.server
        host = f"[{server.host}]" if ":" in server.host else server.host
        found = [("Host", f"{host}:{server.port}"), ("User-Agent", self._user_agent), ("Accept", "application/json")]
        return [*found, ("Authorization", f"Bearer {token}")] if token else found


def _target(link: Link, path: str, query: Mapping[str, str]) -> str:
    quoted = quote(link.server.base + path, safe="/:@!$&'()*+,;=~")
    return f"{quoted}?{urlencode(query)}" if query else quoted


def _named(headers: object) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}  # type: ignore[attr-defined]


async def _whole(connection: Connection) -> bytes:
    parts, size = [], 0
    async for part in connection.data():
        size += len(part)
        if size > _LARGEST_ANSWER:
            raise Unreachable("an answer is larger than 256 MiB")
        parts.append(part)
    return b"".join(parts)


def _event(line: bytes) -> WatchEvent:
    try:
        event = msgspec.json.decode(line, type=WatchEvent)
    except msgspec.MsgspecError as error:
        raise Unreachable(f"a watch event can't be read: {error}") from error
    if event.type == "ERROR":
        raise error_of(500, bytes(event.object))
    return event
