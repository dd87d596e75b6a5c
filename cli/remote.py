"""The CLI's end of exec and port-forward: an upgraded connection to the node's API that carries SPDY."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from urllib.parse import quote, urlencode

from cli.client import ClientError, Target
from services.api.spdy import ProtocolError
from services.api.spdy.client import ClientStream, SpdyClient

REMOTE_COMMAND = ("v4.channel.k8s.io", "v3.channel.k8s.io")
PORT_FORWARD = ("portforward.k8s.io",)
_ANSWER_SECONDS = 15.0
_LARGEST_REFUSAL = 4096


class RemoteStreams:
    """Streams to the node. `run` reads until the other side closes; everything else may be called meanwhile."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, on_data: Callable[[int, bytes], None]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._client = SpdyClient(on_data)
        self._changed = asyncio.Condition()
        self._is_over = False

    async def run(self) -> None:
        """Raises ClientError when the connection breaks off."""
        try:
            while data := await self._reader.read(1 << 18):
                self._client.receive(data)
                async with self._changed:
                    self._changed.notify_all()
        except (OSError, ProtocolError) as error:
            raise ClientError(f"the connection broke off: {error or type(error).__name__}") from error
        finally:
            self._is_over = True
            async with self._changed:
                self._changed.notify_all()

    async def open(self, **headers: str) -> int:
        """Open a stream and wait until the node has accepted it. Raises ClientError."""
        stream_id, data = self._client.open(headers)
        await self._send(data)
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._is_over or self.stream(stream_id).answered or self.stream(stream_id).over
            )
        if not self.stream(stream_id).answered:
            raise ClientError("the node didn't accept a stream")
        return stream_id

    def stream(self, stream_id: int) -> ClientStream:
        return self._client.streams[stream_id]

    async def send(self, stream_id: int, payload: bytes, *, end: bool = False) -> None:
        """Waits for a slow node. A connection that has gone is `run`'s matter."""
        await self._send(self._client.send(stream_id, payload, fin=end))

    async def ended(self, *stream_ids: int) -> None:
        """Until the node has closed all of these, or the connection is gone."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._is_over or all(self.stream(one).over for one in stream_ids))

    def close(self) -> None:
        self._writer.close()

    async def _send(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError:
            return


async def connect(
    target: Target,
    path: str,
    query: Sequence[tuple[str, str]],
    protocols: Sequence[str],
    on_data: Callable[[int, bytes], None],
) -> RemoteStreams:
    """Upgrade. Raises ClientError with the node's own words."""
    tls = ssl.create_default_context(cadata=target.authorities or None)
    tls.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    where = f"https://{target.host}:{target.port}"
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(
                target.host, target.port, ssl=tls, server_hostname=target.server_name or target.host, limit=1 << 20
            )
            writer.write(_request(target, quote(path) + "?" + urlencode(query), protocols))
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            status = int(head.split(" ", 2)[1])
            if status != 101:
                text = (await reader.read(_LARGEST_REFUSAL)).decode(errors="replace").strip()
                writer.close()
                raise ClientError(text or head.splitlines()[0], status)
    except TimeoutError as error:
        raise ClientError(f"{where} doesn't answer") from error
    except (OSError, EOFError, ValueError, IndexError) as error:
        raise ClientError(f"{where}: {error or type(error).__name__}: is the node up? `podbus up` starts it") from error
    return RemoteStreams(reader, writer, on_data)


def _request(target: Target, path: str, protocols: Sequence[str]) -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {target.host}:{target.port}",
        f"Authorization: Bearer {target.token}",
        "Content-Length: 0",
        "Connection: Upgrade",
        "Upgrade: SPDY/3.1",
        *(f"X-Stream-Protocol-Version: {protocol}" for protocol in protocols),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
