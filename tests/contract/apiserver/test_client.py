"""The client on a real socket: answers, refusals, watches, connections that die, files that change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from shared.apiserver.client import ApiClient, WatchEvent
from shared.apiserver.errors import ApiError, Unreachable
from tests.support.eventually import eventually_async

Handler = Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bool]]
"""(head of the request, the rest, the way back) -> whether the connection stays open."""


class Server:
    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.connections = 0
        self.port = 0


@asynccontextmanager
async def a_server(handler: Handler) -> AsyncIterator[Server]:
    server = Server()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                server.heads.append(head)
                if not await handler(head, reader, writer):
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(talk, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()


def kubeconfig(directory: Path, port: int, token: str = "") -> Path:
    path = directory / "kubeconfig"
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": f"http://127.0.0.1:{port}/base"}}],
        "users": [{"name": "u", "user": {"token": token}}],
    }
    path.write_text(json.dumps(document))
    return path


def answer(code: int, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {code} X", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event(type_: str, /, **fields: object) -> bytes:
    return json.dumps({"type": type_, "object": fields}).encode() + b"\n"


async def watched(client: ApiClient, **options: float) -> list[WatchEvent]:
    return [one async for one in client.watch("/api/v1/pods", {"resourceVersion": "1"}, **options)]


async def test_a_request_says_who_asks_and_reuses_its_connection(tmp_path: Path) -> None:
    async def handler(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        size = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        writer.write(answer(201, b"got " + await reader.readexactly(size)))
        return True

    async with a_server(handler) as server:
        client = ApiClient(kubeconfig(tmp_path, server.port, "t0k3n"), "podbus-test/1")
        for text in (b"one", b"two"):
            said = await client.request("PATCH", "/a b", query={"x": "1&2"}, body=text, content_type="x/y")
            assert (said.code, said.body) == (201, b"got " + text)
        assert server.connections == 1
        head = server.heads[0].decode()
        assert head.startswith("PATCH /base/a%20b?x=1%262 HTTP/1.1\r\n")
        for line in ("Authorization: Bearer t0k3n", "User-Agent: podbus-test/1", "Content-Type: x/y"):
            assert line in head
        client.close()


async def test_a_refusal_has_kubernetes_words(tmp_path: Path) -> None:
    status = json.dumps({"kind": "Status", "code": 409, "reason": "Conflict", "message": "was changed"}).encode()

    async def handler(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(answer(409, status, "retry-after: 3"))
        return True

    async with a_server(handler) as server:
        client = ApiClient(kubeconfig(tmp_path, server.port), "x")
        with pytest.raises(ApiError) as caught:
            (await client.request("GET", "/x")).check()
        error = caught.value
        assert (error.code, error.reason, error.message, error.retry_after) == (409, "Conflict", "was changed", 3.0)
        client.close()


async def test_a_connection_that_the_server_closed_meanwhile_is_replaced(tmp_path: Path) -> None:
    async def handler(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(answer(200, b"ok"))
        return False  # without a word that it closes

    async with a_server(handler) as server:
        client = ApiClient(kubeconfig(tmp_path, server.port), "x")
        for _ in range(3):
            assert (await client.request("GET", "/x")).body == b"ok"
        client.close()


async def test_a_server_that_never_answers_is_given_up(tmp_path: Path) -> None:
    async def handler(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await reader.read()
        return False

    async with a_server(handler) as server:
        client = ApiClient(kubeconfig(tmp_path, server.port), "x")
        with pytest.raises(Unreachable, match="no answer within"):
            await client.request("GET", "/x", within=0.2)
        with pytest.raises(Unreachable, match="silent"):
            await watched(client, silence=0.2)


async def test_nobody_there_and_a_file_that_is_missing_are_lasting(tmp_path: Path) -> None:
    async with a_server(lambda *_: asyncio.sleep(0, False)) as server:
        port = server.port
    for path in (kubeconfig(tmp_path, port), tmp_path / "none"):
        with pytest.raises(Unreachable) as caught:
            await ApiClient(path, "x").request("GET", "/x")
        assert caught.value.is_lasting


async def test_a_kubeconfig_that_changes_counts_from_the_next_request_on(tmp_path: Path) -> None:
    async def handler(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(answer(200, b""))
        return True

    async with a_server(handler) as server:
        client = ApiClient(kubeconfig(tmp_path, server.port, "old"), "x")
        await client.request("GET", "/x")
        kubeconfig(tmp_path, server.port, "newer")

        async def is_used() -> bool:
            await client.request("GET", "/x")
            return b"Bearer newer" in server.heads[-1]

        await eventually_async(is_used, within=10)  # its files are looked at once a second at most
        client.close()


async def test_a_watch_gives_events_in_whatever_pieces_they_come(tmp_path: Path) -> None:
    sent = event("ADDED", a=1) + event("BOOKMARK", b=2) + event("DELETED", c=3)

    async def handler(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for at in range(0, len(sent), 7):
            writer.write(chunk(sent[at : at + 7]))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        return False

    async with a_server(handler) as server:
        found = await watched(ApiClient(kubeconfig(tmp_path, server.port), "x"))
        assert [one.type for one in found] == ["ADDED", "BOOKMARK", "DELETED"]
        assert [json.loads(bytes(one.object)) for one in found] == [{"a": 1}, {"b": 2}, {"c": 3}]
        assert b"watch=1" in server.heads[0]


@pytest.mark.parametrize("in_stream", [True, False])
async def test_a_version_that_is_too_old_is_told_as_such(tmp_path: Path, in_stream: bool) -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}

    async def handler(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if in_stream:
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(event("ERROR", **status)))
        else:
            writer.write(answer(410, json.dumps(status).encode()))
        return False

    async with a_server(handler) as server:
        with pytest.raises(ApiError) as caught:
            await watched(ApiClient(kubeconfig(tmp_path, server.port), "x"))
        assert caught.value.is_expired


async def test_a_watch_that_breaks_off_is_told(tmp_path: Path) -> None:
    async def handler(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(event("ADDED", a=1)) + b"99\r\nhal"
        )
        await writer.drain()
        return False

    async with a_server(handler) as server:
        client = ApiClient(kubeconfig(tmp_path, server.port), "x")
        found = []
        with pytest.raises(Unreachable):
            async for one in client.watch("/x", {}):
                found.append(one.type)
        assert found == ["ADDED"]
