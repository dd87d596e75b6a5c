"""/metrics and /metrics/probes, made here; the pages of pods and the answers of cAdvisor, as stats wrote them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response

from services.api.core.metrics_text import CONTENT_TYPE, page
from services.api.core.metrics_view import own_page, probes_page
from services.api.core.params import takes_gzip
from services.api.handlers.answers import json_bytes, owner_failed, parse_query, text
from services.api.handlers.face import Face
from services.api.ports import OwnerRefused, OwnerUnavailable
from shared.contracts.metrics import Family
from shared.contracts.stats import PageQuery

_LEVEL = 1
"""Of gzip: a page is packed for one scrape."""
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

    def of_podbus(request: Request, chosen: Callable[[list[Family]], list[Family]]) -> Response:
        families = face.others.families(face.metrics.families(), face.clock.now())
        body, headers = page(chosen(families)), {"Content-Type": CONTENT_TYPE}
        if takes_gzip(_accepts(request)):
            body, headers["Content-Encoding"] = gzip.compress(body, _LEVEL, mtime=0), "gzip"
        return Response(b"" if request.method == "HEAD" else body, 200, headers)

    async def own(request: Request) -> Response:
        return of_podbus(request, own_page)

    async def probes(request: Request) -> Response:
        return of_podbus(request, probes_page)

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
        ("/metrics", own, "What the node's processes count and measure of themselves"),
        ("/metrics/probes", probes, "Results of probes"),
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
