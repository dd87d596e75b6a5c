"""All endpoints together, behind the front."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI, Request, Response

from services.api.core.routing import READ_ONLY
from services.api.handlers.answers import text
from services.api.handlers.debug import debug_router
from services.api.handlers.face import Face
from services.api.handlers.front import Front
from services.api.handlers.health import health_router
from services.api.handlers.logs import logs_router
from services.api.handlers.metrics import metrics_router
from services.api.handlers.podbus import podbus_router
from services.api.handlers.pods import pods_router
from services.api.handlers.run import run_router
from services.api.handlers.stats import stats_router
from services.api.handlers.streaming import streaming_router
from services.api.handlers.system_logs import system_logs_router
from services.api.handlers.traffic import Traffic
from services.api.ports import AsgiApp, Gate

_ROUTER_ERRORS = (404, 405, 406, 408, 413)


def web_app(face: Face, gate: Gate) -> tuple[AsgiApp, AsgiApp]:
    """The ASGI applications of the HTTPS listener and of the read-only port. No documentation pages; the document is
    /podbus/openapi.json."""
    app = FastAPI(
        title="podbus",
        version=face.version,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers=dict.fromkeys(_ROUTER_ERRORS, _router_error),
    )
    for router in (
        pods_router(face),
        logs_router(face),
        stats_router(face),
        metrics_router(face),
        health_router(face),
        streaming_router(face),
        run_router(face),
        debug_router(face),
        system_logs_router(face.log_root),
        podbus_router(face),
    ):
        app.include_router(router)

    def is_stale() -> bool:
        return not face.owners.connected

    traffic = Traffic(face.metrics)
    return Front(app, gate, is_stale, traffic, face.surface), Front(app, None, is_stale, traffic, READ_ONLY)


async def _router_error(request: Request, error: Exception) -> Response:
    """The inner router's own errors. kubelet (go-restful): `404: Page Not Found`, no newline, no nosniff."""
    status: int = getattr(error, "status_code", 500)
    answer = text(status, f"{status}: {'Page Not Found' if status == 404 else HTTPStatus(status).phrase}")
    answer.headers.update(getattr(error, "headers", None) or {})
    return answer
