"""A pod's probes over virtual time: what plays the engine, the network and the pod's task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from services.podworker.core.events_text import PodEvent
from services.podworker.core.model import PodMemory, RuntimePod, Verdicts
from services.podworker.handlers.prober import Prober
from services.podworker.handlers.probes import PodProbes
from services.podworker.ports import ExecResult, HttpAnswer, Unreachable
from shared.kube.pod import Pod
from tests.support.builders import NODE_IP, NOW, a_container, a_memory, a_pod, a_runtime, running
from tests.support.virtual_loop import run_virtually

START = 1000.0
"""The loop's time when a test begins; the wall clock then shows NOW."""


@dataclass
class World:
    """Plays the engine and the network: says what a probe finds, and notes when it was asked."""

    answer: Callable[[str], int | Exception | None] = lambda what: 0
    """By the command's first word, or the port: an exit code or status, an error, or None = it hangs."""
    asked: list[tuple[str, float]] = field(default_factory=list)
    under_way: int = 0
    most_under_way: int = 0
    cancelled: int = 0
    wall: float = NOW

    async def _answer(self, what: str, seconds: float | None) -> int | None:
        self.asked.append((what, round(self.loop_time - START, 3)))
        self.under_way += 1
        self.most_under_way = max(self.under_way, self.most_under_way)
        try:
            found = self.answer(what)
            if isinstance(found, Exception):
                raise found
            if found is None:
                await asyncio.sleep(3600 if seconds is None else seconds)
            return found
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.under_way -= 1

    async def exec_sync(self, container_id: str, command: Sequence[str], seconds: float | None) -> ExecResult:
        return ExecResult(exit_code=await self._answer(command[0], seconds), output=b"said")

    async def http_get(self, url: str, headers: Sequence[tuple[str, str]], *, follow: bool) -> HttpAnswer:
        return HttpAnswer(status=await self._answer(url, None) or 500, body=b"")

    async def tcp_connect(self, host: str, port: int) -> None:
        if await self._answer(str(port), None):
            raise Unreachable("refused")

    async def grpc_check(self, host: str, port: int, service: str) -> str:
        return "SERVING" if await self._answer(service, None) == 0 else "NOT_SERVING"

    @property
    def loop_time(self) -> float:
        return asyncio.get_running_loop().time()

    def now(self) -> float:
        return self.wall + self.loop_time - START

    def boot_seconds(self) -> float:
        return self.loop_time

    def boot_id(self) -> str:
        return "boot"

    def times(self, what: str) -> list[float]:
        return [at for asked, at in self.asked if asked == what]


class Player:
    """Plays the pod's task: each wake is a look."""

    def __init__(self, world: World, pod: Pod, runtime: RuntimePod, **memory: Any) -> None:
        prober = Prober(world, world, world, NODE_IP, Random(1))
        prober.born_at = START - 3600
        self.world, self.pod, self.runtime = world, pod, runtime
        self.memory: PodMemory = a_memory(pod, **memory)
        self.changes: list[tuple[float, dict[str, Verdicts]]] = []
        self.events: list[PodEvent] = []
        self.probes = PodProbes(prober, "p", self._wake, self.events.append)
        self._woken = asyncio.Event()

    def _wake(self) -> None:
        self._woken.set()

    def look(self) -> None:
        before = self.memory
        self.memory = self.probes.taken_into(self.memory, self.runtime)
        if self.memory is not before:
            self.changes.append((round(self.world.loop_time - START, 3), dict(self.memory.verdicts)))
        self.probes.follow(self.pod, self.memory, self.runtime)

    async def live(self, seconds: float) -> None:
        until = self.world.loop_time + seconds
        self.look()
        while (left := until - self.world.loop_time) > 0:
            try:
                await asyncio.wait_for(self._woken.wait(), left)
            except TimeoutError:
                break
            self._woken.clear()
            self.look()


def ask(*command: str, **fields: Any) -> dict[str, Any]:
    return {"exec": {"command": list(command)}, **fields}


def one_running(**fields: Any) -> tuple[Pod, RuntimePod]:
    """One container that started when the test begins, with these probes."""
    pod = a_pod(a_container(**fields))
    return pod, a_runtime(running(pod.spec.containers[0], started_at=NOW))


def lived(world: World, seconds: float, *, pod: Pod, runtime: RuntimePod, before: float = 0.0, **memory: Any) -> Player:
    """`before`: so long before it runs the pod is known without its container."""

    async def main() -> Player:
        player = Player(world, pod, runtime, **memory)
        if before:
            player.runtime = a_runtime()
            await player.live(before)
            player.runtime = runtime
        await player.live(seconds)
        player.probes.close()
        return player

    return run_virtually(main, start=START - before)
