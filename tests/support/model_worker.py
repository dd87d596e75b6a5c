"""A worker's handlers over the model engine and a pods.db, on a virtual loop: it can die between any two calls."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from random import Random
from typing import Any, cast

from services.podworker.adapters.network_sockets import SocketNetwork
from services.podworker.core.admission import NodeLimits
from services.podworker.core.model import PodMemory, RuntimePod
from services.podworker.core.plan import SyncConfig
from services.podworker.handlers.desired_pods import DesiredPods
from services.podworker.handlers.executor import Executor
from services.podworker.handlers.hooks import HookRunner
from services.podworker.handlers.permits import Permits
from services.podworker.handlers.pod_context import PodContext
from services.podworker.handlers.pod_record import PodRecord, Recorder
from services.podworker.handlers.pods import Pods
from services.podworker.handlers.prober import Prober
from services.podworker.handlers.relist import Relist
from services.podworker.handlers.reports import Reports
from services.podworker.ports import ContainerRuntime, PodStore, RuntimeUnavailable, StoreUnavailable
from shared.kube.ids import SLOTS
from shared.runtime.clock import Clock
from tests.support.builders import NODE_IP, NOW, a_node
from tests.support.model_runtime import ModelRuntime
from tests.support.no_volumes import no_volumes
from tests.support.virtual_loop import VirtualLoop


class LoopClock:
    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now(self) -> float:
        return NOW + self._loop.time()

    def boot_seconds(self) -> float:
        return self._loop.time()

    def boot_id(self) -> str:
        return "boot-1"


class Life:
    """A worker's: when it's over, neither the engine nor the database hears of it any more."""

    def __init__(self) -> None:
        self.is_over = False
        self.calls_left: int | None = None
        """After so many more calls of the engine it dies, before the next."""

    def spend(self) -> None:
        if self.calls_left is not None:
            self.calls_left -= 1
            self.is_over = self.is_over or self.calls_left < 0


class _MortalEngine:
    def __init__(self, engine: ModelRuntime, life: Life) -> None:
        self._engine = engine
        self._life = life

    def changes(self) -> Any:
        return self._engine.changes()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._engine, name)

        async def mortal(*arguments: Any) -> Any:
            self._life.spend()
            if self._life.is_over:
                raise RuntimeUnavailable("dead")
            return await call(*arguments)

        return mortal


class _MortalStore:
    def __init__(self, store: PodStore, life: Life) -> None:
        self._store = store
        self._life = life

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        def mortal(*arguments: Any) -> Any:
            if self._life.is_over:
                raise StoreUnavailable("dead")
            return call(*arguments)

        return mortal


class _Told:
    """Reports without a bus: the newest memory per pod."""

    def __init__(self, told: dict[str, PodMemory], life: Life) -> None:
        self._told = told
        self._life = life

    def publish(self, memory: PodMemory, runtime: RuntimePod, record: PodRecord, **options: object) -> None:
        if not self._life.is_over:
            self._told[memory.uid] = memory

    publish_later = publish

    def withdraw(self, uid: str) -> None:
        if not self._life.is_over:
            self._told.pop(uid, None)

    def leave(self, uid: str) -> None:
        return


class ModelWorker:
    def __init__(
        self, engine: ModelRuntime, store: PodStore, told: dict[str, PodMemory], limits: NodeLimits, clock: Clock
    ) -> None:
        self.life = Life()
        self.messages: deque[tuple[str, bytes | None]] = deque()
        """Sent to it and not delivered yet."""
        self.is_deaf = False
        """The engine's events don't reach it."""
        self._slots: frozenset[int] = frozenset()
        runtime = cast(ContainerRuntime, _MortalEngine(engine, self.life))
        reports = cast(Reports, _Told(told, self.life))
        recorder = Recorder(cast(PodStore, _MortalStore(store, self.life)), clock, "podworker-0")
        self.desired = DesiredPods(["file"], lambda uid: self._pods.desired_changed(uid))
        self._pods = Pods(self.desired, recorder, reports)
        network, rng = SocketNetwork(), Random(1)
        self._pods.use(
            PodContext(
                desired=self.desired,
                executor=Executor(
                    runtime,
                    cast(Any, runtime),
                    Permits(4),
                    Permits(1),
                    a_node(),
                    SyncConfig(),
                    clock,
                    volumes=no_volumes(),
                ),
                hooks=HookRunner(cast(Any, runtime), network),
                prober=Prober(cast(Any, runtime), network, clock, NODE_IP, rng),
                recorder=recorder,
                reports=reports,
                limits=limits,
                node_ip=NODE_IP,
                sync_seconds=60.0,
                rng=rng,
                may_start=self._pods.may_start,
                ended=self._pods.ended,
                preempt=self._pods.preempt,
                handled=lambda uid, gen, begin: None,
            )
        )
        self._relist = Relist(runtime, clock, self._pods.listed, self._event)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, bucket: Mapping[str, bytes]) -> None:
        """As the service does: it knows what there is before it takes a slot."""
        await self.list_bucket(bucket)
        await self._relist.once()
        self._tasks = [asyncio.create_task(self._relist.follow()), asyncio.create_task(self._relist.run())]

    def _event(self, uid: str) -> None:
        if not self.is_deaf:
            self._pods.runtime_changed(uid)

    async def list_bucket(self, bucket: Mapping[str, bytes]) -> None:
        self.messages.clear()
        self.desired.on_list(dict(bucket))

    async def deliver(self) -> None:
        """The oldest message."""
        if self.messages:
            key, value = self.messages.popleft()
            self.desired.on_change(key, value)

    async def give(self, slots: frozenset[int]) -> None:
        """Those that it doesn't have."""
        gained = slots - self._slots
        self._slots = slots
        if gained:
            self._pods.gained(gained)

    async def take(self, slots: frozenset[int]) -> None:
        """All that aren't among these."""
        lost = self._slots - slots
        self._slots &= slots
        await asyncio.gather(*(self._pods.lost(slot) for slot in lost))

    async def end(self) -> None:
        """The process is gone, whatever it was doing."""
        self.life.is_over = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.take(frozenset())


def shares(workers: int) -> list[frozenset[int]]:
    """Every slot to one of so many workers."""
    return [frozenset(range(index, SLOTS, workers)) for index in range(workers)]
