"""Channels inside WebSocket messages: the first byte, or the first digit in base64, says which."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterator

from services.api.relays.websocket_frames import WebSocket, message_head


class ChannelSocket:
    """One connection: `protocol` is the agreed subprotocol."""

    def __init__(self, protocol: str) -> None:
        self.is_base64 = "base64." in protocol
        self._socket = WebSocket()
        self._channel: int | None = None
        """Of the message that is being read; None = the next part begins one."""
        self._text = b""
        """Base64 of that message so far: it's decoded whole."""

    def receive(self, data: bytes) -> Iterator[tuple[int, bytes, bool]]:
        """(channel, payload, whether the message ends with it); empty messages are left out. Raises WebSocketGone;
        then, and after each call, `answers` is to be sent."""
        for payload, is_end in self._socket.receive(data):
            if self.is_base64:
                yield from self._decoded(payload, is_end)
                continue
            if self._channel is None and payload:
                self._channel, payload = payload[0], payload[1:]
            if self._channel is not None and payload:
                yield self._channel, payload, is_end
            if is_end:
                self._channel = None

    def answers(self) -> bytes:
        return self._socket.answers()

    def message(self, channel: int, payload: bytes | memoryview) -> tuple[bytes, bytes | memoryview]:
        """Head and payload of one message, to be joined with others."""
        if self.is_base64:
            text = b64encode(payload)
            return message_head(len(text) + 1, is_binary=False) + b"%d" % channel, text
        return message_head(len(payload) + 1, is_binary=True) + bytes((channel,)), payload

    def close(self) -> bytes:
        return self._socket.close()

    def _decoded(self, payload: bytes, is_end: bool) -> Iterator[tuple[int, bytes, bool]]:
        self._text += payload
        if not is_end:
            return
        text, self._text = self._text, b""
        try:
            decoded = b64decode(text[1:], validate=True)
        except Base64Error:
            return  # kubelet: what can't be decoded is dropped
        if text[:1].isdigit() and decoded:
            yield int(text[:1]), decoded, True
