"""All endpoints together, behind the front."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from services.api.handlers.answers import text
from services.api.handlers.face import Face
from services.api.handlers.front import Front
from services.api.handlers.health import health_router
from services.api.handlers.logs import logs_router
from services.api.handlers.podbus import podbus_router
from services.api.handlers.pods import pods_router
from services.api.handlers.stats import stats_router
from services.api.handlers.streaming import streaming_router
from services.api.ports import TokenReviewer


def web_app(face: Face, tokens: TokenReviewer) -> ASGIApp:
    """The ASGI application of the HTTPS listener. No documentation pages; the document is /podbus/openapi.json."""
    app = FastAPI(
        title="podbus",
        version=face.version,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers={HTTPException: _router_error},
    )
    for router in (
        pods_router(face),
        logs_router(face),
        stats_router(face),
        health_router(face),
        streaming_router(),
        podbus_router(face),
    ):
        app.include_router(router)
    return Front(app, tokens, lambda: not face.owners.connected)


async def _router_error(request: Request, error: Exception) -> Response:
    """The inner router's own errors. kubelet (go-restful): `404: Page Not Found`, no newline, no nosniff."""
    assert isinstance(error, HTTPException)
    phrase = "Page Not Found" if error.status_code == 404 else HTTPStatus(error.status_code).phrase
    answer = text(error.status_code, f"{error.status_code}: {phrase}")
    if error.headers:
        answer.headers.update(error.headers)
    return answer
