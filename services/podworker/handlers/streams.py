"""Byte streams into containers: exec, attach and port-forward, each behind a one-time token."""

from __future__ import annotations

import asyncio
import logging

import msgspec

from services.podworker.ports import (
    ContainerSession,
    ContainerSessions,
    PodNetwork,
    RuntimeRefused,
    RuntimeUnavailable,
)
from shared.contracts.streams import ExecOptions, StreamStatus, TerminalSize
from shared.streams.channels import RESIZE, STATUS, STDIN, BrokenStream, ChannelReader, frame

log = logging.getLogger("podbus.podworker.streams")

_CHUNK = 256 << 10


class Streams:
    """Handlers for StreamServer. Each ends when either side does, and closes both."""

    def __init__(self, sessions: ContainerSessions, network: PodNetwork) -> None:
        self._sessions = sessions
        self._network = network

    async def exec(
        self, container_id: str, options: ExecOptions, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Run a command; or, without one, attach to the container's main process."""
        try:
            if options.command:
                session = await self._sessions.exec(container_id, options)
            else:
                session = await self._sessions.attach(container_id, options)
        except (RuntimeRefused, RuntimeUnavailable) as error:
            await _tell(writer, StreamStatus(outcome="failed", message=str(error)))
            return
        output = asyncio.ensure_future(session.copy_output(writer))
        towards = asyncio.ensure_future(_copy_input(session, reader))
        try:
            # the end of the input means that nobody is there any more: stdin's own end is a frame
            await asyncio.wait({output, towards}, return_when=asyncio.FIRST_COMPLETED)
            if output.done():
                output.result()
                await _tell(writer, await _outcome(session))
        finally:
            session.writer.close()
            for task in (output, towards):
                task.cancel()
            await asyncio.gather(output, towards, return_exceptions=True)

    async def forward(self, pid: int, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A status first (ended = connected), then the bytes both ways until both sides have ended."""
        try:
            inside, outside = await self._network.connect(pid, port)
        except (OSError, TimeoutError) as error:
            await _tell(writer, StreamStatus(outcome="failed", message=str(error) or type(error).__name__))
            return
        await _tell(writer, StreamStatus(outcome="ended"))
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_copy(inside, writer))
                both.create_task(_copy(reader, outside))
        except* ConnectionError as errors:
            log.debug("port-forward broke off port=%d error=%r", port, errors.exceptions[0])
        finally:
            outside.close()


async def _tell(writer: asyncio.StreamWriter, status: StreamStatus) -> None:
    writer.write(frame(STATUS, msgspec.json.encode(status)))
    await writer.drain()


async def _outcome(session: ContainerSession) -> StreamStatus:
    try:
        code = await session.exit_code()
    except (RuntimeRefused, RuntimeUnavailable) as error:
        return StreamStatus(outcome="failed", message=str(error))
    if code is None:
        return StreamStatus(outcome="failed", message="the engine doesn't know how the command ended")
    return StreamStatus(outcome="ended", exit_code=code)


async def _copy_input(session: ContainerSession, reader: asyncio.StreamReader) -> None:
    channels, size = ChannelReader(), b""
    open_for_input = True
    while data := await reader.read(_CHUNK):
        for channel, part, is_end in channels.feed(data):
            if channel == STDIN and open_for_input:
                open_for_input = await _feed(session, part, is_end)
            elif channel == RESIZE:
                size += part
                if is_end:
                    await _resize(session, size)
                    size = b""


async def _feed(session: ContainerSession, part: memoryview, is_end: bool) -> bool:
    """False once stdin has ended: an empty frame, or a process that reads no more. A terminal's stdin has no end: the
    engine would let go of the output, too."""
    try:
        if part:
            session.writer.write(part)
            await session.writer.drain()
            return True
        if is_end and not session.is_raw and session.writer.can_write_eof():
            session.writer.write_eof()
        return not is_end
    except (ConnectionError, OSError):
        return False


async def _resize(session: ContainerSession, size: bytes) -> None:
    try:
        wanted = msgspec.json.decode(size, type=TerminalSize)
    except msgspec.MsgspecError as error:
        raise BrokenStream(f"a size that can't be read: {error}") from error
    await session.resize(wanted.width, wanted.height)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
