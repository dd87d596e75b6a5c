"""/healthz with its checks, and the small listener on loopback that has it without credentials."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from services.api.core.health_text import Check, HealthAnswer, healthz, single
from services.api.handlers.answers import parse_query, text
from services.api.handlers.face import Face
from services.api.ports import Receive, Scope, Send

_ANY_METHOD = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_PING = Check("ping")
_LOG = Check("log")
"""kubelet: that its log was flushed. Ours isn't buffered."""


def health_router(face: Face) -> APIRouter:
    router = APIRouter(tags=["health"])

    def syncloop() -> Check:
        return Check("syncloop", face.no_worker())

    async def all_checks(request: Request) -> Response:
        return _answer(_healthz([_PING, _LOG, syncloop()], request.scope["query_string"]))

    async def one_check(request: Request) -> Response:
        name = request.scope["path"].rpartition("/")[2]
        return _answer(single(syncloop() if name == "syncloop" else Check(name)))

    # plain routes: the kubelet ignores the method here
    router.add_route("/healthz", all_checks, methods=_ANY_METHOD)
    for name in ("ping", "log", "syncloop"):
        router.add_route(f"/healthz/{name}", one_check, methods=_ANY_METHOD)
    return router


async def local_health(scope: Scope, receive: Receive, send: Send) -> None:
    """ASGI of 127.0.0.1:10248. kubelet: only that the process answers, no other check."""
    if scope["type"] != "http":
        return
    if scope["path"] == "/healthz":
        answer = _answer(_healthz([_PING], scope["query_string"]))
    elif scope["path"] == "/healthz/ping":
        answer = _answer(single(_PING))
    else:
        answer = text(404, "404 page not found\n", nosniff=True)
    await answer(scope, receive, send)


def _healthz(checks: list[Check], raw_query: bytes) -> HealthAnswer:
    try:
        query = parse_query(raw_query)
    except ValueError:
        query = {}
    return healthz(checks, verbose="verbose" in query, excluded=query.get("exclude", ()))


def _answer(answer: HealthAnswer) -> Response:
    return text(answer.status, answer.body, nosniff=answer.nosniff)
