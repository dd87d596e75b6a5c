"""/pods and /runningpods/"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from services.api.core.render import running_pods
from services.api.handlers.answers import json_bytes, owner_failed, require_json
from services.api.handlers.face import Face
from services.api.ports import OwnerRefused, OwnerUnavailable


def pods_router(face: Face) -> APIRouter:
    router = APIRouter(tags=["pods"])

    @router.get("/pods", summary="The pods of this node, as v1.PodList", response_class=Response)
    async def pods(request: Request) -> Response:
        require_json(request)
        return json_bytes(face.view.pod_list())

    @router.get("/runningpods", summary="What the engine runs, as v1.PodList", response_class=Response)
    async def running(request: Request) -> Response:
        require_json(request)
        try:
            return json_bytes(running_pods(await face.owners.running_pods()))
        except (OwnerUnavailable, OwnerRefused) as error:
            return owner_failed(error)

    return router
