"""Frames of SPDY/3.1: cutting a byte stream into them, and writing them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence

import msgspec

from services.api.spdy.dictionary import HEADER_DICTIONARY

SYN_STREAM = 1
SYN_REPLY = 2
RST_STREAM = 3
SETTINGS = 4
PING = 6
GOAWAY = 7
HEADERS = 8
WINDOW_UPDATE = 9

FIN = 0x01
RESET_PROTOCOL_ERROR = 1
RESET_INVALID_STREAM = 2
RESET_REFUSED_STREAM = 3
RESET_CANCEL = 5

MAX_DATA = (1 << 24) - 1
"""Bytes in one data frame."""
MAX_CONTROL = 1 << 20
"""Bytes of a control frame that we read: headers of a stream take a few hundred."""
MAX_HEADER_BYTES = 1 << 16
"""Of one header block, decompressed: a tiny one could unfold to gigabytes."""
_HEAD = 8
_VERSION = 3


class ProtocolError(Exception):
    """The peer broke the protocol: the connection can't go on."""


class ControlFrame(msgspec.Struct, frozen=True):
    kind: int
    flags: int
    payload: bytes


class DataFrame(msgspec.Struct, frozen=True):
    """A piece of a data frame: a large one is handed on in parts as they come."""

    stream_id: int
    payload: bytes
    is_last: bool
    """The frame's FIN flag, on its last part."""


Frame = ControlFrame | DataFrame


class FrameReader:
    """Feed it what came, however it's cut; it gives the frames that this completes."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._data_stream = 0
        self._data_left = 0
        self._data_fin = False

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Consume the answer before feeding again. Raises ProtocolError."""
        self._buffer += data
        at = 0
        try:
            while True:
                if self._data_left:
                    part = bytes(self._buffer[at : at + self._data_left])
                    if not part:
                        return
                    at += len(part)
                    self._data_left -= len(part)
                    yield DataFrame(self._data_stream, part, self._data_fin and not self._data_left)
                    continue
                if len(self._buffer) - at < _HEAD:
                    return
                first, second = struct.unpack_from(">II", self._buffer, at)
                flags, length = second >> 24, second & MAX_DATA
                if not first & 0x80000000:
                    at += _HEAD
                    self._data_stream, self._data_fin, self._data_left = first, bool(flags & FIN), length
                    if not length:
                        yield DataFrame(first, b"", self._data_fin)
                    continue
                version, kind = (first >> 16) & 0x7FFF, first & 0xFFFF
                if version != _VERSION:
                    raise ProtocolError(f"SPDY version {version}, not {_VERSION}")
                if length > MAX_CONTROL:
                    raise ProtocolError(f"a control frame of {length} bytes")
                if len(self._buffer) - at < _HEAD + length:
                    return
                payload = bytes(self._buffer[at + _HEAD : at + _HEAD + length])
                at += _HEAD + length
                yield ControlFrame(kind, flags, payload)
        finally:
            del self._buffer[:at]


Headers = Sequence[tuple[str, str]]


class HeaderReader:
    """One direction's header blocks: a single decompressor for the whole connection."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(zdict=HEADER_DICTIONARY)

    def read(self, block: bytes) -> dict[str, str]:
        """Names in lower case; several values of one name stay joined by NUL. Raises ProtocolError."""
        try:
            plain = self._zlib.decompress(block, MAX_HEADER_BYTES + 1)
        except zlib.error as error:
            raise ProtocolError(f"headers that can't be decompressed: {error}") from error
        if len(plain) > MAX_HEADER_BYTES or self._zlib.unconsumed_tail:
            raise ProtocolError(f"headers of more than {MAX_HEADER_BYTES} bytes")
        return dict(_pairs(plain))


def _pairs(plain: bytes) -> Iterator[tuple[str, str]]:
    at = 4
    if len(plain) < at:
        raise ProtocolError("headers without a count")
    (count,) = struct.unpack_from(">I", plain)
    for _ in range(count):
        name, at = _text(plain, at)
        value, at = _text(plain, at)
        yield name.lower(), value


def _text(plain: bytes, at: int) -> tuple[str, int]:
    if len(plain) < at + 4:
        raise ProtocolError("headers that end too early")
    (length,) = struct.unpack_from(">I", plain, at)
    end = at + 4 + length
    if len(plain) < end:
        raise ProtocolError("headers that end too early")
    return plain[at + 4 : end].decode("utf-8", "surrogateescape"), end


class HeaderWriter:
    """The other direction's: a single compressor for the whole connection, flushed after each block."""

    def __init__(self) -> None:
        self._zlib = zlib.compressobj(9, zlib.DEFLATED, 15, 8, zlib.Z_DEFAULT_STRATEGY, HEADER_DICTIONARY)

    def write(self, headers: Headers) -> bytes:
        parts = [struct.pack(">I", len(headers))]
        for name, value in headers:
            for text in (name.lower(), value):
                raw = text.encode("utf-8", "surrogateescape")
                parts += (struct.pack(">I", len(raw)), raw)
        return self._zlib.compress(b"".join(parts)) + self._zlib.flush(zlib.Z_SYNC_FLUSH)


def control(kind: int, payload: bytes, flags: int = 0) -> bytes:
    return struct.pack(">HHI", 0x8000 | _VERSION, kind, flags << 24 | len(payload)) + payload


def syn_stream(stream_id: int, headers: bytes, *, fin: bool = False) -> bytes:
    return control(SYN_STREAM, struct.pack(">IIBB", stream_id, 0, 0, 0) + headers, FIN if fin else 0)


def syn_reply(stream_id: int, headers: bytes) -> bytes:
    return control(SYN_REPLY, struct.pack(">I", stream_id) + headers)


def rst_stream(stream_id: int, status: int) -> bytes:
    return control(RST_STREAM, struct.pack(">II", stream_id, status))


def ping(number: int) -> bytes:
    return control(PING, struct.pack(">I", number))


def goaway(last_stream_id: int, status: int = 0) -> bytes:
    return control(GOAWAY, struct.pack(">II", last_stream_id, status))


def data_head(stream_id: int, length: int, *, fin: bool = False) -> bytes:
    """The eight bytes before a data frame's payload of at most MAX_DATA bytes."""
    return struct.pack(">II", stream_id, (FIN if fin else 0) << 24 | length)
