"""Byte streams: a command answers with a UNIX socket and a single-use token; the bytes don't travel on the bus."""

from __future__ import annotations

from typing import Literal

import msgspec


class LogOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """v1.PodLogOptions, already validated by the API."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since: float | None = None
    """Seconds since the epoch."""


class ExecOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command in a running container, or (without a command) an attachment to its main process."""

    command: list[str] = []
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class StreamCommand(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """podworker.c.stream: prepare a stream; any worker may serve it."""

    kind: Literal["logs", "exec", "attach", "portForward"]
    uid: str
    container_id: str
    """Docker's id, without prefix; "" for portForward."""
    logs: LogOptions = LogOptions()
    exec: ExecOptions = ExecOptions()
    """For exec and attach: the stream then carries the channels of shared.streams.channels."""
    port: int = 0
    """For portForward: of the pod's loopback; the stream is the connection's bytes."""


class StreamTicket(msgspec.Struct, frozen=True, kw_only=True):
    socket: str
    """Path of the UNIX socket."""
    token: str
    """Single use, good for 60 s: written as the first line."""


class TerminalSize(msgspec.Struct, frozen=True):
    """Inside a stream, towards the container."""

    width: int
    height: int


class StreamStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """Inside a stream, from podworker: how a command or an attachment ended, or whether a port was reached."""

    outcome: Literal["ended", "failed"]
    exit_code: int = 0
    """Of a command that ended by itself."""
    message: str = ""
    """Why it failed: it could not be started, or its end can't be known."""
