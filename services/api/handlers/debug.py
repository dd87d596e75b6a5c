"""What tells about this process and changes how much it says: configz, flagz, statusz, debug/flags/v, checkpoint."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime

from fastapi import APIRouter, Request, Response

from services.api.core.params import read_timeout
from services.api.core.zpages import choose_form, flagz_text, statusz_document, statusz_text
from services.api.handlers.answers import parse_query, text
from services.api.handlers.face import Face
from services.api.handlers.parameters import CONTAINER_PATH, openapi_parameters
from services.api.handlers.streaming import find_pod

ANY_METHOD = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_DEBUG_VERBOSITY = 4
"""klog's levels from which on everything is said."""
_LONGEST_NUMBER = 64
_INTEGER = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)
log = logging.getLogger("podbus.api.debug")


def debug_router(face: Face) -> APIRouter:
    router = APIRouter()

    async def configz(_: Request) -> Response:
        body = json.dumps({"kubeletconfig": face.config}, separators=(",", ":")).encode()
        return Response(body, media_type="application/json", headers={"X-Content-Type-Options": "nosniff"})

    async def flagz(request: Request) -> Response:
        form = choose_form(request.headers.get("accept", ""), "Flagz")
        if form == "text":
            return text(200, flagz_text(face.flags))
        if form == "json":
            document = {"kind": "Flagz", "apiVersion": "config.k8s.io/v1beta1", "metadata": {"name": "kubelet"}}
            return Response(json.dumps({**document, "flags": dict(face.flags)}), media_type="application/json")
        return text(406, "406: Not Acceptable")

    async def statusz(request: Request) -> Response:
        form = choose_form(request.headers.get("accept", ""), "Statusz")
        now, began = face.clock.now(), face.started_at
        since = datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if form == "text":
            return text(200, statusz_text(since, int(now - began), face.version))
        if form == "json":
            document = statusz_document(since, int(now - began), face.version)
            return Response(json.dumps(document), media_type="application/json")
        return text(406, "406: Not Acceptable")

    async def flags_v(request: Request) -> Response:
        if request.method != "PUT":
            return _plain(406, "unsupported http method\n")
        given = (await request.body())[:_LONGEST_NUMBER].decode("latin-1")
        if not _INTEGER.fullmatch(given):
            why = f'strconv.ParseInt: parsing "{given}": invalid syntax'
            return _plain(400, f"failed set klog.logging.verbosity {given}: {why}\n")
        logging.getLogger("podbus").setLevel(logging.DEBUG if int(given) >= _DEBUG_VERBOSITY else logging.INFO)
        log.info("verbosity=%d", int(given))
        return _plain(200, f"successfully set klog.logging.verbosity to {int(given)}\n")

    async def checkpoint(request: Request) -> Response:
        pod = find_pod(face, request)
        if isinstance(pod, Response):
            return pod
        container = request.path_params["container"]
        if container not in pod.containers:
            return text(404, f"container {container} does not exist")
        if not read_timeout(parse_query(request.scope["query_string"])):
            return text(404, "cannot parse value of timeout parameter")
        where = f"{pod.namespace}/{pod.name}/{container}"
        return text(500, f"checkpointing of {where} failed (podbus makes no checkpoints on Docker Engine)")

    router.add_route("/configz", configz, methods=ANY_METHOD)
    router.add_route("/flagz", flagz, methods=ANY_METHOD)
    router.add_route("/statusz", statusz, methods=ANY_METHOD)
    router.add_route("/debug/flags/v", flags_v, methods=ANY_METHOD)
    router.add_api_route(
        "/checkpoint/{namespace}/{pod}/{container}",
        checkpoint,
        methods=["POST"],
        summary="Refused: no checkpoint is made on Docker Engine",
        response_class=Response,
        openapi_extra=openapi_parameters(*CONTAINER_PATH, timeout="integer"),
    )
    return router


def _plain(status: int, body: str) -> Response:
    headers = {"X-Content-Type-Options": "nosniff", "Content-Type": "text/plain"}
    return Response(body.encode(), status, headers)
