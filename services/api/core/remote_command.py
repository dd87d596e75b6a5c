"""exec and attach: what the query asks for, and how the end is told in each version of the protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from services.api.core.params import Refusal
from shared.contracts.streams import ExecOptions, StreamStatus

Query = Mapping[str, Sequence[str]]

NOTHING_WANTED = Refusal(400, "you must specify at least 1 of stdin, stdout, stderr")


def exec_options(query: Query) -> ExecOptions | Refusal:
    """kubelet: a flag counts only when it's exactly "1"; a terminal has no stderr of its own."""
    stdin, stdout, stderr, tty = (query.get(key, [""])[0] == "1" for key in ("input", "output", "error", "tty"))
    if not (stdin or stdout or stderr):
        return NOTHING_WANTED
    return ExecOptions(
        command=list(query.get("command", ())), stdin=stdin, stdout=stdout, stderr=stderr and not tty, tty=tty
    )


def expected_streams(options: ExecOptions, protocol: str) -> frozenset[str]:
    """What a SPDY client opens before the command starts."""
    wanted = {"error"}
    wanted |= {name for name, is_on in _named(options) if is_on}
    if options.tty and protocol in ("v4.channel.k8s.io", "v3.channel.k8s.io"):
        wanted.add("resize")
    return frozenset(wanted)


def _named(options: ExecOptions) -> tuple[tuple[str, bool], ...]:
    return ("stdin", options.stdin), ("stdout", options.stdout), ("stderr", options.stderr)


def end_text(status: StreamStatus, *, is_v4: bool, what: str) -> bytes:
    """The error channel's content. `what`: executing command in container | attaching to container."""
    if status.outcome == "ended" and status.exit_code == 0:
        return b'{"status":"Success"}' if is_v4 else b""
    answer: dict[str, object]
    if status.outcome == "ended":
        message = f"command terminated with non-zero exit code: exit status {status.exit_code}"
        causes = [{"reason": "ExitCode", "message": str(status.exit_code)}]
        answer = {"message": message, "reason": "NonZeroExitCode", "details": {"causes": causes}}
    else:
        message = f"Internal error occurred: error {what}: {status.message}"
        causes = [{"message": f"error {what}: {status.message}"}]
        answer = {"message": message, "reason": "InternalError", "details": {"causes": causes}, "code": 500}
    if not is_v4:
        return message.encode()
    return json.dumps({"status": "Failure", **answer}, separators=(",", ":")).encode()


def read_size(text: bytes) -> tuple[int, int] | None:
    """A terminal's size as clients send it, keys in any case; None = it can't be read, and is ignored."""
    try:
        given = {key.lower(): value for key, value in json.loads(text).items()}
        width, height = int(given["width"]), int(given["height"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return (width, height) if 0 < width < 1 << 16 and 0 < height < 1 << 16 else None


def forward_ports(query: Query) -> tuple[int, ...] | Refusal:
    """The ports of a WebSocket port-forward: `port` repeated, or a list with commas."""
    given = query.get("port")
    if not given:
        return Refusal(400, 'query parameter "port" is required')
    ports: list[int] = []
    for value in given:
        if not value:
            return Refusal(400, 'query parameter "port" cannot be empty')
        for text in value.split(","):
            if not (text.isascii() and text.isdigit()):
                why = f'strconv.ParseUint: parsing "{text}": invalid syntax'
                return Refusal(400, f'unable to parse "{text}" as a port: {why}')
            if int(text) > 0xFFFF:
                why = f'strconv.ParseUint: parsing "{text}": value out of range'
                return Refusal(400, f'unable to parse "{text}" as a port: {why}')
            if int(text) < 1:
                return Refusal(400, f'port "{text}" must be > 0')
            ports.append(int(text))
    return tuple(ports)
