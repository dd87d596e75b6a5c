"""Before any endpoint: is the path served, who asks, may they, and a line in the audit log."""

from __future__ import annotations

import html
import json
import logging
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator
from http import HTTPStatus
from urllib.parse import quote

from services.api.core.access import ANONYMOUS, Identity, failure_text, forbidden_text
from services.api.core.routing import FULL, HEALTH_PATHS, Disabled, Moved, Surface, Unknown, match
from services.api.core.upgrades import Headers, is_websocket, websocket_token
from services.api.handlers.answers import text
from services.api.handlers.traffic import Traffic
from services.api.ports import PEER, AccessUndecided, AsgiApp, Gate, Message, Receive, Scope, Send

audit = logging.getLogger("podbus.api.audit")

_LONGEST_PATH = 512
"""Of the audit line."""


class Front:
    """ASGI. Everything that is not refused here goes to `inner`, with the path in its inner form."""

    def __init__(
        self,
        inner: AsgiApp,
        gate: Gate | None,
        is_stale: Callable[[], bool],
        traffic: Traffic,
        surface: Surface = FULL,
    ) -> None:
        """`gate` None: the read-only port, where nobody is asked who they are."""
        self._inner = inner
        self._gate = gate
        self._is_stale = is_stale
        self._surface = surface
        self._traffic = traffic
        self._server = "readonly" if gate is None else "readwrite"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        with self._traffic.request(scope["method"], scope["path"], self._server):
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        found = match(path, self._surface)
        who: Identity | None = None

        async def audited(message: Message) -> None:
            if message["type"] == "http.response.start":
                _audit(scope, who, message["status"])
            await send(message)

        if isinstance(found, Moved):
            await _moved(_location(found.path, scope["query_string"]), method, audited)
        elif isinstance(found, Unknown):
            await text(404, "404 page not found\n", nosniff=True)(scope, receive, audited)
        elif (who := await self._identify(scope)) is None:
            await text(401, "Unauthorized")(scope, receive, audited)
        elif (refusal := await self._refusal(who, method, found.path)) is not None:
            await text(*refusal)(scope, receive, audited)
        elif isinstance(found, Disabled):
            await text(405, found.text, nosniff=True)(scope, receive, audited)
        else:
            inner_scope = {
                **scope,
                "path": found.path,
                "raw_path": found.path.encode("utf-8", "surrogateescape"),
                # kubelet: an endpoint, and an answer that shows what came, has no token to show
                "headers": [pair for pair in scope["headers"] if pair[0] != b"authorization"],
            }
            inner_send = audited if found.path in HEALTH_PATHS else self._marking_stale(audited)
            await self._inner(inner_scope, receive, inner_send)

    async def _identify(self, scope: Scope) -> Identity | None:
        if self._gate is None:
            return ANONYMOUS
        peer: Identity | None = scope.get("extensions", {}).get(PEER)
        return await self._gate.identify(peer, list(_tokens(scope["headers"])))

    async def _refusal(self, who: Identity, method: str, path: str) -> tuple[int, str] | None:
        try:
            if self._gate is None or await self._gate.allows(who, method, path):
                return None
        except AccessUndecided as error:
            return 500, failure_text(who, method, error.subresource)
        return 403, forbidden_text(who, method, path)

    def _marking_stale(self, send: Send) -> Send:
        if not self._is_stale():
            return send

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), (b"x-stale", b"true")]}
            await send(message)

        return marked


def _tokens(headers: Headers) -> Iterator[str]:
    for name, value in headers:
        if name == b"authorization":
            scheme, _, token = value.partition(b" ")
            if scheme.lower() == b"bearer" and token.strip():
                yield token.strip().decode("utf-8", "surrogateescape")
            break
    if is_websocket(headers) and (encoded := websocket_token(headers)) is not None:
        try:
            yield urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
        except ValueError:
            return


def _location(path: str, query: bytes) -> str:
    """ASCII without line ends, whatever the path holds."""
    quoted = quote(path, safe="/:@!$&'()*+,;=~", errors="replace")
    return quoted + (f"?{query.decode('latin-1')}" if query else "")


async def _moved(location: str, method: str, send: Send) -> None:
    """As Go's http.Redirect: a body only for GET, a content type for GET and HEAD."""
    body = f'<a href="{html.escape(location)}">Moved Permanently</a>.\n\n'.encode()
    headers = [(b"location", location.encode("latin-1", "replace"))]
    if method in ("GET", "HEAD"):
        headers.append((b"content-type", b"text/html; charset=utf-8"))
    if method != "GET":
        body = b""
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": HTTPStatus.MOVED_PERMANENTLY, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _audit(scope: Scope, who: Identity | None, status: int) -> None:
    """Who did what. Never the query: a command line or a token may be in it."""
    path: str = scope["path"]
    if scope["method"] == "GET" and status == 200 and (path in HEALTH_PATHS or path.startswith("/metrics")):
        return
    client = scope.get("client")
    audit.info(
        "user=%s verb=%s path=%s code=%d from=%s",
        "-" if who is None else json.dumps(who.user),
        scope["method"],
        json.dumps(path[:_LONGEST_PATH]),
        status,
        client[0] if client else "-",
    )
