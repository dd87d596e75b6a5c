"""/metrics/cadvisor, /metrics/resource and cAdvisor's REST answers: as stats wrote them."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response

from services.api.core.metrics_text import CONTENT_TYPE
from services.api.core.params import takes_gzip
from services.api.handlers.answers import json_bytes, owner_failed, parse_query, text
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

    @router.get(
        "/podbus/cadvisor/api/{path:path}",
        tags=["podbus"],
        summary="cAdvisor's REST API: v1.3 and v2.1, the machine and the containers",
        response_class=Response,
    )
    async def rest(request: Request, path: str) -> Response:
        return await _rest(face, path, request.scope["query_string"], {})

    @router.post("/podbus/cadvisor/api/{path:path}", include_in_schema=False)
    async def rest_with_body(request: Request, path: str) -> Response:
        body = await request.body()
        try:
            fields = msgspec.json.decode(body, type=dict[str, Any]) if body else {}
        except msgspec.MsgspecError as error:
            return text(400, f"{error}\n")
        options = {key: str(value) for key, value in fields.items()}
        return await _rest(face, path, request.scope["query_string"], options)

    for path, endpoint, summary in (
        ("/metrics/cadvisor", cadvisor, "Usage of pods and containers for Prometheus"),
        ("/metrics/resource", resource, "CPU and memory for metrics-server"),
    ):
        router.add_api_route(
            path, endpoint, methods=["GET"], summary=summary, response_class=Response, name=f"metrics {path}"
        )
        router.add_api_route(path, endpoint, methods=_METHODS[1:], include_in_schema=False)
    return router


async def _rest(face: Face, path: str, raw_query: bytes, options: dict[str, str]) -> Response:
    try:
        told = {key: values[0] for key, values in parse_query(raw_query).items()}
        status, body = await face.owners.page(PageQuery(page="rest", path=path, options=told | options))
    except ValueError:
        return text(400, "too many parameters\n")
    except (OwnerUnavailable, OwnerRefused) as error:
        return owner_failed(error)
    return json_bytes(body) if status == 200 else text(status, body.decode())


def _accepts(request: Request) -> str:
    return request.headers.get("accept-encoding", "")
