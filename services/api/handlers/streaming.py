"""exec, attach, portForward and run: guarded like the kubelet's, not served yet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Response

from services.api.handlers.answers import text

_PATHS = {
    "exec": ("{namespace}/{pod}/{container}", "{namespace}/{pod}/{uid}/{container}"),
    "attach": ("{namespace}/{pod}/{container}", "{namespace}/{pod}/{uid}/{container}"),
    "portForward": ("{namespace}/{pod}", "{namespace}/{pod}/{uid}"),
    "run": ("{namespace}/{pod}/{container}", "{namespace}/{pod}/{uid}/{container}"),
}


def streaming_router() -> APIRouter:
    router = APIRouter()
    for name, shapes in _PATHS.items():
        methods = ["POST"] if name == "run" else ["GET", "POST"]
        for shape in shapes:
            router.add_api_route(
                f"/{name}/{shape}", _not_served(name), methods=methods, include_in_schema=False, name=name
            )
    return router


def _not_served(name: str) -> Callable[[], Awaitable[Response]]:
    async def refuse() -> Response:
        return text(501, f"{name} is not served by this version of podbus\n", nosniff=True)

    return refuse
