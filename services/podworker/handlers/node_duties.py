"""What one worker does for the whole node: the holder of slot 0 reports the engine and sweeps stale status keys;
whoever gains slots sweeps once, for what their former owner left behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from services.podworker.handlers.desired_pods import DesiredPods
from services.podworker.handlers.image_weights import ImageWeights
from services.podworker.handlers.ownership import Ownership
from services.podworker.handlers.relist import Relist
from services.podworker.ports import (
    ContainerRuntime,
    EngineInfo,
    ImageService,
    PodStore,
    RuntimeUnavailable,
    StoreUnavailable,
)
from shared.bus import Bus, BusUnavailable
from shared.contracts.envelope import VERSION
from shared.contracts.registry import POD_REPORT, RUNTIME_REPORT, STATUS
from shared.contracts.status import NodeImage, RuntimeReport
from shared.runtime.clock import Clock

log = logging.getLogger("podbus.podworker.node")

REPORT_SECONDS = 10.0
ENGINE_EVERY = 6
"""Reports between two looks at the engine's version and settings: for each it starts three programs."""
SWEEP_EVERY = 30
"""Reports between two sweeps of the status bucket: five minutes."""
LEFT_BEHIND_SECONDS = 1.0
"""After gaining slots, for many are gained in a row."""
STATUS_IMAGES = 50


class NodeDuties:
    """`run` is a guarded task of every worker."""

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        runtime: ContainerRuntime,
        images: ImageService,
        store: PodStore,
        ownership: Ownership,
        relist: Relist,
        desired: DesiredPods,
        trouble: Callable[[], str],
        collect: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`collect`: run by the holder of slot 0 with each sweep."""
        self._bus = bus
        self._clock = clock
        self._runtime = runtime
        self._images = images
        self._weights = ImageWeights(images)
        self._store = store
        self._ownership = ownership
        self._relist = relist
        self._desired = desired
        self._trouble = trouble
        self._collect = collect
        self._info: EngineInfo | None = None
        self._info_in = 0
        self._foreign: int | None = None
        self._now_please = asyncio.Event()
        self._sweep_in = 1
        self._gained: asyncio.TimerHandle | None = None
        """Set while gained slots wait for their sweep to be due."""
        self._left_behind = False
        """A former owner's keys are to be looked for."""
        bus.on_reconnect(self._reconnected)

    def gained(self, slots: frozenset[int]) -> None:
        """A new holder of slot 0 speaks at once: the node isn't ready before it has."""
        if 0 in slots:
            self._now_please.set()
        if self._gained is None:
            self._gained = asyncio.get_running_loop().call_later(LEFT_BEHIND_SECONDS, self._look_behind)

    def _look_behind(self) -> None:
        self._gained = None
        self._left_behind = True
        self._now_please.set()

    def _reconnected(self) -> None:
        self._sweep_in = 1
        self._now_please.set()

    async def run(self) -> None:
        while True:
            self._now_please.clear()
            try:
                if self._ownership.holds(0):
                    await self._bus.put(RUNTIME_REPORT, await self._report())
                    self._sweep_in -= 1
                    self._left_behind = self._left_behind or self._sweep_in <= 0
                if self._left_behind and self._desired.all_sources_ready:
                    await self._sweep()
                    if self._collect is not None and self._ownership.holds(0):
                        await self._collect()
                    self._left_behind = False
                    self._sweep_in = SWEEP_EVERY
            except (BusUnavailable, StoreUnavailable, RuntimeUnavailable) as error:
                log.debug("node report waits error=%s", error)
            try:
                await asyncio.wait_for(self._now_please.wait(), REPORT_SECONDS)
            except TimeoutError:
                continue

    async def _report(self) -> RuntimeReport:
        trouble = self._relist.trouble or self._trouble()
        images: list[NodeImage] = []
        images_bytes: int | None = None
        try:
            if trouble or self._info is None or self._info_in <= 0:
                self._info = await self._runtime.info()
                self._info_in = ENGINE_EVERY
            self._info_in -= 1
            local = await self._images.images()
            images = [NodeImage(names=list(image.names), size=image.size) for image in local]
            images_bytes = await self._weights.of(local)
            await self._tell_foreign()
        except RuntimeUnavailable as error:
            trouble = trouble or str(error)
            self._info_in = 0  # it may come back as another version
        info = self._info
        return RuntimeReport(
            v=VERSION,
            node=self._bus.node,
            ts=self._clock.now(),
            healthy=not trouble,
            message=trouble,
            relisted_at=self._relist.listed_at,
            engine_version=info.version if info else "",
            api_version=info.api_version if info else "",
            cgroup_driver=info.cgroup_driver if info else "",
            cgroup_version=info.cgroup_version if info else 0,
            root_dir=info.root_dir if info else "",
            live_restore=info.live_restore if info else False,
            subnets=list(info.subnets) if info else [],
            workers=sorted(self._ownership.members),
            images=sorted(images, key=lambda image: -image.size)[:STATUS_IMAGES],
            images_bytes=images_bytes,
            foreign_sandboxes=self._foreign or 0,
        )

    async def _tell_foreign(self) -> None:
        """Once: another agent's pods on this engine are never touched."""
        if self._foreign is None:
            names = await self._runtime.foreign_sandboxes()
            self._foreign = len(names)
            if names:
                log.warning("another agent's sandboxes are on this engine, left alone: %s", ", ".join(names[:20]))

    async def _sweep(self) -> None:
        """Remove status keys of pods that nobody knows: their owner died between the row and the key."""
        keys = await self._bus.keys(STATUS)
        rows = self._store.all_uids()
        for key in keys:
            uid = POD_REPORT.id_of(key)
            if uid and uid not in rows and self._desired.get(uid) is None:
                log.info("stale status key removed uid=%s", uid)
                await self._bus.delete(POD_REPORT, uid)
        await self._bus.forget_deleted(STATUS)
