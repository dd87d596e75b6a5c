"""/metrics/cadvisor and /metrics/resource: as stats wrote them."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from services.api.core.metrics_text import CONTENT_TYPE
from services.api.core.params import takes_gzip
from services.api.handlers.answers import owner_failed
from services.api.handlers.face import Face
from services.api.ports import OwnerRefused, OwnerUnavailable
from shared.contracts.stats import PageQuery

_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
"""kubelet: these handlers don't look at the method."""


def metrics_router(face: Face) -> APIRouter:
    router = APIRouter(tags=["metrics"])

    async def told(request: Request, query: PageQuery) -> Response:
        headers = {"Content-Type": CONTENT_TYPE}
        if query.gzip:
            headers["Content-Encoding"] = "gzip"
        try:
            status, body = await face.owners.page(query)
        except (OwnerUnavailable, OwnerRefused) as error:
            return owner_failed(error)
        return Response(b"" if request.method == "HEAD" else body, status, headers)

    async def cadvisor(request: Request) -> Response:
        return await told(request, PageQuery(page="cadvisor", gzip=takes_gzip(_accepts(request))))

    async def resource(request: Request) -> Response:
        return await told(request, PageQuery(page="resource", gzip=takes_gzip(_accepts(request))))

    for path, endpoint, summary in (
        ("/metrics/cadvisor", cadvisor, "Usage of pods and containers for Prometheus"),
        ("/metrics/resource", resource, "CPU and memory for metrics-server"),
    ):
        router.add_api_route(
            path, endpoint, methods=["GET"], summary=summary, response_class=Response, name=f"metrics {path}"
        )
        router.add_api_route(path, endpoint, methods=_METHODS[1:], include_in_schema=False)
    return router


def _accepts(request: Request) -> str:
    return request.headers.get("accept-encoding", "")
