"""A manifest URL is asked as Go's default client asks: against a real server on loopback."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from services.source.adapters.manifest_url import ManifestUrl
from services.source.core.documents import MAX_FILE_BYTES
from services.source.ports import UrlUnavailable
from tests.support.certificates import TestCa
from tests.support.manifest_server import ManifestServer, manifest_server, page, redirect


@pytest.fixture
def server() -> Iterator[ManifestServer]:
    with manifest_server() as made:
        yield made


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


async def refusal(url: str, *, seconds: float = 10) -> str:
    with pytest.raises(UrlUnavailable) as refused:
        await ManifestUrl(url, timeout=seconds).fetch()
    return str(refused.value)


async def test_the_body_of_a_200_is_the_answer(server: ManifestServer) -> None:
    server.answers["/pods?x=1"] = page("hello")
    assert await ManifestUrl(server.url("/pods?x=1")).fetch() == b"hello"


async def test_an_empty_body_is_an_answer_too(server: ManifestServer) -> None:
    server.answers["/"] = page("")
    assert await ManifestUrl(server.url()).fetch() == b""


async def test_configured_headers_are_sent_each_value_by_itself(server: ManifestServer) -> None:
    server.answers["/"] = page("x")
    await ManifestUrl(server.url(), {"X-Node": ["a", "b"], "Authorization": ["Bearer t"]}).fetch()
    assert server.headers_of("/", "X-Node") == ["a", "b"]
    assert server.headers_of("/", "Authorization") == ["Bearer t"]
    assert server.headers_of("/", "Host") == [f"127.0.0.1:{server.port}"]


async def test_a_user_in_the_url_is_sent_and_never_shown(server: ManifestServer) -> None:
    url = ManifestUrl(f"http://me:s3cret@127.0.0.1:{server.port}/")
    server.answers["/"] = page("", 500)
    with pytest.raises(UrlUnavailable) as refused:
        await url.fetch()
    assert server.headers_of("/", "Authorization") == ["Basic bWU6czNjcmV0"]
    assert "s3cret" not in f"{refused.value}{url.origin}"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed(server: ManifestServer, status: int) -> None:
    server.answers |= {"/": redirect("/there", status), "/there": page("found")}
    assert await ManifestUrl(server.url()).fetch() == b"found"


async def test_credentials_stay_with_the_first_host(server: ManifestServer) -> None:
    """Go: only that host and its subdomains get them; other headers go along."""
    server.answers |= {"/": redirect(server.url("/there", host="localhost")), "/there": page("found")}
    await ManifestUrl(server.url(), {"Authorization": ["Bearer t"], "Cookie": ["c"], "X-Node": ["n1"]}).fetch()
    assert server.headers_of("/there", "Authorization") == server.headers_of("/there", "Cookie") == []
    assert server.headers_of("/there", "X-Node") == ["n1"]


async def test_a_redirect_on_the_same_host_keeps_credentials(server: ManifestServer) -> None:
    server.answers |= {"/": redirect("/there"), "/there": page("found")}
    await ManifestUrl(server.url(), {"Authorization": ["Bearer t"]}).fetch()
    assert server.headers_of("/there", "Authorization") == ["Bearer t"]


async def test_endless_redirects_end(server: ManifestServer) -> None:
    server.answers["/"] = redirect("/")
    assert "more than 10 redirects" in await refusal(server.url())
    assert len(server.asked) == 11


async def test_a_redirect_to_a_file_is_not_followed(server: ManifestServer) -> None:
    server.answers["/"] = redirect("file:///etc/shadow")
    assert "no http or https URL" in await refusal(server.url())


@pytest.mark.parametrize("status", [201, 204, 304, 404, 500])
async def test_any_other_status_is_told(server: ManifestServer, status: int) -> None:
    server.answers["/"] = page("" if status in (204, 304) else "x", status)
    assert f": {status} " in await refusal(server.url())


async def test_an_answer_over_ten_mebibytes_is_refused(server: ManifestServer) -> None:
    server.answers |= {"/": page(b"#" * (MAX_FILE_BYTES + 1)), "/fits": page(b"#" * MAX_FILE_BYTES)}
    assert "larger than 10 MiB" in await refusal(server.url())
    assert len(await ManifestUrl(server.url("/fits")).fetch()) == MAX_FILE_BYTES


async def test_an_answer_that_breaks_off_is_none(server: ManifestServer) -> None:
    """A shorter list would take pods away."""

    def half(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "100")
        request.end_headers()
        request.wfile.write(b"half")

    server.answers["/"] = half
    assert "broke off" in await refusal(server.url())


async def test_a_chunked_answer_that_breaks_off_is_none(server: ManifestServer) -> None:
    def half(request: BaseHTTPRequestHandler) -> None:
        request.protocol_version = "HTTP/1.1"
        request.send_response(200)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        request.wfile.write(b"4\r\nhalf\r\n")
        request.close_connection = True

    server.answers["/"] = half
    assert "broke off" in await refusal(server.url())


async def test_an_answer_that_trickles_is_cut_at_the_deadline(server: ManifestServer) -> None:
    """Each single byte comes in time, the whole doesn't."""
    ended = threading.Event()

    def trickle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        try:
            while True:
                request.wfile.write(b"#")
                request.wfile.flush()
                threading.Event().wait(0.01)
        except OSError:
            ended.set()

    server.answers["/"] = trickle
    assert "no whole answer within 0.3 s" in await refusal(server.url(), seconds=0.3)
    assert await asyncio.to_thread(ended.wait, 5), "the connection was left open"


async def test_a_connection_without_an_answer_is_told(server: ManifestServer) -> None:
    def hang_up(request: BaseHTTPRequestHandler) -> None:
        request.close_connection = True

    server.answers["/"] = hang_up
    assert "closed without an answer" in await refusal(server.url())


async def test_nobody_there_is_told(server: ManifestServer) -> None:
    server.close()
    assert "Connection refused" in await refusal(server.url())


async def test_what_isnt_http_is_told(server: ManifestServer) -> None:
    def greet(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"220 mail ready\r\n\r\n")

    server.answers["/"] = greet
    assert "not an HTTP answer" in await refusal(server.url())


async def test_a_proxy_of_the_environment_is_asked_but_not_for_this_machine(
    server: ManifestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url())
    server.answers |= {"http://manifests.invalid/pods": page("by proxy"), "/pods": page("direct")}
    assert await ManifestUrl("http://manifests.invalid/pods").fetch() == b"by proxy"
    assert await ManifestUrl(server.url("/pods")).fetch() == b"direct"


async def test_a_certificate_is_verified_against_the_systems_authorities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca = TestCa(tmp_path)
    pair = ca.server("manifests", addresses=("127.0.0.1",))
    with manifest_server(pair) as server:
        server.answers["/"] = page("safe")
        assert "its certificate isn't trusted" in await refusal(server.url())
        monkeypatch.setenv("SSL_CERT_FILE", str(ca.pair.certificate))
        assert await ManifestUrl(server.url()).fetch() == b"safe"
        assert "its certificate isn't trusted" in await refusal(server.url(host="localhost"))
