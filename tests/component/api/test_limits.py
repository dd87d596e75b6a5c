"""What a client may take of the HTTP server: bounds that are minutes or thousands in a node, made small here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services.api.adapters import http_server
from services.api.adapters.http_server import HttpListener
from services.api.ports import Receive, Scope, Send
from services.api.relays.connection import UpgradedConnection
from tests.support.eventually import eventually_async
from tests.support.nats_server import free_port

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


@asynccontextmanager
async def listening() -> AsyncIterator[int]:
    port = free_port()
    listener = HttpListener(hello, "127.0.0.1", port)
    running = asyncio.create_task(listener.run())
    await asyncio.wait_for(listener.listening.wait(), 10)
    try:
        yield port
    finally:
        await listener.stop()
        await running


async def until_closed(reader: asyncio.StreamReader) -> bytes:
    return await asyncio.wait_for(reader.read(), 10)


async def test_a_head_that_drips_in_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """30 s for a whole head, however often a byte of it comes."""
    monkeypatch.setattr(http_server, "_HEAD_SECONDS", 0.3)
    async with listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")

        async def drip() -> None:
            while True:
                writer.write(b"a")
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        answer = await until_closed(reader)
        dripping.cancel()
        assert answer.startswith(b"HTTP/1.1 408 Request Timeout")
        writer.close()


@pytest.mark.parametrize("before", [b"", REQUEST])
async def test_a_connection_without_a_request_is_ended(monkeypatch: pytest.MonkeyPatch, before: bytes) -> None:
    """After 90 s, before its first request and after its last."""
    monkeypatch.setattr(http_server, "KEEP_ALIVE_SECONDS", 0.3)
    async with listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(before)
        answer = await until_closed(reader)
        assert answer.endswith(b"hi") if before else answer == b""
        writer.close()


async def test_one_connection_too_many_is_closed_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_most_connections", lambda: 5)
    async with listening() as port:
        links = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
        for reader, writer in links:
            writer.write(REQUEST)
            assert (await asyncio.wait_for(reader.readuntil(b"hi"), 10)).startswith(b"HTTP/1.1 200")
        assert not await is_answered(port)
        links[0][1].close()
        await links[0][1].wait_closed()
        for reader, writer in links[1:]:
            writer.write(REQUEST)
            assert (await asyncio.wait_for(reader.readuntil(b"hi"), 10)).startswith(b"HTTP/1.1 200")

        await eventually_async(lambda: is_answered(port), within=10)
        for _, one in links[1:]:
            one.close()


async def is_answered(port: int) -> bool:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(REQUEST)
        return b"200" in await asyncio.wait_for(reader.readline(), 10)
    except ConnectionError:
        return False
    finally:
        writer.close()


class Stream(UpgradedConnection):
    """Notes why it was ended."""

    def __init__(self, idle_seconds: float) -> None:
        super().__init__()
        self.idle_seconds = idle_seconds
        self.ended: asyncio.Future[str] = self.loop.create_future()

    def received(self, data: bytes) -> None:
        self.write(data)

    def gone(self) -> None:
        return

    def stop(self, why: str) -> None:
        if not self.ended.done():
            self.ended.set_result(why)


async def test_a_stream_ends_when_it_is_idle_for_too_long_and_not_while_bytes_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """streamingConnectionIdleTimeout, 4 h."""
    made: list[Stream] = []

    def begin() -> Stream:
        made.append(Stream(0.5))
        return made[-1]

    server = await asyncio.get_running_loop().create_server(begin, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(10):
        writer.write(b"x")
        await reader.readexactly(1)
        await asyncio.sleep(0.1)
    (stream,) = made
    assert not stream.ended.done()
    assert await asyncio.wait_for(stream.ended, 10) == "the connection was idle for too long"
    writer.close()
    server.close()
