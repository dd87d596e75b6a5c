"""The side that wants the bytes: connect, show the token, go on only when it was accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar, cast

from shared.contracts.streams import StreamTicket
from shared.streams.server import ACCEPTED, BUFFER_BYTES

P = TypeVar("P", bound=asyncio.Protocol)

OPEN_SECONDS = 5.0


class StreamRefused(Exception):
    """Nobody listens there any more, or the token is unknown, used or too old."""


class _Greeting(asyncio.Protocol):
    """Waits for the server's line, then hands the connection over in the same turn of the loop, so that bytes
    which came with the line are not lost."""

    def __init__(self, token: str, successor: Callable[[], asyncio.Protocol]) -> None:
        self._token = token
        self._successor = successor
        self._seen = b""
        self._transport: asyncio.Transport | None = None
        self.handed_over: asyncio.Future[asyncio.Protocol] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one without saying so
        self._transport.write(self._token.encode() + b"\n")

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._seen += data
        if not self._seen.startswith(ACCEPTED[: len(self._seen)]):
            self._fail("an unexpected answer")
            self._transport.abort()
        elif len(self._seen) >= len(ACCEPTED) and not self.handed_over.done():
            protocol = self._successor()
            self._transport.set_protocol(protocol)
            protocol.connection_made(self._transport)
            if rest := self._seen[len(ACCEPTED) :]:
                protocol.data_received(rest)
            self.handed_over.set_result(protocol)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(str(exc) if exc else "the token is unknown, used or too old")

    def _fail(self, why: str) -> None:
        if not self.handed_over.done():
            self.handed_over.set_exception(StreamRefused(why))


async def open_transport(
    ticket: StreamTicket, factory: Callable[[], P], *, within: float = OPEN_SECONDS
) -> tuple[asyncio.Transport, P]:
    """Connect `factory()` to the stream, for relays. The protocol may get data before this returns.

    Raises StreamRefused.
    """
    loop = asyncio.get_running_loop()
    transport: asyncio.Transport | None = None
    opened = False
    try:
        async with asyncio.timeout(within):
            transport, greeting = await loop.create_unix_connection(
                lambda: _Greeting(ticket.token, factory), ticket.socket
            )
            protocol = await greeting.handed_over
        opened = True
    except (OSError, TimeoutError) as error:  # a full backlog, a stopped process, no such socket
        raise StreamRefused(f"{ticket.socket}: {error or type(error).__name__}") from error
    except StreamRefused as error:
        raise StreamRefused(f"{ticket.socket}: {error}") from error
    finally:
        if transport is not None and not opened:
            transport.abort()
    return transport, protocol  # type: ignore[return-value]  # what `factory` made


async def open_stream(
    ticket: StreamTicket, *, within: float = OPEN_SECONDS
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The stream's two directions. A reader that isn't read holds the sender up: at most 512 KiB wait here.

    Raises StreamRefused.
    """
    reader = asyncio.StreamReader(limit=BUFFER_BYTES)
    transport, protocol = await open_transport(ticket, lambda: asyncio.StreamReaderProtocol(reader), within=within)
    return reader, asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
