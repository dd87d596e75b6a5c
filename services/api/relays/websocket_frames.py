"""WebSocket frames for the relays, by wsproto: messages in, bytes out."""

from __future__ import annotations

from collections.abc import Iterator

from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, Pong, TextMessage
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

NORMAL = 1000


class WebSocketGone(Exception):
    """The client broke the protocol, or closed."""


class WebSocket:
    """The server's end after the handshake."""

    def __init__(self) -> None:
        self._connection = Connection(ConnectionType.SERVER)
        self._answers: list[bytes] = []

    def receive(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """Messages in parts as they come: (payload, whether the message ends with it). Text is given as its bytes.
        Raises WebSocketGone at the client's close or its fault. Then, and after each call, `answers` is to be sent."""
        try:
            self._connection.receive_data(data)
            for event in self._connection.events():
                match event:
                    case BytesMessage():
                        yield bytes(event.data), event.message_finished
                    case TextMessage():
                        yield event.data.encode(), event.message_finished
                    case Ping():
                        self._answers.append(self._connection.send(event.response()))
                    case CloseConnection():
                        self._answers.append(self._connection.send(event.response()))
                        raise WebSocketGone(f"closed by the client with code {event.code}")
                    case Pong():
                        pass
        except (RemoteProtocolError, LocalProtocolError) as error:
            raise WebSocketGone(str(error)) from error

    def answers(self) -> bytes:
        """Pongs and the answer to a close, each once."""
        answers, self._answers = self._answers, []
        return b"".join(answers)

    def close(self, code: int = NORMAL) -> bytes:
        try:
            return self._connection.send(CloseConnection(code=code))
        except LocalProtocolError:  # it's closed already
            return b""


def message_head(length: int, *, is_binary: bool) -> bytes:
    """What comes before a whole, unmasked message of `length` bytes: written here, not by wsproto, so that a large
    payload is joined once."""
    first = b"\x82" if is_binary else b"\x81"
    if length < 126:
        return first + bytes((length,))
    if length < 1 << 16:
        return first + b"\x7e" + length.to_bytes(2, "big")
    return first + b"\x7f" + length.to_bytes(8, "big")
