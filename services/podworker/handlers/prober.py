"""Carries single probes out, and the timers that the probes of all pods share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from services.podworker.core.probe_checks import Check, ExecCheck, GrpcCheck, HttpCheck, NoCheck, TcpCheck
from services.podworker.core.probe_outcomes import (
    SUCCESS,
    Result,
    error,
    exec_result,
    grpc_result,
    http_result,
    too_late,
    unreachable,
)
from services.podworker.core.probes import WantedProbe
from services.podworker.handlers.measures import Measures
from services.podworker.ports import CommandRunner, Network, RuntimeRefused, RuntimeUnavailable, Unreachable
from shared.runtime.clock import Clock

TRIES = 3
"""Of a probe that can't be carried out; one that fails is asked once."""


class Prober:
    """Shared by all pods of a worker."""

    def __init__(
        self,
        commands: CommandRunner,
        network: Network,
        clock: Clock,
        node_ip: str,
        rng: Random,
        measures: Measures | None = None,
    ) -> None:
        self._commands = commands
        self._network = network
        self.clock = clock
        self.node_ip = node_ip
        self.rng = rng
        self.timers = Timers()
        self.measures = Measures() if measures is None else measures
        self.born_at = asyncio.get_running_loop().time()

    async def ask(self, wanted: WantedProbe) -> Result | None:
        """One run of a probe; None = the engine is away, so nothing is known."""
        seconds = max(1, wanted.probe.timeout_seconds)
        try:
            for _ in range(TRIES):
                result = await self._try(wanted.container_id, wanted.check, seconds)
                if result.kind != "error":
                    break
        except RuntimeUnavailable:
            return None
        return result

    async def _try(self, container_id: str, check: Check, seconds: int) -> Result:
        try:
            match check:
                case ExecCheck():
                    done = await self._commands.exec_sync(container_id, check.command, seconds)
                    return exec_result(check.command, done.exit_code, done.output, seconds)
                case NoCheck():
                    return error(check.error)
                case _:
                    async with asyncio.timeout(seconds):
                        return await self._over_network(check)
        except TimeoutError:
            return too_late(check, seconds)
        except Unreachable as why:
            return unreachable(check, str(why))
        except RuntimeRefused as why:
            return error(why.message)

    async def _over_network(self, check: HttpCheck | TcpCheck | GrpcCheck) -> Result:
        match check:
            case HttpCheck():
                answer = await self._network.http_get(check.url, check.headers, follow=True)
                return http_result(answer.status, answer.body)
            case TcpCheck():
                await self._network.tcp_connect(check.host, check.port)
                return SUCCESS
            case GrpcCheck():
                return grpc_result(await self._network.grpc_check(check.host, check.port, check.service))


class Timers:
    """Calls at an instant; those at the same one share a timer of the loop, and so a wake-up."""

    def __init__(self) -> None:
        self._calls: dict[float, dict[Callable[[], None], None]] = {}

    def add(self, due: float, call: Callable[[], None]) -> None:
        calls = self._calls.get(due)
        if calls is None:
            calls = self._calls[due] = {}
            asyncio.get_running_loop().call_at(due, self._fire, due)
        calls[call] = None

    def remove(self, due: float, call: Callable[[], None]) -> None:
        self._calls.get(due, {}).pop(call, None)

    def _fire(self, due: float) -> None:
        for call in self._calls.pop(due, {}):
            call()
