"""grpc.health.v1.Health/Check in plain HTTP/2, with its two messages encoded by hand. Imported only for grpc probes."""

from __future__ import annotations

import asyncio
from typing import cast
from urllib.parse import unquote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError

from services.podworker.adapters.network_sockets import connect, reason_of
from services.podworker.core.probe_checks import USER_AGENT
from services.podworker.ports import Unreachable

PATH = "/grpc.health.v1.Health/Check"
STATUSES = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
UNIMPLEMENTED = "12"
MAX_ANSWER_BYTES = 16 * 1024
_CODES = (
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
)


async def check_health(host: str, port: int, service: str) -> str:
    """The status word. Raises Unreachable in the kubelet's words."""
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        transport, call = await connect(host, port, lambda: HealthCall(address, service))
    except Unreachable as error:
        raise Unreachable(f'error: failed to connect service at "{address}": {error}') from error
    try:
        await call.done
    except (ProtocolError, EOFError) as error:
        raise Unreachable(_rpc_failed("Unavailable", f"connection error: {error or type(error).__name__}")) from error
    except OSError as error:
        raise Unreachable(_rpc_failed("Unavailable", f"error reading from server: {reason_of(error)}")) from error
    finally:
        transport.abort()
    return _status_of(call)


def _status_of(call: HealthCall) -> str:
    code = call.headers.get("grpc-status")
    message = unquote(call.headers.get("grpc-message", ""))
    if call.headers.get(":status") != "200":
        raise Unreachable(_rpc_failed("Unavailable", f"unexpected HTTP status code {call.headers.get(':status', '')}"))
    if code == UNIMPLEMENTED:
        raise Unreachable(
            f"error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {message}"
        )
    if code != "0":
        word = _CODES[int(code)] if code is not None and code.isdecimal() and int(code) < len(_CODES) else "Unknown"
        raise Unreachable(_rpc_failed(word, message))
    return decode_status(bytes(call.body))


def _rpc_failed(code: str, text: str) -> str:
    return f"error: health rpc probe failed: rpc error: code = {code} desc = {text}"


def encode_request(service: str) -> bytes:
    """HealthCheckRequest{service = 1} in gRPC's frame: not compressed, length, message."""
    name = service.encode()
    message = b"\x0a" + _varint(len(name)) + name if name else b""
    return b"\x00" + len(message).to_bytes(4, "big") + message


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def decode_status(frame: bytes) -> str:
    """HealthCheckResponse{status = 1}; a message without the field holds its zero."""
    message = frame[5:]
    if len(frame) < 5 or frame[0] or len(message) != int.from_bytes(frame[1:5], "big"):
        raise Unreachable(_rpc_failed("Internal", "the answer isn't one whole message"))
    if not message:
        return STATUSES[0]
    if message[0] != 0x08 or len(message) != 2:
        raise Unreachable(_rpc_failed("Internal", "the answer isn't a HealthCheckResponse"))
    return STATUSES[message[1]] if message[1] < len(STATUSES) else str(message[1])


class HealthCall(asyncio.Protocol):
    """One connection with one call; `done` ends with its stream."""

    def __init__(self, address: str, service: str) -> None:
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._address = address
        self._service = service
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._h2.initiate_connection()
        stream = self._h2.get_next_available_stream_id()
        headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", PATH),
            (":authority", self._address),
            ("content-type", "application/grpc"),
            ("user-agent", USER_AGENT),
            ("te", "trailers"),
        ]
        self._h2.send_headers(stream, headers)
        self._h2.send_data(stream, encode_request(self._service), end_stream=True)
        self._transport.write(self._h2.data_to_send())

    def data_received(self, data: bytes) -> None:
        if self.done.done() or self._transport is None:
            return
        try:
            for event in self._h2.receive_data(data):
                self._take(event)
        except ProtocolError as error:
            self._fail(error)
            return
        if answer := self._h2.data_to_send():
            self._transport.write(answer)

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(error or EOFError("EOF"))

    def _take(self, event: Event) -> None:
        match event:
            case ResponseReceived() | TrailersReceived():
                self.headers.update((str(name), str(value)) for name, value in event.headers)
            case DataReceived():
                self.body += event.data
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                if len(self.body) > MAX_ANSWER_BYTES:
                    self._fail(EOFError("the answer is too long"))
            case StreamEnded():
                if not self.done.done():
                    self.done.set_result(None)
            case StreamReset() | ConnectionTerminated():
                self._fail(EOFError(f"the server ended the call: {event.error_code}"))

    def _fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)
