"""What one probe asks of its container: the definition with ports and addresses found, ready to be carried out."""

from __future__ import annotations

import msgspec

from services.podworker.core.expansion import expand_all
from shared.kube.pod import Container, HTTPGetAction, HTTPHeader, Probe
from shared.kube.version import KUBERNETES_VERSION

USER_AGENT = "kube-probe/" + ".".join(KUBERNETES_VERSION.removeprefix("v").split(".")[:2])
MAX_PORT = 65535


class ExecCheck(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    command: tuple[str, ...]


class HttpCheck(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    url: str
    headers: tuple[tuple[str, str], ...]


class TcpCheck(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    host: str
    port: int


class GrpcCheck(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    host: str
    port: int
    service: str


class NoCheck(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """It can't be asked: its result is an error, which is told and counts for nothing."""

    error: str


Check = ExecCheck | HttpCheck | TcpCheck | GrpcCheck | NoCheck


def check_of(probe: Probe, container: Container, address: str) -> Check:
    """`address` is the pod's, or the node's on the host network; "" = not known."""
    try:
        return _check(probe, container, address)
    except ValueError as error:
        return NoCheck(error=str(error))


def _check(probe: Probe, container: Container, address: str) -> Check:
    if probe.exec is not None:
        literal = {entry.name: entry.value for entry in container.env if entry.value_from is None}
        return ExecCheck(command=expand_all(probe.exec.command, literal))
    if probe.http_get is not None:
        url = http_url(probe.http_get, container, address)
        return HttpCheck(url=url, headers=http_headers(probe.http_get.http_headers))
    if probe.tcp_socket is not None:
        host, port = probe.tcp_socket.host or _known(address), container_port(probe.tcp_socket.port, container)
        return TcpCheck(host=host, port=port)
    if probe.grpc is not None:
        return GrpcCheck(host=_known(address), port=probe.grpc.port, service=probe.grpc.service)
    raise ValueError("missing probe handler")


def _known(address: str) -> str:
    if not address:
        raise ValueError("the pod has no address yet")
    return address


def http_url(action: HTTPGetAction, container: Container, address: str) -> str:
    """Raises ValueError: no such port, or no address. A path may hold a query."""
    port = container_port(action.port, container)
    path = action.path if action.path.startswith(("/", "?")) else f"/{action.path}"
    return f"{action.scheme.lower() or 'http'}://{host_port(action.host or _known(address), port)}{path}"


def host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def container_port(port: int | str, container: Container) -> int:
    """A number, a name of this container's ports, or a number as text. Raises ValueError in the kubelet's words."""
    if isinstance(port, str):
        named = next((p.container_port for p in container.ports if p.name == port), None)
        if named is None and not port.isdecimal():
            raise ValueError(f'strconv.Atoi: parsing "{port}": invalid syntax')
        port = int(port) if named is None else named
    if not 0 < port <= MAX_PORT:
        raise ValueError(f"invalid port number: {port}")
    return port


def http_headers(given: list[HTTPHeader]) -> tuple[tuple[str, str], ...]:
    """The given ones and those that every probe sends; an empty Accept or User-Agent takes that header away."""
    headers = [(header.name, header.value) for header in given]
    for name, value in (("User-Agent", USER_AGENT), ("Accept", "*/*")):
        values = [v for n, v in headers if n.lower() == name.lower()]
        if not values:
            headers.append((name, value))
        elif not values[0]:
            headers = [(n, v) for n, v in headers if n.lower() != name.lower()]
    return tuple(headers)
