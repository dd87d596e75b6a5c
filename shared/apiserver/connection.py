"""One HTTP/1.1 connection to the API server: bytes by asyncio, the protocol by h11."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Sequence

import h11

from shared.apiserver.errors import Unreachable
from shared.apiserver.link import Link

Headers = Sequence[tuple[str, str]]

_READ_BYTES = 65536
_KEEPALIVE = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
"""Seconds, seconds, times: a peer that went without a word is noticed within half a minute, on a silent watch too."""
_UNSENT_MILLISECONDS = 30_000
"""How long what was sent may stay unacknowledged."""
_BROKEN = (OSError, h11.ProtocolError, EOFError)


class Connection:
    """Made by `open_connection`; one request at a time. After an error it is good for nothing but `close`."""

    def __init__(self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.link = link
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT)

    @property
    def is_reusable(self) -> bool:
        """The last answer was read to its end, and neither side wants to close."""
        return self._http.our_state is h11.IDLE and not self._reader.at_eof()

    def close(self) -> None:
        self._writer.close()

    async def ask(self, method: str, target: str, headers: Headers, body: bytes) -> h11.Response:
        """Send the request, and read the head of its answer. Raises Unreachable."""
        if body or method in ("POST", "PUT", "PATCH"):
            headers = [*headers, ("Content-Length", str(len(body)))]
        request = h11.Request(method=method, target=target, headers=list(headers))
        try:
            self._writer.write(self._out(request) + self._out(h11.Data(data=body)) + self._out(h11.EndOfMessage()))
            await self._writer.drain()
            while True:
                event = await self._next()
                if isinstance(event, h11.Response):
                    return event
        except _BROKEN as error:
            raise _told(error) from error

    async def data(self) -> AsyncIterator[bytes]:
        """The answer's body, part by part as it comes in. Raises Unreachable when it breaks off."""
        try:
            while not isinstance(event := await self._next(), h11.EndOfMessage):
                if isinstance(event, h11.Data):
                    yield bytes(event.data)
            if self._http.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
                self._http.start_next_cycle()
        except _BROKEN as error:
            raise _told(error) from error

    def _out(self, event: h11.Event) -> bytes:
        return self._http.send(event) or b""

    async def _next(self) -> h11.Event:
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Event):
                return event
            if event is h11.PAUSED:
                raise EOFError("the server answers without being asked")
            self._http.receive_data(await self._reader.read(_READ_BYTES))


async def open_connection(link: Link) -> Connection:
    """Raises Unreachable."""
    server = link.server
    try:
        reader, writer = await asyncio.open_connection(
            server.host, server.port, ssl=link.tls, server_hostname=link.tls_name if link.tls else None
        )
    except OSError as error:
        raise _told(error) from error
    if (sock := writer.get_extra_info("socket")) is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNSENT_MILLISECONDS)
    return Connection(link, reader, writer)


def _told(error: Exception) -> Unreachable:
    lasting = isinstance(error, ConnectionRefusedError | ssl.SSLCertVerificationError)
    return Unreachable(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__, is_lasting=lasting)
