"""Several byte channels over one stream: how exec and attach travel between podworker and api.

A frame is `channel, 0, 0, 0, length (4 bytes, big-endian), payload`: the engine's own form for stdout and stderr, so
that podworker passes those on as they are. Pure: bytes in, parts out.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

STDIN = 0
"""Towards the container; an empty frame is its end."""
STDOUT = 1
STDERR = 2
STATUS = 3
"""From podworker, once and last: a shared.contracts.streams.StreamStatus as JSON."""
RESIZE = 4
"""Towards the container: a shared.contracts.streams.TerminalSize as JSON."""

_HEAD = struct.Struct(">BxxxI")
MAX_CONTROL_BYTES = 64 << 10
"""Of a whole status or resize frame."""


class BrokenStream(Exception):
    """What came isn't frames."""


def head(channel: int, length: int) -> bytes:
    return _HEAD.pack(channel, length)


def frame(channel: int, payload: bytes) -> bytes:
    return _HEAD.pack(channel, len(payload)) + payload


def frame_length(begun: bytes) -> int | None:
    """Of the whole frame that these bytes begin, its head included; None = too few to tell."""
    return None if len(begun) < _HEAD.size else _HEAD.size + int(_HEAD.unpack_from(begun)[1])


class ChannelReader:
    """Feed it what came, however it's cut. Payloads are handed on in parts, without waiting for their frame's end."""

    def __init__(self) -> None:
        self._head = b""
        self._channel = 0
        self._left = 0

    def feed(self, data: bytes) -> Iterator[tuple[int, memoryview, bool]]:
        """(channel, part, whether the frame ends with it). An empty frame is one empty part. Raises BrokenStream."""
        view, at, size = memoryview(data), 0, len(data)
        while at < size:
            if self._left:
                part = view[at : at + self._left]
                at += len(part)
                self._left -= len(part)
                yield self._channel, part, not self._left
                continue
            missing = _HEAD.size - len(self._head)
            piece = bytes(view[at : at + missing])
            self._head += piece
            at += len(piece)
            if len(self._head) < _HEAD.size:
                return
            self._channel, self._left = _HEAD.unpack(self._head)
            self._head = b""
            if self._channel > RESIZE:
                raise BrokenStream(f"channel {self._channel}")
            if self._channel in (STATUS, RESIZE) and self._left > MAX_CONTROL_BYTES:
                raise BrokenStream(f"a frame of {self._left} bytes on channel {self._channel}")
            if not self._left:
                yield self._channel, view[at:at], True

    @property
    def is_between_frames(self) -> bool:
        return not self._left and not self._head
