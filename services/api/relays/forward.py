"""port-forward, whatever the client speaks: one connection into the pod, and its half-closes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, cast

import msgspec

from services.api.ports import OwnerRefused, OwnerUnavailable
from services.api.relays.connection import BUFFER_BYTES
from shared.contracts.streams import StreamStatus
from shared.streams.channels import STATUS, BrokenStream, ChannelReader, frame_length

OpenPort = Callable[[int, Callable[[], "PodPort"]], Awaitable[tuple[asyncio.Transport, "PodPort"]]]
"""Connects a protocol to the pod's port. Raises OwnerUnavailable, OwnerRefused."""


class PortClient(Protocol):
    """The client's side of one forwarded connection."""

    def port_data(self, data: bytes) -> None: ...
    def port_ended(self) -> None:
        """The pod's side will send nothing more."""
        ...

    def port_failed(self, why: str) -> None: ...
    def port_full(self, is_full: bool) -> None:
        """Too much waits for the pod's side: hold the client up, or let it go on."""
        ...


class PodPort(asyncio.Protocol):
    """podworker's side of one connection: a status first, then the bytes."""

    def __init__(self, client: PortClient) -> None:
        self._client = client
        self._channels: ChannelReader | None = ChannelReader()
        self._status = b""
        self._ended = False
        self._early: list[bytes] = []
        self._early_bytes = 0
        self._eof_wanted = False
        self.transport: asyncio.Transport | None = None

    # -- from the client ----------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Also before the connection is made: nothing is lost."""
        if self.transport is not None:
            if not self.transport.is_closing():
                self.transport.write(data)
            return
        self._early.append(data)
        self._early_bytes += len(data)
        if self._early_bytes > BUFFER_BYTES:
            self._client.port_full(True)

    def end(self) -> None:
        """The client will send nothing more."""
        self._eof_wanted = True
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write_eof()

    def close(self) -> None:
        self._ended = True
        if self.transport is not None:
            self.transport.abort()

    def hold(self, is_full: bool) -> None:
        """The client's side can't take more for now."""
        if self.transport is not None and not self.transport.is_closing():
            (self.transport.pause_reading if is_full else self.transport.resume_reading)()

    # -- from podworker -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=BUFFER_BYTES)
        if self._ended:
            self.transport.abort()
            return
        early, self._early, self._early_bytes = self._early, [], 0
        for data in early:
            self.transport.write(data)
        if self._eof_wanted:
            self.transport.write_eof()
        self._client.port_full(False)

    def data_received(self, data: bytes) -> None:
        if self._channels is None:
            self._client.port_data(data)
            return
        try:
            self._read_status(data)
        except (BrokenStream, msgspec.MsgspecError) as error:
            self._fail(f"podworker's answer can't be read: {error}")

    def eof_received(self) -> bool:
        """True: our direction stays open."""
        if not self._ended:
            self._ended = True
            self._client.port_ended()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if self._ended:
            return
        if self._channels is not None:
            self._fail("its podworker went away")
        else:
            self._ended = True
            self._client.port_ended()

    def pause_writing(self) -> None:
        self._client.port_full(True)

    def resume_writing(self) -> None:
        self._client.port_full(False)

    def _read_status(self, data: bytes) -> None:
        """The frame is small; what follows it in the same piece belongs to the connection."""
        self._status += data
        length = frame_length(self._status)
        if length is None or len(self._status) < length:
            return
        answer, rest = self._status[:length], self._status[length:]
        assert self._channels is not None
        for channel, part, _ in self._channels.feed(answer):
            if channel != STATUS:
                raise BrokenStream(f"channel {channel} before the status")
            status = msgspec.json.decode(part, type=StreamStatus)
            if status.outcome == "failed":
                self._fail(status.message)
                return
        self._channels = None
        if rest:
            self._client.port_data(rest)

    def _fail(self, why: str) -> None:
        if not self._ended:
            self._ended = True
            self._client.port_failed(why)
        if self.transport is not None:
            self.transport.abort()


async def connect_port(open_port: OpenPort, port: int, pod_port: PodPort, client: PortClient) -> None:
    """Connect it, or tell the client why not."""
    try:
        await open_port(port, lambda: pod_port)
    except (OwnerUnavailable, OwnerRefused) as error:
        client.port_failed(str(error))
