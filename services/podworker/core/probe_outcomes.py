"""What a check brought -> success, warning, failure or error, in the kubelet's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from services.podworker.core.probe_checks import Check, ExecCheck, GrpcCheck, HttpCheck, NoCheck, TcpCheck, host_port

SERVING = "SERVING"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    kind: Literal["success", "warning", "failure", "error"]
    """A warning counts as success, an error for nothing."""
    text: str = ""


SUCCESS = Result(kind="success")


def exec_result(command: Sequence[str], exit_code: int | None, output: bytes, seconds: int) -> Result:
    """`exit_code` None = it didn't end within `seconds`."""
    if exit_code is None:
        text = f'command timed out: "{" ".join(command)}" timed out after {seconds}s'
        return Result(kind="failure", text=text)
    return SUCCESS if exit_code == 0 else Result(kind="failure", text=output.decode(errors="replace"))


def http_result(status: int, body: bytes) -> Result:
    if 200 <= status < 300:
        return SUCCESS
    if 300 <= status < 400:
        text = f"Probe terminated redirects, Response body: {body.decode(errors='replace')}"
        return Result(kind="warning", text=text)
    # the body isn't told: it may hold what must not be in an event
    return Result(kind="failure", text=f"HTTP probe failed with statuscode: {status}")


def grpc_result(status: str) -> Result:
    return SUCCESS if status == SERVING else failure(f'service unhealthy (responded with "{status}")')


def unreachable(check: Check, error: str) -> Result:
    """`error`: why no answer came."""
    return failure(f'Get "{check.url}": {error}') if isinstance(check, HttpCheck) else failure(error)


def too_late(check: Check, seconds: int) -> Result:
    """Nothing came within the probe's timeout."""
    match check:
        case HttpCheck():
            late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            return unreachable(check, late)
        case TcpCheck():
            return failure(f"dial tcp {host_port(check.host, check.port)}: i/o timeout")
        case GrpcCheck():
            return failure(f"timeout: health rpc did not complete within {seconds}s")
        case ExecCheck():
            return exec_result(check.command, None, b"", seconds)
        case NoCheck():
            return error(check.error)


def failure(text: str) -> Result:
    return Result(kind="failure", text=text)


def error(text: str) -> Result:
    return Result(kind="error", text=text)
