"""Which processes a node consists of: nats-server and the services, in the order in which they end."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cli.bus_liveness import keeps_values
from cli.first_start import BusServer
from cli.program import Program
from shared.contracts.acl import OPERATOR
from shared.contracts.subject import SERVICES, ServiceName
from shared.runtime.disk import full_disk
from shared.runtime.service import Build, run
from shared.runtime.settings import Settings

NATS = "nats-server"
_STAGES: Mapping[ServiceName, int] = {"api": 0, "source": 1, "status": 1, "stats": 1, "podworker": 2}
_STOP_SECONDS: Mapping[ServiceName, float] = {
    "api": 5.0,
    "source": 5.0,
    "status": 5.0,
    "stats": 5.0,
    "podworker": 14.0,
}
_NATS_STOP_SECONDS = 5.0
_GOGC = "20"
"""The Go runtime's default of 100 trades 5 MiB for time that a node's bus doesn't need (spec: 21 -> 15 MiB)."""


def node_programs(
    settings: Settings, builds: Mapping[ServiceName, Build], *, server: str, bus: BusServer
) -> list[Program]:
    """All processes of `podbus up`. `server`: path of nats-server."""
    programs = [
        Program(
            name=NATS,
            body=nats_server(server, settings.paths.nats / "nats.conf"),
            stage=3,
            stop_seconds=_NATS_STOP_SECONDS,
            answers=lambda: greets(bus.port),
            blocked_by=lambda: full_disk(settings.paths.nats),
            alive=lambda: keeps_values(bus.port, OPERATOR, bus.passwords[OPERATOR]),
            is_echoed=False,
        )
    ]
    for name in SERVICES:
        if name not in builds:
            continue
        workers: Sequence[int | None] = range(settings.workers) if name == "podworker" else (None,)
        for worker in workers:
            programs.append(
                Program(
                    name=name if worker is None else f"{name}-{worker}",
                    body=_service(name, builds[name], settings, worker),
                    stage=_STAGES[name],
                    stop_seconds=_STOP_SECONDS[name],
                )
            )
    return programs


def _service(name: ServiceName, build: Build, settings: Settings, worker: int | None) -> Callable[[int, str], int]:
    def body(ready_fd: int, restart_reason: str) -> int:
        os.environ.pop("NOTIFY_SOCKET", None)  # only the supervisor speaks to systemd
        return run(
            name,
            build,
            settings=settings,
            worker=worker,
            ready_fd=ready_fd,
            restart_reason=restart_reason,
        )

    return body


def nats_server(binary: str, config: Path) -> Callable[[int, str], int]:
    def body(_ready_fd: int, _restart_reason: str) -> int:
        environment = {**os.environ, "GOGC": _GOGC}
        environment.pop("NOTIFY_SOCKET", None)
        os.execve(binary, [NATS, "-c", str(config)], environment)  # noqa: S606 - that is what a child is for

    return body


def greets(port: int) -> bool:
    """Whether a nats-server answers on that loopback port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=0.3) as link:
            return link.recv(4) == b"INFO"
    except OSError:
        return False
