"""A client's connection that has stopped being HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

log = logging.getLogger("podbus.api.relay")

P = TypeVar("P", bound=asyncio.Protocol)

IDLE_SECONDS = 4 * 3600.0
"""Without a byte in either direction the connection ends (kubelet: streamingConnectionIdleTimeout)."""
CREATION_SECONDS = 30.0
"""For a client to open the streams that it announced."""
_LINGER_SECONDS = 2.0
"""After our last word the client gets so long to close: closing under bytes that it still sends would take from it
what it hasn't read yet."""
BUFFER_BYTES = 256 << 10

OpenTransport = Callable[[Callable[[], P]], Awaitable[tuple[asyncio.Transport, P]]]
"""Connects a protocol to podworker's socket: ports.OpenStream for one kind of protocol."""


class UpgradedConnection(asyncio.Protocol):
    """Base of the four relays. The HTTP server hands its transport over and sets `released`."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport | None = None
        self.released: Callable[[], None] = lambda: None
        """Called once, when the connection is gone."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.idle_seconds = IDLE_SECONDS
        self._last_byte = self.loop.time()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._linger_timer: asyncio.TimerHandle | None = None
        self.is_over = False
        """Our last word was said: what still comes is dropped."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one without saying so
        self._idle_timer = self.loop.call_later(self.idle_seconds, self._look_for_life)

    def data_received(self, data: bytes) -> None:
        self.touch()
        if not self.is_over:
            self.received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_over = True
        for timer in (self._idle_timer, self._linger_timer):
            if timer is not None:
                timer.cancel()
        self.released()
        self.gone()
        for task in self._tasks:
            task.cancel()

    def shutdown(self) -> None:
        """The service ends (uvicorn asks each of its connections so)."""
        self.stop("podbus is stopping")

    # -- for the relays ---------------------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """What the client sent."""
        raise NotImplementedError

    def gone(self) -> None:
        """The client's connection is gone: let go of podworker's side."""
        raise NotImplementedError

    def stop(self, why: str) -> None:
        """End from our side, in good order."""
        raise NotImplementedError

    def touch(self) -> None:
        self._last_byte = self.loop.time()

    def write(self, data: bytes) -> None:
        if self.transport is not None and data:
            self.touch()
            self.transport.write(data)

    def spawn(self, work: Awaitable[None]) -> None:
        """Run beside the connection, until its end at most."""

        async def guarded() -> None:
            try:
                await work
            except Exception:  # the boundary: one connection's fault stays its own
                log.exception("stream failed")
                self.abort()

        task = self.loop.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def linger(self) -> None:
        """Everything is said: wait for the client to close, for a while."""
        self.is_over = True
        if self._linger_timer is None:
            self._linger_timer = self.loop.call_later(_LINGER_SECONDS, self._close)

    def eof_received(self) -> bool:
        """The client has closed its side. False = close ours, too."""
        return False

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def _look_for_life(self) -> None:
        left = self._last_byte + self.idle_seconds - self.loop.time()
        if left > 0:
            self._idle_timer = self.loop.call_later(left, self._look_for_life)
        else:
            log.info("a stream without a byte for %.0f s ends", self.idle_seconds)
            self.stop("the connection was idle for too long")
