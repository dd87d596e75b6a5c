"""An API server that knows TokenReview and SubjectAccessReview only, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.certificates import TestCa

Spec = dict[str, Any]


class ReviewServer:
    """HTTPS on loopback; only who shows a certificate of `ca` is heard."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ca = TestCa(directory / "cluster-ca")
        self.users: dict[str, Spec] = {}
        """Token -> status.user."""
        self.rights: set[tuple[str, str, str]] = set()
        """(user, verb, subresource)."""
        self.token_status: list[int] = []
        """Statuses of the next answers to TokenReviews; then 201."""
        self.access_status: list[int] = []
        self.token_reviews: list[Spec] = []
        """The specs that came, also of those that got an error."""
        self.access_reviews: list[Spec] = []
        self.callers: set[str] = set()
        self._links: list[socket.socket] = []
        self._server: ThreadingHTTPServer | None = None
        self.port = 0

    def start(self) -> None:
        server = self._ca.server("apiserver", addresses=("127.0.0.1",))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(server.certificate, server.key)
        context.load_verify_locations(self._ca.pair.certificate)
        context.verify_mode = ssl.CERT_REQUIRED
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self._answer, self._links))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        for link in self._links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        self._links.clear()

    def kubeconfig(self, user: str = "system:node:n1") -> Path:
        """Of a node, with files beside it by relative paths; again = with a new certificate."""
        pair = self._ca.client(user, "system:nodes")
        path = self._directory / "kubeconfig"
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [
                {
                    "name": "k",
                    "cluster": {
                        "server": f"https://127.0.0.1:{self.port}",
                        "certificate-authority": str(self._ca.pair.certificate.relative_to(self._directory)),
                    },
                }
            ],
            "users": [
                {"name": "u", "user": {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}}
            ],
        }
        path.write_text(json.dumps(document))
        return path

    def subresources(self) -> list[tuple[str, str]]:
        """(verb, subresource) of each SubjectAccessReview."""
        asked = [spec["resourceAttributes"] for spec in self.access_reviews]
        return [(one["verb"], one["subresource"]) for one in asked]

    def _answer(self, path: str, body: Spec, caller: str) -> tuple[int, Spec]:
        self.callers.add(caller)
        spec = body["spec"]
        if path == "/apis/authentication.k8s.io/v1/tokenreviews":
            self.token_reviews.append(spec)
            user = self.users.get(spec["token"])
            status: Spec = {"authenticated": user is not None, **({"user": user} if user else {})}
            return (self.token_status.pop(0) if self.token_status else 201), {**body, "status": status}
        if path == "/apis/authorization.k8s.io/v1/subjectaccessreviews":
            self.access_reviews.append(spec)
            asked = spec["resourceAttributes"]
            allowed = (spec["user"], asked["verb"], asked["subresource"]) in self.rights
            return (self.access_status.pop(0) if self.access_status else 201), {**body, "status": {"allowed": allowed}}
        return 404, {"message": "not found"}


def _handler(
    answer: Callable[[str, Spec, str], tuple[int, Spec]], links: list[socket.socket]
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            links.append(self.connection)

        def do_POST(self) -> None:
            subject = self.connection.getpeercert()["subject"]
            caller = dict(pair for part in subject for pair in part)["commonName"]
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, document = answer(self.path, body, caller)
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
