"""UNIX sockets in front of an engine that can be cut, and an engine of a few routes."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

ENGINE_SOCKET = "/var/run/docker.sock"


class Proxy:
    """Relays a UNIX socket to the engine's. `cut` is what a restart of the engine looks like to its clients."""

    def __init__(self, path: Path, target: str = ENGINE_SOCKET) -> None:
        self.path = path
        self.delay = 0.0
        """Seconds that each part of a request waits before the engine gets it."""
        self._target = target
        self._connections: list[socket.socket] = []
        self._server: socket.socket | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.path}"

    def open(self) -> None:
        self.path.unlink(missing_ok=True)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self.path))
        self._server.listen()
        threading.Thread(target=self._accept, args=(self._server,), daemon=True).start()

    def cut(self) -> None:
        """Nobody listens any more and every connection is reset."""
        assert self._server is not None
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.path.unlink()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._connections.clear()

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            engine = socket.socket(socket.AF_UNIX)
            engine.connect(self._target)
            self._connections += [client, engine]
            for one, other in ((client, engine), (engine, client)):
                threading.Thread(target=self._relay, args=(one, other, one is client), daemon=True).start()

    def _relay(self, source: socket.socket, sink: socket.socket, is_request: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if is_request and self.delay:
                    time.sleep(self.delay)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


class FakeRegistryEngine:
    """Answers the image calls of the Engine API: `script` gives the lines of each pull."""

    def __init__(self, path: Path, script: Callable[[], Iterable[dict[str, Any]]]) -> None:
        self.pulls = 0
        self.images: set[str] = set()
        self.refusal: tuple[int, str] | None = None
        self.is_broken = False
        """It can't tell which images it has."""
        engine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def address_string(self) -> str:
                return "unix"

            def do_GET(self) -> None:
                if self.path == "/version":
                    return self._json(200, {"ApiVersion": "1.41"})
                name = self.path.split("/images/", 1)[1].removesuffix("/json")
                if engine.is_broken:
                    return self._json(500, {"message": "layer store is corrupt"})
                if name in engine.images:
                    return self._json(200, {"Id": f"sha256:{engine.pulls}", "RepoTags": [name], "Size": 1})
                return self._json(404, {"message": f"No such image: {name}"})

            def do_POST(self) -> None:
                engine.pulls += 1
                if engine.refusal:
                    return self._json(engine.refusal[0], {"message": engine.refusal[1]})
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                with contextlib.suppress(OSError):
                    failed = False
                    for line in script():
                        failed = failed or "error" in line
                        data = json.dumps(line).encode() + b"\r\n"
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                        self.wfile.flush()
                    if not failed:
                        engine.images.add("registry.test/app:1")
                    self.wfile.write(b"0\r\n\r\n")
                return None

            def _json(self, status: int, body: dict[str, Any]) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            daemon_threads = True

        self._server = Server(str(path), Handler)
        self.url = f"unix://{path}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def slowly(lines: Iterable[dict[str, Any]], until: threading.Event) -> Iterable[dict[str, Any]]:
    """The lines, the last one again and again until the event."""
    line: dict[str, Any] = {}
    for line in lines:
        yield line
    while not until.is_set():
        time.sleep(0.01)
        yield line
