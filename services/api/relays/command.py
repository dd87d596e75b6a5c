"""exec and attach, whatever the client speaks: its channels on one side, podworker's on the other."""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

import msgspec

from services.api.core.remote_command import end_text, read_size
from services.api.ports import OwnerUnavailable
from services.api.relays.connection import BUFFER_BYTES, OpenTransport, UpgradedConnection, log
from shared.contracts.streams import ExecOptions, StreamStatus, TerminalSize
from shared.streams.channels import RESIZE, STATUS, STDIN, BrokenStream, ChannelReader, frame, head


class CommandClient(Protocol):
    """Who gets what a command writes."""

    def touch(self) -> None: ...
    def output(self, channel: int, part: memoryview) -> None:
        """A piece of stdout or stderr; a good moment to pass pieces on is `flush`."""
        ...

    def flush(self) -> None: ...
    def finish(self, status: StreamStatus) -> None:
        """How it ended; told at least once."""
        ...

    def hold_input(self, hold: bool) -> None:
        """podworker takes no more for now."""
        ...


class WorkerChannels(asyncio.Protocol):
    """podworker's side: frames in; both sides hold each other up, so that nothing piles up here."""

    def __init__(self, client: CommandClient) -> None:
        self._client = client
        self._channels = ChannelReader()
        self._status = b""
        self._said_all = False
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=BUFFER_BYTES)

    def data_received(self, data: bytes) -> None:
        self._client.touch()
        try:
            for channel, part, is_end in self._channels.feed(data):
                if channel == STATUS:
                    self._status += part
                    if is_end:
                        self._finish(msgspec.json.decode(self._status, type=StreamStatus))
                elif part:
                    self._client.output(channel, part)
        except (BrokenStream, msgspec.MsgspecError) as error:
            self._finish(StreamStatus(outcome="failed", message=f"podworker's answer can't be read: {error}"))
        self._client.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish(StreamStatus(outcome="failed", message="its podworker went away"))

    def pause_writing(self) -> None:
        self._client.hold_input(True)

    def resume_writing(self) -> None:
        self._client.hold_input(False)

    def _finish(self, status: StreamStatus) -> None:
        if not self._said_all:
            self._said_all = True
            self._client.flush()
            self._client.finish(status)


class CommandRelay(UpgradedConnection):
    """What the SPDY and the WebSocket relay share. `open_worker` may be asked once."""

    def __init__(self, options: ExecOptions, open_worker: OpenTransport[WorkerChannels]) -> None:
        super().__init__()
        self.options = options
        self._open_worker = open_worker
        self._worker: asyncio.Transport | None = None
        self._early: list[bytes] = []
        """For podworker, from before its connection."""
        self._early_bytes = 0
        self._resize_text = b""

    # -- towards the client, by its protocol --------------------------------------------------------------

    def output(self, channel: int, part: memoryview) -> None:
        """A piece of stdout or stderr; sent by `flush`."""
        raise NotImplementedError

    def flush(self) -> None:
        raise NotImplementedError

    def say_end(self, text: bytes) -> None:
        """The error channel's content, then the protocol's goodbye."""
        raise NotImplementedError

    @property
    def is_v4(self) -> bool:
        """Whether the end is told as a v1.Status."""
        raise NotImplementedError

    # -- towards the container ----------------------------------------------------------------------------

    def start(self) -> None:
        """All that the client announced is there."""
        self.spawn(self._connect())

    def feed_stdin(self, data: bytes) -> None:
        if self.options.stdin and data:
            self._to_worker(head(STDIN, len(data)) + data)

    def end_stdin(self) -> None:
        if self.options.stdin:
            self._to_worker(frame(STDIN, b""))

    def feed_resize(self, data: bytes, *, is_whole: bool = False) -> None:
        """JSON objects, one a line; `is_whole`: a message is one without its line end."""
        self._resize_text += data + (b"\n" if is_whole else b"")
        *lines, self._resize_text = self._resize_text.split(b"\n")
        if len(self._resize_text) > BUFFER_BYTES:
            self._resize_text = b""
        for line in lines:
            if self.options.tty and (size := read_size(line)) is not None:
                self._to_worker(frame(RESIZE, msgspec.json.encode(TerminalSize(*size))))

    # -- the rest -----------------------------------------------------------------------------------------

    def finish(self, status: StreamStatus) -> None:
        """podworker has told how it ended, or went away."""
        if self.is_over:
            return
        what = "executing command in container" if self.options.command else "attaching to container"
        self.say_end(end_text(status, is_v4=self.is_v4, what=what))
        self.linger()
        self.gone()

    def stop(self, why: str) -> None:
        self.finish(StreamStatus(outcome="failed", message=why))

    def gone(self) -> None:
        if self._worker is not None:
            self._worker.close()

    def pause_writing(self) -> None:
        if self._worker is not None and not self._worker.is_closing():
            self._worker.pause_reading()

    def resume_writing(self) -> None:
        if self._worker is not None and not self._worker.is_closing():
            self._worker.resume_reading()

    def hold_input(self, hold: bool) -> None:
        if self.transport is None or self.transport.is_closing():
            return
        if hold:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _to_worker(self, data: bytes) -> None:
        if self._worker is not None:
            self._worker.write(data)
            return
        self._early.append(data)
        self._early_bytes += len(data)
        if self._early_bytes > BUFFER_BYTES:
            self.hold_input(True)

    async def _connect(self) -> None:
        try:
            worker, _ = await self._open_worker(lambda: WorkerChannels(self))
        except OwnerUnavailable as error:
            log.warning("stream not opened error=%s", error)
            self.finish(StreamStatus(outcome="failed", message=str(error)))
            return
        if self.is_over:
            worker.close()
            return
        self._worker = worker
        early, self._early, self._early_bytes = self._early, [], 0
        for data in early:
            worker.write(data)
        self.hold_input(False)
