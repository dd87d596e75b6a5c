"""/stats/summary; /stats and /stats/ answer the same, where the kubelet has nothing useful there."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter, Request, Response

from services.api.core.params import form_problem, only_cpu_and_memory
from services.api.core.render import as_go_writes
from services.api.handlers.answers import json_bytes, owner_failed, parse_query, require_json, text
from services.api.handlers.face import Face
from services.api.handlers.forms import has_form, read_form
from services.api.ports import OwnerRefused, OwnerUnavailable

_LARGEST_FORM = 64 << 10


def stats_router(face: Face) -> APIRouter:
    router = APIRouter(tags=["stats"])

    async def summary(request: Request) -> Response:
        require_json(request)
        queries: list[bytes] = [request.scope["query_string"]]
        if has_form(request):
            queries.insert(0, await read_form(request, _LARGEST_FORM))
        raw = b"&".join(filter(None, queries))
        if problem := form_problem(raw.decode("latin-1")):
            return text(500, f"Internal Error: parse form failed: {problem}")
        try:
            only = only_cpu_and_memory(parse_query(raw))
        except ValueError as error:
            return text(500, f"Internal Error: parse form failed: {error}")
        try:
            compact = await face.owners.summary(only_cpu_and_memory=only)
            return json_bytes(as_go_writes(msgspec.json.format(compact, indent=1)))
        except (OwnerUnavailable, OwnerRefused) as error:
            return owner_failed(error, "Internal Error: ")

    for path in ("/stats/summary", "/stats"):
        for method in ("GET", "POST"):
            router.add_api_route(
                path,
                summary,
                methods=[method],
                summary="Usage of node, pods and containers",
                response_class=Response,
                name=f"summary {method} {path}",
            )
    return router
