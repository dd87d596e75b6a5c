"""Responses in the kubelet's forms."""

from __future__ import annotations

import asyncio
import logging
from urllib.parse import parse_qs

from fastapi import HTTPException, Request, Response

from services.api.core.routing import acceptable
from services.api.ports import ByteSource, OwnerRefused, OwnerUnavailable, Receive, Scope, Send

log = logging.getLogger("podbus.api.answers")

TEXT = "text/plain; charset=utf-8"
_MAX_FIELDS = 1000
_STOP_SECONDS = 2.0
_REFUSED = {"invalid": 400, "not_found": 404, "internal": 500}


def text(status: int, body: str, *, nosniff: bool = False) -> Response:
    """Plain text. kubelet: what its stdlib helper writes has nosniff, what its routes write hasn't."""
    headers = {"X-Content-Type-Options": "nosniff"} if nosniff else {}
    return Response(body.encode("utf-8", "surrogateescape"), status, headers, media_type=TEXT)


def parse_query(raw: bytes) -> dict[str, list[str]]:
    """A raw query string -> its values by key. Raises ValueError when it has more than 1,000 fields."""
    text = raw.decode("latin-1")
    return parse_qs(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="replace")


def json_bytes(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")


def owner_failed(error: OwnerUnavailable | OwnerRefused, prefix: str = "") -> Response:
    """503 when nobody answers, else the owner's refusal with its text."""
    status = 503 if isinstance(error, OwnerUnavailable) else _REFUSED[error.code]
    return text(status, f"{prefix}{error}")


def require_json(request: Request) -> None:
    """Raises 406 when the client doesn't take JSON (kubelet: on the services that produce it)."""
    if not acceptable(request.headers.get("accept", "")):
        raise HTTPException(406)


class ChunkedText(Response):
    """Text as the kubelet's log endpoint sends it: chunked and without a content type."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(body.encode("utf-8", "surrogateescape"), status)
        self.raw_headers = []


class Relay(Response):
    """Bytes from a source to the client, chunked, without a content type. The source waits for a slow client; a
    client that goes away, or the service's end, closes the source."""

    def __init__(self, source: ByteSource, stopping: asyncio.Event) -> None:
        super().__init__(None, 200)
        self.raw_headers = []
        self._source = source
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        pump = asyncio.create_task(self._pump(send))
        gone = asyncio.create_task(_disconnected(receive))
        stop = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({pump, gone, stop}, return_when=asyncio.FIRST_COMPLETED)
            self._source.close()
            if gone.done() or (await asyncio.wait({pump}, timeout=_STOP_SECONDS))[1]:
                return  # nobody is there, or somebody who doesn't read while we must end
            await pump
        finally:
            self._source.close()
            for task in (pump, gone, stop):
                task.cancel()
            await asyncio.gather(pump, gone, stop, return_exceptions=True)

    async def _pump(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while data := await self._source.read():
                await send({"type": "http.response.body", "body": data, "more_body": True})
        except ConnectionError as error:
            # kubelet: the status is out already, so the reason goes to the end of the body
            log.warning("stream broke off error=%s", error)
            reason = b"\nthe stream broke off: its podworker went away\n"
            await send({"type": "http.response.body", "body": reason, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
