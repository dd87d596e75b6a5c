"""/podbus: what Kubernetes has no place for. Sources with their errors, events, the node, an overview."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response

from services.api.handlers.answers import json_bytes, owner_failed, parse_query, require_json, text
from services.api.handlers.face import Face
from services.api.ports import OwnerRefused, OwnerUnavailable
from shared.contracts.events import EventQuery

_MOST_EVENTS = 5000


def podbus_router(face: Face) -> APIRouter:
    router = APIRouter(prefix="/podbus", tags=["podbus"])

    @router.get("", summary="Who is alive, and what is known", response_class=Response)
    async def overview(request: Request) -> Response:
        require_json(request)
        return json_bytes(msgspec.json.encode(_overview(face)))

    @router.get("/sources", summary="Where pods come from, with errors", response_class=Response)
    async def sources(request: Request) -> Response:
        """`alive`: source answered just now. Without it the last markers are shown."""
        require_json(request)
        reason = ""
        try:
            markers, alive = (await face.owners.sources()).sources, True
        except (OwnerUnavailable, OwnerRefused) as error:
            markers, alive, reason = face.view.markers(), False, str(error)
        answer: dict[str, Any] = {"alive": alive, "sources": markers}
        if reason:
            answer["reason"] = reason
        return json_bytes(msgspec.json.encode(answer))

    @router.get(
        "/events",
        summary="The event history, newest last",
        response_class=Response,
        openapi_extra={
            "parameters": [
                {"in": "query", "name": name, "schema": {"type": kind}}
                for name, kind in (
                    ("namespace", "string"),
                    ("name", "string"),
                    ("uid", "string"),
                    ("limit", "integer"),
                )
            ]
        },
    )
    async def events(request: Request) -> Response:
        require_json(request)
        query = _event_query(request.scope["query_string"])
        if isinstance(query, str):
            return text(400, query)
        try:
            return json_bytes(msgspec.json.encode(await face.owners.events(query)))
        except (OwnerUnavailable, OwnerRefused) as error:
            return owner_failed(error)

    @router.get("/node", summary="The v1.Node", response_class=Response)
    async def node(request: Request) -> Response:
        require_json(request)
        body = face.view.node()
        if body is None:
            return text(503, "the status service has not published the node yet\n")
        return json_bytes(body)

    @router.get("/openapi.json", include_in_schema=False)
    async def openapi(request: Request) -> Response:
        return json_bytes(msgspec.json.encode(request.app.openapi()))

    return router


def _overview(face: Face) -> dict[str, Any]:
    runtime = face.view.runtime()
    wanted, ending = face.view.count()
    return {
        "node": face.node,
        "version": face.version,
        "busConnected": face.owners.connected,
        "workers": face.view.live_workers(face.clock.now()),
        "noWorker": face.no_worker(),
        "troubles": face.troubles(),
        "runtime": None
        if runtime is None
        else {
            "healthy": runtime.healthy,
            "message": runtime.message,
            "engineVersion": runtime.engine_version,
            "relistedAt": runtime.relisted_at,
            "foreignSandboxes": runtime.foreign_sandboxes,
        },
        "pods": {"wanted": wanted, "ending": ending},
        "unreadable": face.view.problems,
    }


def _event_query(raw: bytes) -> EventQuery | str:
    """The query, or why it is wrong."""
    try:
        query = parse_query(raw)
    except ValueError:
        return "too many parameters\n"
    limit = query.get("limit", ["500"])[0]
    if not limit.isascii() or not limit.isdigit() or len(limit) > 9 or int(limit) < 1:
        return f'limit: "{limit[:40]}" is not a whole number from 1 to {_MOST_EVENTS}\n'
    return EventQuery(
        namespace=query.get("namespace", [""])[0],
        name=query.get("name", [""])[0],
        uid=query.get("uid", [""])[0],
        limit=min(int(limit), _MOST_EVENTS),
    )
