"""/run: a command without a terminal or a stream, answered when it has ended. kubectl never uses it."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response

from services.api.core.log_target import running_container
from services.api.handlers.answers import owner_failed, parse_query, text
from services.api.handlers.face import Face
from services.api.handlers.forms import has_form, read_form
from services.api.handlers.parameters import CONTAINER_PATH, openapi_parameters
from services.api.handlers.streaming import COMMAND_PATHS, find_pod
from services.api.ports import OwnerRefused, OwnerUnavailable
from shared.contracts.streams import ExecOptions, StreamCommand

_LARGEST_FORM = 1 << 20


def run_router(face: Face) -> APIRouter:
    router = APIRouter()

    async def run(request: Request) -> Response:
        pod = find_pod(face, request)
        if isinstance(pod, Response):
            return pod
        container = request.path_params["container"]
        container_id = running_container(pod.status, container)
        if container_id is None:
            return text(500, f'container not found ("{container}")')
        line = await _line(request)
        options = ExecOptions(command=line.split(" "), stdout=True, stderr=True)
        command = StreamCommand(kind="exec", uid=pod.uid, container_id=container_id, exec=options)
        from services.api.relays.collected import CollectedCommand

        try:
            status, output = await CollectedCommand().run(await face.owners.prepare(command))
        except (OwnerUnavailable, OwnerRefused) as error:
            return owner_failed(error)
        if status.outcome == "failed":
            return text(500, status.message)
        if status.exit_code:
            return text(500, f"command '{line}' exited with {status.exit_code}")
        # kubelet: said to be JSON, though it's what the command wrote
        return Response(output, media_type="application/json")

    for shape in COMMAND_PATHS:
        router.add_api_route(
            f"/run/{shape}",
            run,
            methods=["POST"],
            summary="Run a command in a container; its output when it has ended",
            response_class=Response,
            openapi_extra=openapi_parameters(*CONTAINER_PATH, cmd="string"),
            include_in_schema=shape is COMMAND_PATHS[0],
        )
    return router


async def _line(request: Request) -> str:
    """`cmd` of the query or of a posted form; split on single spaces, no shell (kubelet). Raises 413 or 408."""
    try:
        query = parse_query(request.scope["query_string"])
    except ValueError:
        query = {}
    if "cmd" not in query and has_form(request):
        query = parse_qs((await read_form(request, _LARGEST_FORM)).decode("latin-1"), keep_blank_values=True)
    return query.get("cmd", [""])[0]
