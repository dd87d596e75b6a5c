"""The side that has the bytes: a UNIX socket that opens only to a token that this process gave out."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import stat
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from shared.contracts.streams import StreamTicket
from shared.streams.tokens import TOKEN_BYTES, TokenBook

log = logging.getLogger("podbus.streams")

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Gets the two directions; `await writer.drain()` waits for a slow peer. Its return closes the connection.

A peer that goes away shows as the reader's end and as an error of the next write: a handler that waits
without writing (a followed log) watches `reader.read()` beside its work."""

ACCEPTED = b"ok\n"
"""The server's first line. Without it a refused token would look like an empty stream."""
BUFFER_BYTES = 256 << 10
_GREETING_SECONDS = 10.0
_LONGEST_GREETING = 256


class StreamServer:
    """Listens on `path` (0600; a file left by an earlier process is replaced) from `start` to `stop`."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        randomness: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._path = path
        self._clock = clock
        self._randomness = randomness
        self._tokens: TokenBook[Handler] = TokenBook()
        self._server: asyncio.Server | None = None
        self._inode = 0
        self._running: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Raises OSError, e.g. when the directory is missing or the path is too long for a socket (107)."""
        _remove_socket(self._path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(self._path))
            self._path.chmod(0o600)  # nobody can connect before listen
            self._inode = self._path.stat().st_ino
            self._server = await asyncio.start_unix_server(self._serve, sock=listener, limit=BUFFER_BYTES)
        except BaseException:
            listener.close()
            raise

    def issue(self, handler: Handler) -> StreamTicket:
        """A ticket for one connection within 60 s; `handler` runs when it is used, else never."""
        now = self._clock()
        token = self._tokens.issue(handler, now=now, randomness=self._randomness(TOKEN_BYTES))
        return StreamTicket(socket=str(self._path), token=token)

    @property
    def open_streams(self) -> int:
        return len(self._running)

    async def stop(self) -> None:
        """Take no more; cancel what runs; remove the socket unless another process has put its own there."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in list(self._running):
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=2)
        try:
            if self._path.stat().st_ino == self._inode:
                self._path.unlink()
        except FileNotFoundError:
            pass

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._running.add(task)
        try:
            handler = await self._greet(reader)
            if handler is None:
                log.warning("stream refused: unknown, used or late token socket=%s", self._path)
                return
            writer.transport.set_write_buffer_limits(high=BUFFER_BYTES)
            writer.write(ACCEPTED)
            await handler(reader, writer)
            await writer.drain()
        except ConnectionError as error:
            log.debug("stream peer went away error=%r", error)
        except asyncio.CancelledError:
            log.debug("stream cancelled")  # the task is ours: nobody waits for the cancellation
        except Exception:  # the boundary: one bad stream must not end the service
            log.exception("stream failed")
        finally:
            if task is not None:
                self._running.discard(task)
            writer.close()

    async def _greet(self, reader: asyncio.StreamReader) -> Handler | None:
        try:
            line = await asyncio.wait_for(reader.readuntil(b"\n"), _GREETING_SECONDS)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            return None
        if len(line) > _LONGEST_GREETING:
            return None
        return self._tokens.take(line[:-1].decode("latin-1"), now=self._clock())


def _remove_socket(path: Path) -> None:
    """Remove a socket that an earlier process left. Anything else there is not ours: bind will refuse it."""
    try:
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
    except FileNotFoundError:
        pass
