"""A client's end of SPDY/3.1, over the same frames: `podbus exec` and the tests open streams and read what comes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from services.api.spdy import frames
from services.api.spdy.frames import ControlFrame, DataFrame, FrameReader, HeaderReader, HeaderWriter


@dataclass
class ClientStream:
    headers: dict[str, str]
    answered: bool = False
    data: bytearray = field(default_factory=bytearray)
    ended: bool = False
    reset: int | None = None

    @property
    def over(self) -> bool:
        return self.ended or self.reset is not None


class SpdyClient:
    """Bytes of the server in; the other methods give the bytes to send."""

    def __init__(self, on_data: Callable[[int, bytes], None] | None = None) -> None:
        """`on_data` gets (stream, payload) as they come; without it they are kept in the streams."""
        self._on_data = on_data
        self._frames = FrameReader()
        self._headers_in = HeaderReader()
        self._headers_out = HeaderWriter()
        self._next_id = 1
        self.streams: dict[int, ClientStream] = {}
        self.pongs: list[int] = []
        self.gone_away = False

    def open(self, headers: dict[str, str]) -> tuple[int, bytes]:
        stream_id, self._next_id = self._next_id, self._next_id + 2
        self.streams[stream_id] = ClientStream(headers)
        return stream_id, frames.syn_stream(stream_id, self._headers_out.write(list(headers.items())))

    def send(self, stream_id: int, payload: bytes, *, fin: bool = False) -> bytes:
        return frames.data_head(stream_id, len(payload), fin=fin) + payload

    def receive(self, data: bytes) -> None:
        for frame in self._frames.feed(data):
            if isinstance(frame, DataFrame):
                stream = self.streams[frame.stream_id]
                if self._on_data is None:
                    stream.data += frame.payload
                elif frame.payload:
                    self._on_data(frame.stream_id, frame.payload)
                stream.ended = stream.ended or frame.is_last
            else:
                self._control(frame)

    def _control(self, frame: ControlFrame) -> None:
        if frame.kind == frames.GOAWAY:
            self.gone_away = True
            return
        (number,) = struct.unpack_from(">I", frame.payload)
        if frame.kind == frames.SYN_REPLY:
            self._headers_in.read(frame.payload[4:])
            self.streams[number].answered = True
        elif frame.kind == frames.RST_STREAM:
            self.streams[number].reset = struct.unpack_from(">I", frame.payload, 4)[0]
        elif frame.kind == frames.PING:
            self.pongs.append(number)
