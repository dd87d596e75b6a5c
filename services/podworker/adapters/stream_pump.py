"""Bytes from the engine to whoever wants them, at the slower one's pace, without a task for each piece."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

HIGH_WATER_BYTES = 512 << 10
"""So much may wait for the target before the source is held up."""

_TOGETHER_BYTES = 64 << 10
_FLOOD_SECONDS = 0.002
"""Pieces closer than this are a flood."""

Wrap = Callable[[bytes], bytes]


class EngineReader(asyncio.StreamReader):
    """A StreamReader that tells whether the other side has ended, also while bytes of it are still to be read."""

    ended = False

    def feed_eof(self) -> None:
        self.ended = True
        super().feed_eof()


async def pump(
    reader: EngineReader, source: asyncio.StreamWriter, target: asyncio.StreamWriter, wrap: Wrap | None
) -> None:
    """Pass all that comes on to the target, as `wrap` makes it, until the source ends or the target breaks off.

    `reader` and `source` are the two halves of the source; `reader` is of no use afterwards, `source` may be written to
    meanwhile.
    """
    transport = cast(asyncio.Transport, source.transport)
    transport.pause_reading()
    has_ended = reader.ended
    reader.feed_eof()
    if data := await reader.read():
        target.write(data if wrap is None else wrap(data))
        await target.drain()
    if has_ended:
        return
    passing = _Passing(transport, cast(asyncio.Protocol, transport.get_protocol()), target, wrap)
    transport.set_protocol(passing)
    transport.resume_reading()
    await passing.ended
    await target.drain()


class _Passing(asyncio.Protocol):
    """The source's protocol from then on; what concerns writing to the source stays with the one before."""

    def __init__(
        self,
        transport: asyncio.Transport,
        before: asyncio.Protocol,
        target: asyncio.StreamWriter,
        wrap: Wrap | None,
    ) -> None:
        self._transport = transport
        self._before = before
        self._target = target
        self._to = target.transport
        self._wrap = wrap
        self._waiting: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self._size = 0
        self._flushed_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.ended: asyncio.Future[None] = self._loop.create_future()

    def data_received(self, data: bytes) -> None:
        """The engine's pieces are small: in a flood they go on together, a lone one at once."""
        self._parts.append(data)
        self._size += len(data)
        now = self._loop.time()
        if self._size >= _TOGETHER_BYTES or now - self._flushed_at > _FLOOD_SECONDS:
            self._flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(_FLOOD_SECONDS / 2, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._flushed_at = self._loop.time()
        parts, self._parts, self._size = self._parts, [], 0
        if not parts or self._to.is_closing():
            return
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        self._to.write(data if self._wrap is None else self._wrap(data))
        if self._waiting is None and self._to.get_write_buffer_size() > HIGH_WATER_BYTES:
            self._transport.pause_reading()
            self._waiting = self._loop.create_task(self._wait())

    def eof_received(self) -> bool:
        """True: what is written to the source may still be under way."""
        self._end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._before.connection_lost(exc)
        self._end()

    def pause_writing(self) -> None:
        self._before.pause_writing()

    def resume_writing(self) -> None:
        self._before.resume_writing()

    async def _wait(self) -> None:
        try:
            await self._target.drain()
        except ConnectionError:
            self._end()
            return
        self._waiting = None
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def _end(self) -> None:
        self._flush()
        if not self.ended.done():
            self.ended.set_result(None)
