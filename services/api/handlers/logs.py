"""/containerLogs: which container, then its bytes from podworker's socket."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from services.api.core.log_target import NoLog, log_target
from services.api.core.params import UNDECODABLE, Refusal, log_options
from services.api.handlers.answers import ChunkedText, Relay, owner_failed, parse_query, text
from services.api.handlers.face import Face
from services.api.handlers.parameters import CONTAINER_PATH, openapi_parameters
from services.api.ports import OwnerRefused, OwnerUnavailable
from shared.contracts.streams import StreamCommand

_PARAMETERS = openapi_parameters(
    *CONTAINER_PATH,
    follow="boolean",
    previous="boolean",
    timestamps="boolean",
    tailLines="integer",
    limitBytes="integer",
    sinceSeconds="integer",
    sinceTime="string",
)


def logs_router(face: Face) -> APIRouter:
    router = APIRouter(tags=["logs"])

    @router.get(
        "/containerLogs/{namespace}/{pod}/{container}",
        summary="A container's log",
        response_class=Response,
        openapi_extra=_PARAMETERS,
    )
    async def container_logs(request: Request) -> Response:
        namespace, pod, container = (request.path_params[name] for name in ("namespace", "pod", "container"))
        try:
            options = log_options(parse_query(request.scope["query_string"]), face.clock.now())
        except ValueError:
            options = UNDECODABLE
        if isinstance(options, Refusal):
            return text(options.status, options.text)
        found = face.view.find_pod(namespace, pod)
        if found is None:
            return text(404, f'pod "{pod}" does not exist')
        if container not in found.containers:
            return text(404, f'container "{container}" not found in pod "{pod}"')
        target = log_target(found.status, pod, container, previous=options.previous)
        if isinstance(target, NoLog):
            return ChunkedText(400, target.text)
        command = StreamCommand(kind="logs", uid=found.uid, container_id=target, logs=options)
        try:
            source = await face.owners.open_logs(command)
        except OwnerRefused as error:
            # kubelet: whatever stops a log before its first byte is a 400 with the runtime's text
            return owner_failed(error) if error.code == "internal" else ChunkedText(400, error.message)
        except OwnerUnavailable as error:
            return owner_failed(error)
        return Relay(source, face.stopping)

    return router
