"""Byte streams over UNIX sockets, on the real thing."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.contracts.streams import StreamTicket
from shared.streams import StreamRefused, StreamServer, open_stream, open_transport
from tests.support.eventually import eventually_async


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def server(tmp_path: Path, clock: Clock) -> AsyncIterator[StreamServer]:
    server = StreamServer(tmp_path / "w.sock", clock=clock)
    await server.start()
    yield server
    await server.stop()


async def _hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hello")


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


async def test_a_ticket_opens_its_stream(server: StreamServer) -> None:
    reader, writer = await open_stream(server.issue(_hello))
    assert await reader.read() == b"hello"
    writer.close()


async def test_an_empty_stream_is_not_an_error(server: StreamServer) -> None:
    async def nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        return None

    reader, writer = await open_stream(server.issue(nothing))
    assert await reader.read() == b""
    writer.close()


async def test_a_ticket_opens_only_once(server: StreamServer) -> None:
    ticket = server.issue(_hello)
    _, writer = await open_stream(ticket)
    writer.close()
    with pytest.raises(StreamRefused):
        await open_stream(ticket)


async def test_a_ticket_is_good_for_a_minute(server: StreamServer, clock: Clock) -> None:
    ticket = server.issue(_hello)
    clock.now += 60
    with pytest.raises(StreamRefused):
        await open_stream(ticket)


async def test_a_made_up_token_opens_nothing(server: StreamServer, tmp_path: Path) -> None:
    server.issue(_hello)
    for token in ("", "0" * 36, "x" * 70000):
        with pytest.raises(StreamRefused):
            await open_stream(StreamTicket(socket=str(tmp_path / "w.sock"), token=token))


async def test_nobody_there_is_refused_too(tmp_path: Path) -> None:
    with pytest.raises(StreamRefused):
        await open_stream(StreamTicket(socket=str(tmp_path / "none.sock"), token="t"))


async def test_a_server_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent.sock"))
        silent.listen(1)
        with pytest.raises(StreamRefused):
            await open_stream(StreamTicket(socket=str(tmp_path / "silent.sock"), token="t"), within=0.05)


async def test_the_socket_is_for_its_owner_only(server: StreamServer, tmp_path: Path) -> None:
    mode = (tmp_path / "w.sock").stat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600


async def test_a_socket_left_by_a_dead_process_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    server = StreamServer(path)
    await server.start()
    reader, writer = await open_stream(server.issue(_hello))
    assert await reader.read() == b"hello"
    writer.close()
    await server.stop()
    assert not path.exists()


async def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    path.write_text("keep me")
    with pytest.raises(OSError):
        await StreamServer(path).start()
    assert path.read_text() == "keep me"


async def test_a_stopped_server_leaves_its_successors_socket(tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    old, new = StreamServer(path), StreamServer(path)
    await old.start()
    await new.start()
    await old.stop()
    reader, writer = await open_stream(new.issue(_hello))
    assert await reader.read() == b"hello"
    writer.close()
    await new.stop()


async def test_bytes_arrive_as_they_were_sent_in_both_directions(server: StreamServer) -> None:
    reader, writer = await open_stream(server.issue(_echo))
    sent = os.urandom(4 << 20)

    async def send() -> None:
        writer.write(sent)
        await writer.drain()
        writer.write_eof()

    _, received = await asyncio.gather(send(), reader.read())
    assert hashlib.sha256(received).digest() == hashlib.sha256(sent).digest()
    writer.close()


async def test_a_slow_reader_holds_the_sender_up(server: StreamServer) -> None:
    sent = 0
    size = 64 << 20

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while sent < size:
            writer.write(b"x" * 65536)
            sent += 65536
            await writer.drain()

    reader, writer = await open_stream(server.issue(pour))
    before = -1

    async def stands_still() -> bool:
        nonlocal before
        before, same = sent, sent == before
        return same and sent > 0

    await eventually_async(stands_still, within=10, every=0.1)
    assert sent < 4 << 20
    received = 0
    while data := await reader.read(1 << 20):
        received += len(data)
    assert received == size
    writer.close()


async def test_a_relay_loses_none_of_the_first_bytes(server: StreamServer) -> None:
    class Collect(asyncio.Protocol):
        def __init__(self) -> None:
            self.data = b""
            self.ended = asyncio.Event()

        def data_received(self, data: bytes) -> None:
            self.data += data

        def connection_lost(self, exc: Exception | None) -> None:
            self.ended.set()

    _, protocol = await open_transport(server.issue(_hello), Collect)
    await protocol.ended.wait()
    assert protocol.data == b"hello"


async def test_a_handler_sees_that_its_peer_went_away(server: StreamServer) -> None:
    ended = asyncio.Event()

    async def watch(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        ended.set()

    _, writer = await open_stream(server.issue(watch))
    writer.close()
    await asyncio.wait_for(ended.wait(), 5)


async def test_stopping_ends_running_streams(server: StreamServer) -> None:
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    reader, writer = await open_stream(server.issue(never))
    assert server.open_streams == 1
    await server.stop()
    assert await reader.read() == b""
    assert server.open_streams == 0
    writer.close()


async def test_a_handlers_error_ends_only_its_stream(server: StreamServer, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise ValueError("a bug")

    reader, writer = await open_stream(server.issue(broken))
    assert await reader.read() == b""
    writer.close()
    assert "a bug" in caplog.text
    reader, writer = await open_stream(server.issue(_hello))
    assert await reader.read() == b"hello"
    writer.close()
