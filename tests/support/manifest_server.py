"""A small HTTP(S) server on loopback that answers as a test says, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.certificates import Pair

Answer = Callable[[BaseHTTPRequestHandler], None]


def page(body: str | bytes, status: int = 200, **headers: str) -> Answer:
    """A whole answer."""
    data = body.encode() if isinstance(body, str) else body

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        with contextlib.suppress(OSError):  # who asked may have had enough
            request.wfile.write(data)

    return answer


def redirect(location: str, status: int = 302) -> Answer:
    return page("", status, Location=location)


class ManifestServer:
    """`answers` by path, "" = every other one. Change them at any time."""

    def __init__(self, pair: Pair | None = None, host: str = "127.0.0.1") -> None:
        self.answers: dict[str, Answer] = {"": page("no such page", 404)}
        self.asked: list[tuple[str, list[tuple[str, str]]]] = []
        """(path, headers) of each request."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, self.headers.items()))
                outer.answers.get(self.path, outer.answers[""])(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer((host, 0), Handler)
        self._server.daemon_threads = True
        if pair is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pair.certificate, pair.key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        self._scheme = "http" if pair is None else "https"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{self._scheme}://{host}:{self.port}{path}"

    def headers_of(self, path: str, name: str) -> list[str]:
        """All values of a header in the last request for that path."""
        headers = next(headers for asked, headers in reversed(self.asked) if asked == path)
        return [value for key, value in headers if key.lower() == name.lower()]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def manifest_server(pair: Pair | None = None) -> Iterator[ManifestServer]:
    server = ManifestServer(pair)
    try:
        yield server
    finally:
        server.close()
