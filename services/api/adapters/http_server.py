"""uvicorn as a guarded task: it owns neither signals nor logging, and nothing of a request is unbounded."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from typing import Any

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from services.api.adapters.authn import peer_identity
from services.api.ports import PEER, TAKE_OVER, AsgiApp, Successor

log = logging.getLogger("podbus.api.http")

KEEP_ALIVE_SECONDS = 90
"""kubelet: idle connections end after 90 s."""
LARGEST_HEAD = 1 << 20
"""kubelet: request line and headers, bytes."""
_HEAD_SECONDS = 30.0
"""For a whole request head, from its first byte: a client that drips holds a connection no longer."""
_GRACE_SECONDS = 3
"""At the end, for answers that are being written."""
_GOODBYE_SECONDS = 0.3
_RETRY_SECONDS = 5.0
MOST_CONNECTIONS = 4000
"""Of one port; less where the process may not open so many files. One more is closed at once."""
_SPARE_FILES = 200
_TELL_SECONDS = 10.0
"""Between two log lines about refused connections."""
_LARGEST_TAIL = 64 << 10
"""Of what a client sends before its upgrade is answered; then it's no longer read."""


class _Protocol(HttpToolsProtocol):
    """uvicorn's, plus: who the peer is, a bound for the head, no words about upgrades that get a plain answer."""

    _head_bytes = 0
    _in_head = False
    _refused_upgrade = False
    _tail: bytearray | None = None
    """What the client sent behind a request that asks for an upgrade, until somebody takes over."""
    _peer: object = None
    _peer_known = False
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > _most_connections():
            _tell_refusal(len(self.connections), self.loop.time())
            self.transport.abort()
            return
        self.timeout_keep_alive_task = self.loop.call_later(KEEP_ALIVE_SECONDS, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused_upgrade:
            return  # what a client sends behind its upgrade request isn't HTTP
        if self._tail is not None:
            self._keep_tail(data)
            return
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > LARGEST_HEAD:
                self._refuse(b"431 Request Header Fields Too Large")
                return
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self.cycle is not None:
                self.cycle.keep_alive = False  # without somebody who takes over it's the last answer
            self._tail = bytearray()
            self._keep_tail(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")

    def _keep_tail(self, data: bytes) -> None:
        assert self._tail is not None
        self._tail += data
        if len(self._tail) > _LARGEST_TAIL:
            self.transport.pause_reading()

    def take_over(self, head: bytes, successor: Successor) -> None:
        """ports.TakeOver. The transport stays, the protocol changes."""
        if self.transport.is_closing():
            self.loop.call_soon(successor.connection_lost, None)
            return
        cycle, tail = self.cycle, self._tail or b""
        cycle.disconnected = True  # what the endpoint sends from now on is dropped
        self._unset_keepalive_if_required()
        self._stop_head_timer()
        connections = self.server_state.connections
        connections.discard(self)
        connections.add(successor)  # type: ignore[arg-type]  # uvicorn asks of it no more than `shutdown`
        successor.released = lambda: connections.discard(successor)
        self.transport.write(head)
        self.transport.set_protocol(successor)  # type: ignore[arg-type]
        successor.connection_made(self.transport)
        if tail:
            successor.data_received(bytes(tail))
        self.transport.resume_reading()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if not self._peer_known:
            self._peer_known = True
            tls: ssl.SSLObject | None = self.transport.get_extra_info("ssl_object")
            self._peer = peer_identity(tls.getpeercert()) if tls is not None else None
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]
        scope["extensions"] = {PEER: self._peer, TAKE_OVER: self.take_over}
        self._in_head, self._head_bytes = True, 0
        self._head_timer = self.loop.call_later(_HEAD_SECONDS, self._refuse, b"408 Request Timeout")

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_head_timer()
        super().on_headers_complete()

    def shutdown(self) -> None:
        """As uvicorn's; an idle client that doesn't answer TLS's goodbye isn't waited for."""
        super().shutdown()
        if self.transport.is_closing():
            self.loop.call_later(_GOODBYE_SECONDS, self.transport.abort)

    def _refuse(self, status: bytes) -> None:
        """As Go's server: the status as text, then the connection ends."""
        self._stop_head_timer()
        self._refused_upgrade = True
        if self.transport.is_closing():
            return
        self.transport.write(
            b"HTTP/1.1 " + status + b"\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" + status
        )
        self.transport.close()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class _Server(uvicorn.Server):
    """uvicorn's, without its signal handlers and with one wake-up a second in place of ten."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self.ending = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._set_date()
        await super().startup(sockets)
        self.listening.set()

    async def main_loop(self) -> None:
        while not self.ending.is_set():
            self._set_date()
            try:
                await asyncio.wait_for(self.ending.wait(), 1.0)
            except TimeoutError:
                continue

    def _set_date(self) -> None:
        self.server_state.default_headers = [(b"date", formatdate(time.time(), usegmt=True).encode())]


class HttpListener:
    """One address. `run` is a guarded task; `listening` is set once clients can connect."""

    def __init__(
        self,
        app: AsgiApp,
        address: str,
        port: int,
        tls: Callable[[], ssl.SSLContext] | None = None,
        *,
        retry: bool = False,
    ) -> None:
        """`tls` is called when serving begins. `retry`: an address that can't be had is asked for again every 5 s;
        without it the task ends."""
        self._address = address
        self._port = port
        self._retry = retry
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # a port scan isn't worth a line a probe
        self._server = _Server(
            uvicorn.Config(
                app,
                http=_Protocol,
                ws="none",
                interface="asgi3",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=_GRACE_SECONDS,
                ssl_context_factory=None if tls is None else lambda _config, _default: tls(),
            )
        )
        self._ended = asyncio.Event()
        self._running = False

    @property
    def listening(self) -> asyncio.Event:
        return self._server.listening

    async def run(self) -> None:
        """Serve until `stop`. Raises OSError that names the address when it can't be had."""
        self._running = True
        try:
            listener = await self._listen()
            log.info("listening address=%s port=%d", self._address, self._port)
            await self._server.serve([listener])
        finally:
            self._ended.set()

    async def stop(self) -> None:
        """Take no more connections; answers that are being written get three seconds."""
        self._server.ending.set()
        if self._running and self._server.listening.is_set():
            await self._ended.wait()

    async def _listen(self) -> socket.socket:
        while True:
            try:
                return _bind(self._address, self._port)
            except OSError as error:
                if not self._retry:
                    raise
                log.error("%s; again in %.0f s", error.strerror, _RETRY_SECONDS)
            await asyncio.sleep(_RETRY_SECONDS)


_told_at: list[float] = []
"""When a refusal was logged last: a flood of connections must not be one of lines."""


def _tell_refusal(number: int, now: float) -> None:
    if not _told_at or now - _told_at[0] > _TELL_SECONDS:
        _told_at[:] = [now]
        log.warning("connections are refused: there are %d", number)


def _most_connections() -> int:
    return max(10, min(MOST_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _SPARE_FILES))


def _bind(address: str, port: int) -> socket.socket:
    """Raises OSError whose strerror names the address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server(
            (address, port), family=family, backlog=2048, dualstack_ipv6=family == socket.AF_INET6 and address == "::"
        )
    except OSError as error:
        raise OSError(error.errno, f"can't listen on {address}:{port}: {error.strerror or error}") from error
