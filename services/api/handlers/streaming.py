"""exec, attach and portForward: everything that can be refused is refused as plain HTTP, then the connection is
handed over to a relay."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response
from msgspec.structs import replace

from services.api.core import upgrades
from services.api.core.log_target import running_container
from services.api.core.node_view import PodView
from services.api.core.params import Refusal
from services.api.core.remote_command import exec_options, forward_ports
from services.api.core.upgrades import NoUpgrade, Upgrade
from services.api.handlers.answers import owner_failed, parse_query, text
from services.api.handlers.face import Face
from services.api.handlers.parameters import CONTAINER_PATH, POD_PATH, openapi_parameters
from services.api.ports import TAKE_OVER, OwnerRefused, OwnerUnavailable, Receive, Scope, Send, Successor, TakeOver
from shared.contracts.streams import ExecOptions, StreamCommand

if TYPE_CHECKING:
    from services.api.relays.forward import PodPort

COMMAND_PATHS = ("{namespace}/{pod}/{container}", "{namespace}/{pod}/{uid}/{container}")
_FORWARD_PATHS = ("{namespace}/{pod}", "{namespace}/{pod}/{uid}")

_FLAGS = {"input": "string", "output": "string", "error": "string", "tty": "string"}
_PARAMETERS = {
    "exec": openapi_parameters(*CONTAINER_PATH, command=["string"], **_FLAGS),
    "attach": openapi_parameters(*CONTAINER_PATH, **_FLAGS),
    "portForward": openapi_parameters(*POD_PATH, port=["string"]),
}
_SUMMARIES = {
    "exec": "Run a command in a container; SPDY/3.1 or WebSocket",
    "attach": "A container's own streams; SPDY/3.1 or WebSocket",
    "portForward": "Connections to a pod's ports; SPDY/3.1 or WebSocket",
}

Endpoint = Callable[[Request], Awaitable[Response]]


def streaming_router(face: Face) -> APIRouter:
    router = APIRouter()
    served = (
        ("exec", COMMAND_PATHS, ["GET", "POST"], _exec(face)),
        ("attach", COMMAND_PATHS, ["GET", "POST"], _attach(face)),
        ("portForward", _FORWARD_PATHS, ["GET", "POST"], _port_forward(face)),
    )
    for name, shapes, methods, endpoint in served:
        for shape in shapes:
            for method in methods:
                router.add_api_route(
                    f"/{name}/{shape}",
                    endpoint,
                    methods=[method],
                    name=name,
                    operation_id=f"{method.lower()} {name}",
                    summary=_SUMMARIES[name],
                    response_class=Response,
                    openapi_extra=_PARAMETERS[name],
                    include_in_schema=shape is shapes[0],
                )
    return router


class _HandOver(Response):
    """The 101 is sent by the hand-over itself; what is sent here is only heard by the audit log."""

    def __init__(
        self, take_over: TakeOver, head: bytes, successor: Successor, begin: Callable[[], None], idle_seconds: float
    ) -> None:
        super().__init__(None, 101)
        successor.idle_seconds = idle_seconds
        self._take_over = take_over
        self._head = head
        self._successor = successor
        self._begin = begin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._take_over(self._head, self._successor)
        self._begin()
        await send({"type": "http.response.start", "status": 101, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def _exec(face: Face) -> Endpoint:
    async def run_command(request: Request) -> Response:
        options = exec_options(_query(request))
        if isinstance(options, Refusal):
            return text(options.status, options.text)
        found = find_pod(face, request)
        if isinstance(found, Response):
            return found
        container = request.path_params["container"]
        container_id = running_container(found.status, container)
        if container_id is None:
            return text(500, f'container not found ("{container}")')
        if not options.command:
            options = replace(options, command=[""])  # kubelet: the engine says that there is no such program
        return await _remote_command(face, request, found, "exec", container_id, options)

    return run_command


def _attach(face: Face) -> Endpoint:
    async def attach(request: Request) -> Response:
        options = exec_options(_query(request))
        if isinstance(options, Refusal):
            return text(options.status, options.text)
        found = find_pod(face, request)
        if isinstance(found, Response):
            return found
        container = request.path_params["container"]
        container_id = running_container(found.status, container)
        if container_id is None:
            return text(500, f"container {container} not found in pod {found.name}_{found.namespace}")
        # kubelet: whether there is a terminal is the container's matter, not the query's
        tty = container in found.terminals
        options = ExecOptions(
            stdin=options.stdin and container in found.with_stdin,
            stdout=options.stdout,
            stderr=options.stderr and not tty,
            tty=tty,
        )
        return await _remote_command(face, request, found, "attach", container_id, options)

    return attach


async def _remote_command(
    face: Face, request: Request, pod: PodView, kind: str, container_id: str, options: ExecOptions
) -> Response:
    agreed = _agreed(request, upgrades.REMOTE_COMMAND, upgrades.WEBSOCKET_REMOTE_COMMAND)
    if isinstance(agreed, Response):
        return agreed
    command = StreamCommand(
        kind="exec" if kind == "exec" else "attach", uid=pod.uid, container_id=container_id, exec=options
    )
    try:
        # before the 101, so that a podworker that isn't there is an HTTP error
        open_worker = await face.owners.prepare(command)
    except (OwnerUnavailable, OwnerRefused) as error:
        return owner_failed(error)
    if agreed.kind == "websocket":
        from services.api.relays.websocket_command import WebSocketCommand

        socket = WebSocketCommand(options, agreed.protocol, open_worker)
        return _HandOver(_take_over(request), agreed.head, socket, socket.begin, face.idle_seconds)
    from services.api.relays.spdy_command import SpdyCommand

    return _HandOver(
        _take_over(request),
        agreed.head,
        SpdyCommand(options, agreed.protocol, open_worker),
        lambda: None,
        face.idle_seconds,
    )


def _port_forward(face: Face) -> Endpoint:
    async def forward(request: Request) -> Response:
        ports: tuple[int, ...] | Refusal = ()
        if upgrades.is_websocket(request.scope["headers"]):
            ports = forward_ports(_query(request))
        if isinstance(ports, Refusal):
            return text(ports.status, ports.text)
        pod = find_pod(face, request)
        if isinstance(pod, Response):
            return pod
        agreed = _agreed(request, upgrades.PORT_FORWARD, upgrades.WEBSOCKET_PORT_FORWARD)
        if isinstance(agreed, Response):
            return agreed

        async def open_port(port: int, factory: Callable[[], PodPort]) -> tuple[asyncio.Transport, PodPort]:
            command = StreamCommand(kind="portForward", uid=pod.uid, container_id="", port=port)
            return await (await face.owners.prepare(command))(factory)

        if agreed.kind == "websocket":
            from services.api.relays.websocket_forward import WebSocketForward

            socket = WebSocketForward(pod.name, pod.uid, ports, agreed.protocol, open_port)
            return _HandOver(_take_over(request), agreed.head, socket, socket.begin, face.idle_seconds)
        from services.api.relays.spdy_forward import SpdyForward

        return _HandOver(
            _take_over(request), agreed.head, SpdyForward(pod.name, pod.uid, open_port), lambda: None, face.idle_seconds
        )

    return forward


def _query(request: Request) -> dict[str, list[str]]:
    try:
        return parse_query(request.scope["query_string"])
    except ValueError:
        return {}


def find_pod(face: Face, request: Request) -> PodView | Response:
    """The pod of the path, or why there is none."""
    place = request.path_params
    found = face.view.find_pod(place["namespace"], place["pod"])
    if found is None:
        return text(404, "pod does not exist")
    if place.get("uid", found.uid) != found.uid:
        return text(404, "pod not found")
    return found


def _agreed(request: Request, spdy: tuple[str, ...], websocket: tuple[str, ...]) -> Upgrade | Response:
    agreed = upgrades.agree(request.method, request.scope["headers"], spdy, websocket)
    if isinstance(agreed, NoUpgrade):
        answer = text(agreed.status, agreed.text, nosniff=agreed.nosniff)
        for name, value in agreed.headers:
            answer.headers.append(name, value)
        return answer
    return agreed


def _take_over(request: Request) -> TakeOver:
    take_over: TakeOver = request.scope["extensions"][TAKE_OVER]
    return take_over
