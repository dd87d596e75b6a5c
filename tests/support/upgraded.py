"""Clients of exec, attach and port-forward: a TLS connection, an upgrade, then SPDY."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from services.api.spdy.client import ClientStream, SpdyClient

PROTOCOLS = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
SILENCE_SECONDS = 30.0


class Refused(Exception):
    """A plain answer in place of the 101."""

    def __init__(self, status: int, head: str, body: bytes) -> None:
        super().__init__(f"{status} {body!r}")
        self.status = status
        self.head = head
        self.body = body


async def upgrade(
    port: int, ca: Path, token: str, method: str, path: str, headers: Sequence[str], *, behind: bytes = b""
) -> tuple[str, asyncio.StreamReader, asyncio.StreamWriter]:
    """The head of the 101 and the connection; `behind` is sent in one piece with the request. Raises Refused."""
    context = ssl.create_default_context(cafile=str(ca))
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, limit=1 << 20)
    bearer = [f"Authorization: Bearer {token}"] if token else []
    lines = [f"{method} {path} HTTP/1.1", "Host: node", "Content-Length: 0", *bearer, *headers, "", ""]
    writer.write("\r\n".join(lines).encode() + behind)
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SILENCE_SECONDS)).decode()
    status = int(head.split(" ", 2)[1])
    if status != 101:
        body = await asyncio.wait_for(reader.read(), SILENCE_SECONDS)
        writer.close()
        raise Refused(status, head, body)
    return head, reader, writer


class SpdyLink:
    """One upgraded connection; `client` holds its streams."""

    def __init__(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.head = head
        self.client = SpdyClient()
        self.ended = False
        self._reader = reader
        self.writer = writer

    @classmethod
    async def connect(
        cls,
        port: int,
        ca: Path,
        token: str,
        path: str,
        *,
        protocols: Sequence[str] = PROTOCOLS,
        method: str = "POST",
    ) -> SpdyLink:
        headers = ["Connection: Upgrade", "Upgrade: SPDY/3.1"]
        headers += [f"X-Stream-Protocol-Version: {one}" for one in protocols]
        return cls(*await upgrade(port, ca, token, method, path, headers))

    async def __aenter__(self) -> SpdyLink:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.writer.close()

    async def open(self, **headers: str) -> int:
        """Open a stream and wait for its answer."""
        stream_id, data = self.client.open(headers)
        await self.send_raw(data)
        await self.until(lambda: self.client.streams[stream_id].answered or self.client.streams[stream_id].over)
        return stream_id

    async def send(self, stream_id: int, payload: bytes, *, fin: bool = False) -> None:
        await self.send_raw(self.client.send(stream_id, payload, fin=fin))

    async def send_raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def stream(self, stream_id: int) -> ClientStream:
        return self.client.streams[stream_id]

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Read until it is so; the connection's end or 30 s of silence are an error."""
        while not is_so():
            data = await asyncio.wait_for(self._reader.read(1 << 20), SILENCE_SECONDS)
            if not data:
                self.ended = True
                if not is_so():
                    raise ConnectionError("the connection ended too early")
                return
            self.client.receive(data)

    async def until_end(self) -> None:
        """Read until the other side closes."""
        await self.until(lambda: self.ended)


class RemoteCommand:
    """One exec or attach over a SpdyLink, as kubectl does it: error, stdin, stdout, stderr, resize in this order."""

    def __init__(self, link: SpdyLink) -> None:
        self.link = link
        self.ids: dict[str, int] = {}

    @classmethod
    async def start(cls, link: SpdyLink, *kinds: str) -> RemoteCommand:
        command = cls(link)
        for kind in ("error", "stdin", "stdout", "stderr", "resize"):
            if kind == "error" or kind in kinds:
                command.ids[kind] = await link.open(streamtype=kind)
        return command

    async def send(self, data: bytes) -> None:
        for at in range(0, len(data), 32768):
            await self.link.send(self.ids["stdin"], data[at : at + 32768])

    async def send_end(self) -> None:
        await self.link.send(self.ids["stdin"], b"", fin=True)

    async def resize(self, text: bytes) -> None:
        await self.link.send(self.ids["resize"], text)

    def got(self, kind: str) -> bytes:
        return bytes(self.link.stream(self.ids[kind]).data)

    async def result(self) -> bytes:
        """The error stream's content, once everything has ended."""
        await self.link.until(lambda: all(self.link.stream(one).over for one in self.ids.values()))
        return self.got("error")
