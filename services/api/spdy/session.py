"""A server's end of one SPDY connection: which streams are open, and what each frame means for them."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

from services.api.spdy import frames
from services.api.spdy.frames import ControlFrame, DataFrame, FrameReader, HeaderReader, HeaderWriter, ProtocolError

MAX_STREAMS = 4096
"""Open at a time on one connection; more are refused one by one."""


class Opened(msgspec.Struct, frozen=True):
    """The client opened a stream: answer with `Session.accept` or `Session.reset`."""

    stream_id: int
    headers: dict[str, str]


class Data(msgspec.Struct, frozen=True):
    stream_id: int
    payload: bytes


class End(msgspec.Struct, frozen=True):
    """The client will send nothing more on this stream."""

    stream_id: int


class Reset(msgspec.Struct, frozen=True):
    """The stream is gone, both ways."""

    stream_id: int
    status: int


class Ping(msgspec.Struct, frozen=True):
    """To be answered with `Session.pong`."""

    number: int


class GoneAway(msgspec.Struct, frozen=True):
    """The client opens no more streams."""

    status: int


class Refused(msgspec.Struct, frozen=True):
    """A frame that only its stream suffers for; `answer` is to be sent."""

    stream_id: int
    answer: bytes


Event = Opened | Data | End | Reset | Ping | GoneAway | Refused


class Session:
    """Bytes of the client in, events out; the other methods give the bytes to send."""

    def __init__(self) -> None:
        self._frames = FrameReader()
        self._headers_in = HeaderReader()
        self._headers_out = HeaderWriter()
        self._last_id = 0
        self._reading: set[int] = set()
        """Streams that the client may still send on."""
        self._writing: set[int] = set()
        """Streams that we may still send on."""

    @property
    def open_streams(self) -> int:
        return len(self._reading | self._writing)

    def receive(self, data: bytes) -> Iterator[Event]:
        """What `data` means, in order. Consume it before the next call. Raises ProtocolError."""
        for frame in self._frames.feed(data):
            if isinstance(frame, DataFrame):
                yield from self._on_data(frame)
            else:
                yield from self._on_control(frame)

    def accept(self, stream_id: int) -> bytes:
        """Tell the client that its stream is open."""
        return frames.syn_reply(stream_id, self._headers_out.write(()))

    def send(self, stream_id: int, payload: bytes, *, fin: bool = False) -> bytes:
        """A whole data frame or several; nothing for a stream that is closed on our side."""
        if stream_id not in self._writing:
            return b""
        if fin:
            self._writing.discard(stream_id)
        if len(payload) <= frames.MAX_DATA:
            return frames.data_head(stream_id, len(payload), fin=fin) + payload
        parts = [payload[at : at + frames.MAX_DATA] for at in range(0, len(payload), frames.MAX_DATA)]
        last = len(parts) - 1
        return b"".join(
            frames.data_head(stream_id, len(part), fin=fin and number == last) + part
            for number, part in enumerate(parts)
        )

    def may_send(self, stream_id: int) -> bool:
        return stream_id in self._writing

    def reset(self, stream_id: int, status: int = frames.RESET_CANCEL) -> bytes:
        self._forget(stream_id)
        return frames.rst_stream(stream_id, status)

    def pong(self, number: int) -> bytes:
        return frames.ping(number)

    def goaway(self) -> bytes:
        """That we are about to close."""
        return frames.goaway(self._last_id)

    def _forget(self, stream_id: int) -> None:
        self._reading.discard(stream_id)
        self._writing.discard(stream_id)

    def _on_data(self, frame: DataFrame) -> Iterator[Event]:
        if frame.stream_id not in self._reading:
            # Late data of a stream that we have reset is nobody's fault: it's dropped.
            if frame.stream_id > self._last_id or frame.stream_id % 2 == 0:
                yield Refused(frame.stream_id, frames.rst_stream(frame.stream_id, frames.RESET_INVALID_STREAM))
            return
        if frame.payload:
            yield Data(frame.stream_id, frame.payload)
        if frame.is_last:
            self._reading.discard(frame.stream_id)
            yield End(frame.stream_id)

    def _on_control(self, frame: ControlFrame) -> Iterator[Event]:
        match frame.kind:
            case frames.SYN_STREAM:
                yield from self._on_syn_stream(frame)
            case frames.RST_STREAM:
                stream_id, status = _two(frame)
                if stream_id in self._reading or stream_id in self._writing:
                    self._forget(stream_id)
                    yield Reset(stream_id, status)
            case frames.PING:
                (number,) = _one(frame)
                if number % 2:  # an even one would be the answer to ours, and we send none
                    yield Ping(number)
            case frames.GOAWAY:
                yield GoneAway(_two(frame)[1])
            case frames.HEADERS | frames.SYN_REPLY:
                # Not used, but its block is part of the one compressed stream.
                self._headers_in.read(frame.payload[4:])
            case _:
                return

    def _on_syn_stream(self, frame: ControlFrame) -> Iterator[Event]:
        if len(frame.payload) < 10:
            raise ProtocolError("a SYN_STREAM that ends too early")
        stream_id = struct.unpack_from(">I", frame.payload)[0] & 0x7FFFFFFF
        headers = self._headers_in.read(frame.payload[10:])
        if stream_id % 2 == 0 or stream_id <= self._last_id:
            yield Refused(stream_id, frames.rst_stream(stream_id, frames.RESET_PROTOCOL_ERROR))
            return
        self._last_id = stream_id
        if self.open_streams >= MAX_STREAMS:
            yield Refused(stream_id, frames.rst_stream(stream_id, frames.RESET_REFUSED_STREAM))
            return
        self._reading.add(stream_id)
        self._writing.add(stream_id)
        yield Opened(stream_id, headers)
        if frame.flags & frames.FIN:
            self._reading.discard(stream_id)
            yield End(stream_id)


def _one(frame: ControlFrame) -> tuple[int]:
    if len(frame.payload) < 4:
        raise ProtocolError("a control frame that ends too early")
    return (struct.unpack_from(">I", frame.payload)[0],)


def _two(frame: ControlFrame) -> tuple[int, int]:
    if len(frame.payload) < 8:
        raise ProtocolError("a control frame that ends too early")
    first, second = struct.unpack_from(">II", frame.payload)
    return first & 0x7FFFFFFF, second
