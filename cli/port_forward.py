"""`podbus port-forward`: local listeners whose connections end at ports inside a pod."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from cli.client import ClientError, Target, client_of, target_of
from cli.console import complain
from cli.get import DEFAULT_NAMESPACE, NotFound, find_pod, list_pods
from cli.remote import PORT_FORWARD, RemoteStreams, connect

_CHUNK = 64 << 10


@dataclass(frozen=True)
class PortPair:
    local: int
    """0 = any free one."""
    remote: int


def port_forward(arguments: argparse.Namespace) -> int:
    """The command: until it's interrupted, or the node goes away."""
    try:
        pairs = [parse_ports(text) for text in arguments.ports]
        pod = find_pod(list_pods(client_of(arguments.data)), arguments.namespace or DEFAULT_NAMESPACE, arguments.pod)
        meta = pod["metadata"]
        path = f"/portForward/{meta['namespace']}/{meta['name']}"
        asyncio.run(Forwarder(target_of(arguments.data), path, arguments.address).run(pairs))
    except (ClientError, NotFound, ValueError) as error:
        complain([str(error)])
        return 1
    return 0


def parse_ports(text: str) -> PortPair:
    """`REMOTE`, `LOCAL:REMOTE` or `:REMOTE`. Raises ValueError."""
    local, colon, remote = text.partition(":")
    if not colon:
        local, remote = text, text
    numbers = [local or "0", remote]
    if not all(one.isascii() and one.isdigit() and int(one) < 1 << 16 for one in numbers) or int(remote) == 0:
        raise ValueError(f"{text!r}: ports are numbers from 1 to 65535: REMOTE, LOCAL:REMOTE or :REMOTE")
    return PortPair(int(numbers[0]), int(remote))


@dataclass
class _Connection:
    """One accepted connection and its two streams."""

    writer: asyncio.StreamWriter
    said: bytearray = field(default_factory=bytearray)


class Forwarder:
    """One upgraded connection for all ports and all who connect."""

    def __init__(self, target: Target, path: str, address: str) -> None:
        self._target = target
        self._path = path
        self._address = address
        self._by_data: dict[int, _Connection] = {}
        self._by_error: dict[int, _Connection] = {}
        self._numbers = iter(range(1 << 62))
        self.listening: list[tuple[int, int]] = []
        """(local, remote), once `run` listens."""

    async def run(self, pairs: Sequence[PortPair]) -> None:
        """Raises ClientError when the node goes away or a local port is taken."""
        streams = await connect(self._target, self._path, [], PORT_FORWARD, self._on_data)
        servers = []
        try:
            for pair in pairs:
                servers.append(await self._listen(streams, pair))
            await streams.run()
        finally:
            for server in servers:
                server.close()
            streams.close()
        raise ClientError("the node closed the connection")

    async def _listen(self, streams: RemoteStreams, pair: PortPair) -> asyncio.Server:
        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(streams, pair.remote, reader, writer)

        try:
            server = await asyncio.start_server(accepted, self._address, pair.local)
        except OSError as error:
            raise ClientError(f"can't listen on {self._address}:{pair.local}: {error.strerror or error}") from error
        local = server.sockets[0].getsockname()[1]
        self.listening.append((local, pair.remote))
        print(f"Forwarding from {self._address}:{local} -> {pair.remote}", flush=True)
        return server

    async def _serve(
        self, streams: RemoteStreams, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        connection = _Connection(writer)
        headers = {"port": str(port), "requestid": str(next(self._numbers))}
        try:
            error_id = await streams.open(streamtype="error", **headers)
            self._by_error[error_id] = connection
            await streams.send(error_id, b"", end=True)
            data_id = await streams.open(streamtype="data", **headers)
            self._by_data[data_id] = connection
        except ClientError as error:
            complain([str(error)])
            writer.close()
            return
        feeding = asyncio.create_task(self._feed(streams, data_id, reader))
        await streams.ended(error_id, data_id)
        if connection.said:
            sys.stderr.write(f"podbus: {connection.said.decode(errors='replace')}\n")
        if writer.can_write_eof() and not writer.transport.is_closing():
            writer.write_eof()
        if connection.said:
            feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
        writer.close()
        del self._by_error[error_id], self._by_data[data_id]

    async def _feed(self, streams: RemoteStreams, data_id: int, reader: asyncio.StreamReader) -> None:
        try:
            while data := await reader.read(_CHUNK):
                await streams.send(data_id, data)
        except OSError:
            pass  # the local side broke off: for the pod that's an end
        await streams.send(data_id, b"", end=True)

    def _on_data(self, stream_id: int, data: bytes) -> None:
        if (one := self._by_data.get(stream_id)) is not None:
            if not one.writer.transport.is_closing():
                one.writer.write(data)
        elif (one := self._by_error.get(stream_id)) is not None:
            one.said += data
