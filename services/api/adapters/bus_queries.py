"""Questions to the owners over the bus, and their byte streams over UNIX sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from services.api.ports import OpenStream, OwnerRefused, OwnerUnavailable, P
from shared.bus import Bus, BusUnavailable, RemoteError
from shared.contracts.events import EventList, EventQuery
from shared.contracts.registry import EVENTS_QUERY, PAGE, RUNNING_PODS, SOURCES, STREAM, SUMMARY
from shared.contracts.sources import SourceList, SourcesQuery
from shared.contracts.stats import PageQuery, SummaryQuery
from shared.contracts.streams import StreamCommand, StreamTicket
from shared.contracts.worker import RunningPods, RunningPodsQuery
from shared.streams import StreamRefused, open_stream, open_transport

T = TypeVar("T")

_ASK_SECONDS = 5.0
_CHUNK = 256 << 10
_LARGEST_PAGE = 64 << 20
"""Of a page that comes by a socket: a safeguard, not a limit that is ever met."""


class SocketBytes:
    """ByteSource over an opened stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        return await self._reader.read(_CHUNK)

    def close(self) -> None:
        self._writer.close()


class BusOwners:
    """ports.Owners on the real bus."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._pages: dict[tuple[str, bool], tuple[str, bytes]] = {}
        """The last page of each kind: scrapers come more often than stats reads."""

    @property
    def connected(self) -> bool:
        return self._bus.connected

    async def running_pods(self) -> RunningPods:
        return await _asked(self._bus.request(RUNNING_PODS, RunningPodsQuery(), timeout=_ASK_SECONDS))

    async def events(self, query: EventQuery) -> EventList:
        return await _asked(self._bus.request(EVENTS_QUERY, query, timeout=_ASK_SECONDS))

    async def sources(self) -> SourceList:
        return await _asked(self._bus.request(SOURCES, SourcesQuery(), timeout=2))

    async def open_logs(self, command: StreamCommand) -> SocketBytes:
        return await _opened(await _asked(self._bus.request(STREAM, command, timeout=_ASK_SECONDS)))

    async def prepare(self, command: StreamCommand) -> OpenStream:
        ticket = await _asked(self._bus.request(STREAM, command, timeout=_ASK_SECONDS))

        async def connect(factory: Callable[[], P]) -> tuple[asyncio.Transport, P]:
            try:
                return await open_transport(ticket, factory)
            except StreamRefused as error:
                raise OwnerUnavailable(f"the stream could not be opened: {error}") from error

        return connect

    async def summary(self, *, only_cpu_and_memory: bool) -> bytes:
        query = SummaryQuery(only_cpu_and_memory=only_cpu_and_memory)
        reply = await _asked(self._bus.request(SUMMARY, query, timeout=_ASK_SECONDS))
        if reply.ticket is None:
            if reply.summary is msgspec.UNSET:
                raise OwnerRefused("internal", "stats answered with neither a summary nor a ticket")
            return bytes(reply.summary)
        return await _fetched(reply.ticket)

    async def page(self, query: PageQuery) -> tuple[int, bytes]:
        key = (query.page, query.gzip)
        tag, body = self._pages.get(key, ("", b"")) if query.page != "rest" else ("", b"")
        reply = await _asked(self._bus.request(PAGE, replace(query, have=tag), timeout=_ASK_SECONDS))
        if not reply.unchanged:
            body = reply.body if reply.ticket is None else await _fetched(reply.ticket)
            if query.page != "rest":
                self._pages[key] = (reply.tag, body)
        return reply.status, body


async def _fetched(ticket: StreamTicket) -> bytes:
    source = await _opened(ticket)
    try:
        async with asyncio.timeout(_ASK_SECONDS):
            return await _page(source)
    except (ConnectionError, TimeoutError) as error:
        raise OwnerUnavailable(f"the page broke off: {error or type(error).__name__}") from error
    finally:
        source.close()


async def _page(source: SocketBytes) -> bytes:
    parts: list[bytes] = []
    size = 0
    while data := await source.read():
        parts.append(data)
        size += len(data)
        if size > _LARGEST_PAGE:
            raise OwnerRefused("internal", f"a page of more than {_LARGEST_PAGE >> 20} MiB")
    return b"".join(parts)


async def _asked(asking: Awaitable[T]) -> T:
    try:
        return await asking
    except RemoteError as error:
        if error.code in ("invalid", "not_found"):
            raise OwnerRefused(error.code, error.message) from error
        if error.code == "unavailable":
            raise OwnerUnavailable(error.message) from error
        raise OwnerRefused("internal", error.message) from error
    except BusUnavailable as error:
        raise OwnerUnavailable(str(error)) from error
    except msgspec.MsgspecError as error:
        raise OwnerRefused("internal", f"an answer that can't be read: {error}") from error


async def _opened(ticket: StreamTicket) -> SocketBytes:
    try:
        return SocketBytes(*await open_stream(ticket))
    except StreamRefused as error:
        raise OwnerUnavailable(f"the stream could not be opened: {error}") from error
