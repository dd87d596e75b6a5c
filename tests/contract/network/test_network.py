"""Checks over real connections: what servers answer, and what is said when they don't (P04, P06, P07, P08)."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from grpc import ServicerContext, StatusCode, aio, method_handlers_generic_handler, unary_unary_rpc_method_handler

from services.podworker.adapters.network_sockets import SocketNetwork
from services.podworker.ports import MAX_OUTPUT_BYTES, HttpAnswer, Unreachable
from tests.support.certificates import TestCa

HOST = "127.0.0.1"
Seen = list[bytes]


@asynccontextmanager
async def serving(
    answer: bytes | Callable[[bytes], bytes], tls: ssl.SSLContext | None = None, *, stays_open: bool = False
) -> AsyncIterator[tuple[int, Seen]]:
    """(port, the requests' heads so far); every connection gets the answer."""
    seen: Seen = []
    released = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.append(head)
        writer.write(answer if isinstance(answer, bytes) else answer(head))
        if stays_open:
            await released.wait()
        writer.close()

    server = await asyncio.start_server(serve, HOST, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1], seen
    finally:
        released.set()
        server.close()


def said(status: str, body: bytes = b"", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


async def get(port: int, path: str = "/", headers: list[tuple[str, str]] | None = None) -> HttpAnswer:
    async with asyncio.timeout(10):
        return await SocketNetwork().http_get(f"http://{HOST}:{port}{path}", headers or [], follow=True)


async def closed_port() -> int:
    async with serving(b"") as (port, _):
        return port


# -- http


@pytest.mark.parametrize(
    "status", ["200 OK", "204 No Content", "304 Not Modified", "399 Odd", "404 Not Found", "500 No"]
)
async def test_the_status_is_what_the_server_says(status: str) -> None:
    async with serving(said(status)) as (port, _):
        assert (await get(port)).status == int(status[:3])


async def test_the_request_is_a_plain_get_with_the_given_headers() -> None:
    async with serving(said("200 OK")) as (port, seen):
        await get(port, "/a b?y=ü", [("X-One", "1"), ("Host", "shop.example"), ("Accept", "*/*")])
    assert seen == [
        b"GET /a%20b?y=%C3%BC HTTP/1.1\r\nHost: shop.example\r\nX-One: 1\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    ]


async def test_without_a_host_header_the_url_tells_it() -> None:
    async with serving(said("200 OK")) as (port, seen):
        await get(port)
    assert f"Host: {HOST}:{port}\r\n".encode() in seen[0]


async def test_a_header_that_would_be_two_is_refused() -> None:
    with pytest.raises(Unreachable, match="invalid header field value"):
        await get(1, headers=[("X", "1\r\nY: 2")])


async def test_a_redirect_on_the_same_host_is_followed() -> None:
    def answer(head: bytes) -> bytes:
        if head.startswith(b"GET /first"):
            return said("302 Found", headers="Location: /second?q=1\r\n")
        return said("200 OK", b"there")

    async with serving(answer) as (port, seen):
        found = await get(port, "/first", [("Host", "shop.example")])
    assert (found.status, found.body, found.is_redirect_left) == (200, b"there", False)
    assert [head.split(b"\r\n")[:2] for head in seen] == [
        [b"GET /first HTTP/1.1", b"Host: shop.example"],
        [b"GET /second?q=1 HTTP/1.1", b"Host: shop.example"],
    ]


@pytest.mark.parametrize("location", ["http://elsewhere.invalid/", "//elsewhere.invalid/x", "ftp://127.0.0.1/"])
async def test_a_redirect_to_another_host_is_left(location: str) -> None:
    async with serving(said("302 Found", b"body", f"Location: {location}\r\n")) as (port, seen):
        found = await get(port)
    assert (found.status, found.body, found.is_redirect_left, len(seen)) == (302, b"body", True, 1)


async def test_a_redirect_without_a_location_is_an_answer() -> None:
    async with serving(said("302 Found")) as (port, _):
        assert (await get(port)).status == 302


async def test_redirects_in_a_circle_end_after_ten() -> None:
    async with serving(said("302 Found", headers="Location: /\r\n")) as (port, seen):
        with pytest.raises(Unreachable, match="stopped after 10 redirects"):
            await get(port)
    assert len(seen) == 10


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", b"abcde"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.0 200 OK\n\nbare line feeds", b"bare line feeds"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + said("200 OK", b"then"), b"then"),
        (said("200 OK", b"x" * 50_000), b"x" * MAX_OUTPUT_BYTES),
    ],
)
async def test_a_body_is_read_however_it_comes_up_to_ten_kib(answer: bytes, body: bytes) -> None:
    async with serving(answer) as (port, _):
        assert (await get(port)).body == body


async def test_an_answer_is_taken_when_it_is_whole_though_the_server_holds_the_connection() -> None:
    async with serving(said("200 OK", b"all"), stays_open=True) as (port, _):
        assert (await get(port)).body == b"all"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"", "EOF"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "unexpected EOF"),
        (b"SSH-2.0-x\r\n", 'malformed HTTP response "SSH-2.0-x'),
        (b"HTTP/1.1 2x0 OK\r\n\r\n", 'malformed HTTP status code "2x0"'),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", 'bad Content-Length "x"'),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n", "invalid chunk length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "invalid literal"),
    ],
)
async def test_what_is_no_answer_is_told(answer: bytes, told: str) -> None:
    async with serving(answer) as (port, _):
        with pytest.raises(Unreachable) as error:
            await get(port)
    assert told in str(error.value)


async def test_a_closed_port_is_told_as_the_kubelet_does() -> None:
    port = await closed_port()
    with pytest.raises(Unreachable) as error:
        await get(port)
    assert str(error.value) == f"dial tcp {HOST}:{port}: connect: connection refused"


async def test_a_host_that_nobody_knows_is_told() -> None:
    with pytest.raises(Unreachable, match=r"lookup nobody\.invalid: no such host"):
        await SocketNetwork().http_get("http://nobody.invalid/", [], follow=True)


async def test_a_self_signed_certificate_will_do(tmp_path: Path) -> None:
    """P07"""
    pair = TestCa(tmp_path).server("nobody-trusts-it")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    async with serving(said("200 OK"), tls) as (port, _):
        found = await SocketNetwork().http_get(f"https://{HOST}:{port}/", [], follow=True)
    assert found.status == 200


async def test_tls_to_a_plain_server_is_told() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(said("400 Bad Request"))
        writer.close()

    server = await asyncio.start_server(serve, HOST, 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(Unreachable, match="server gave HTTP response to HTTPS client"):
        await SocketNetwork().http_get(f"https://{HOST}:{port}/", [], follow=True)
    server.close()


async def test_a_server_that_says_nothing_is_left_when_the_caller_has_waited_long_enough() -> None:
    async with serving(b"", stays_open=True) as (port, _):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await SocketNetwork().http_get(f"http://{HOST}:{port}/", [], follow=True)


# -- tcp


async def test_an_open_port_takes_a_connection_and_a_closed_one_is_told() -> None:
    """P08"""
    async with serving(b"") as (port, _):
        await SocketNetwork().tcp_connect(HOST, port)
    with pytest.raises(Unreachable) as error:
        await SocketNetwork().tcp_connect(HOST, await closed_port())
    assert "connect: connection refused" in str(error.value)


# -- grpc

Check = Callable[[bytes, ServicerContext], Awaitable[bytes]]


@asynccontextmanager
async def health_server(check: Check | None) -> AsyncIterator[int]:
    """A real gRPC server; messages stay bytes."""
    server = aio.server()
    if check is not None:
        handler = method_handlers_generic_handler(
            "grpc.health.v1.Health", {"Check": unary_unary_rpc_method_handler(check)}
        )
        server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


@pytest.mark.parametrize(
    ("answer", "word"),
    [(b"\x08\x01", "SERVING"), (b"\x08\x02", "NOT_SERVING"), (b"\x08\x03", "SERVICE_UNKNOWN"), (b"", "UNKNOWN")],
)
async def test_a_grpc_server_tells_its_health(answer: bytes, word: str) -> None:
    asked: list[bytes] = []

    async def check(request: bytes, context: ServicerContext) -> bytes:
        asked.append(request)
        return answer

    async with health_server(check) as port:
        assert await SocketNetwork().grpc_check(HOST, port, "shop") == word
        await SocketNetwork().grpc_check(HOST, port, "")
        await SocketNetwork().grpc_check(HOST, port, "s" * 200)
    assert asked == [b"\x0a\x04shop", b"", b"\x0a\xc8\x01" + b"s" * 200]


async def test_a_grpc_server_without_the_health_service_is_told() -> None:
    async with health_server(None) as port:
        with pytest.raises(Unreachable, match="does not implement the grpc health protocol"):
            await SocketNetwork().grpc_check(HOST, port, "")


async def test_a_failed_call_is_told_with_its_code() -> None:
    async def check(request: bytes, context: ServicerContext) -> bytes:
        await context.abort(StatusCode.PERMISSION_DENIED, "no: ü")
        raise AssertionError

    async with health_server(check) as port:
        with pytest.raises(Unreachable) as error:
            await SocketNetwork().grpc_check(HOST, port, "")
    assert str(error.value) == "error: health rpc probe failed: rpc error: code = PermissionDenied desc = no: ü"


async def test_a_closed_grpc_port_and_a_server_of_another_kind_are_told() -> None:
    with pytest.raises(Unreachable, match=r"failed to connect service at .*connection refused"):
        await SocketNetwork().grpc_check(HOST, await closed_port(), "")
    async with serving(said("200 OK")) as (port, _):
        with pytest.raises(Unreachable, match="rpc error: code = Unavailable"):
            await SocketNetwork().grpc_check(HOST, port, "")
