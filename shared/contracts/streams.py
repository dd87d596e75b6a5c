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


class StreamCommand(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """podworker.c.stream: prepare a stream; any worker may serve it."""

    kind: Literal["logs"]
    uid: str
    container_id: str
    """Docker's id, without prefix."""
    logs: LogOptions = LogOptions()


class StreamTicket(msgspec.Struct, frozen=True, kw_only=True):
    socket: str
    """Path of the UNIX socket."""
    token: str
    """Single use, good for 60 s: written as the first line."""
