"""A container's preStop hook as its label holds it: enough to run it when the pod's definition is gone."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from shared.kube.pod import ContainerPort, Handler, HTTPGetAction

_handlers = msgspec.json.Decoder(Handler)
_ports = msgspec.json.Decoder(list[ContainerPort])


def handler_label(handler: Handler) -> str:
    """JSON as the kubelet writes it: the defaults of httpGet are there."""
    body: dict[str, Any] = msgspec.to_builtins(handler)
    if handler.http_get is not None:
        body["httpGet"] = {"path": handler.http_get.path, "scheme": handler.http_get.scheme, **body["httpGet"]}
    return msgspec.json.encode(body, order="sorted").decode()


def handler_from_labels(handler: str, ports: str) -> Handler | None:
    """The hook with its port as a number, or None: no label, or one that nobody can read."""
    if not handler:
        return None
    try:
        return with_port_number(_handlers.decode(handler), _ports.decode(ports) if ports else [])
    except msgspec.DecodeError:
        return None


def with_port_number(handler: Handler, ports: list[ContainerPort]) -> Handler:
    """A port given by name is looked up in the container's; one that isn't there stays as it is."""
    action = handler.http_get
    if action is None or isinstance(action.port, int):
        return handler
    return replace(handler, http_get=replace(action, port=_port_number(action, ports)))


def _port_number(action: HTTPGetAction, ports: list[ContainerPort]) -> int | str:
    """kubelet: a name that is a number counts as one."""
    named = next((port.container_port for port in ports if port.name == action.port), None)
    if named is not None:
        return named
    text = str(action.port)
    return int(text) if text.isdigit() else text
