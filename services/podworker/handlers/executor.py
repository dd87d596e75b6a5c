"""What the plans of all pods of a worker are carried out with, and what came of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from services.podworker.core.events_text import PodEvent
from services.podworker.core.model import PodMemory
from services.podworker.core.node_facts import NodeFacts
from services.podworker.core.plan import SyncConfig
from services.podworker.handlers.image_access import ImageAccess
from services.podworker.handlers.measures import Measures
from services.podworker.handlers.permits import Permits
from services.podworker.handlers.volumes import VolumeKeeper
from services.podworker.ports import ContainerRuntime, ImageService
from shared.runtime.clock import Clock


class Executor:
    """Shared by all pods of a worker; one `Execution` per plan."""

    def __init__(
        self,
        runtime: ContainerRuntime,
        image_service: ImageService,
        permits: Permits,
        pulls: Permits,
        node: NodeFacts,
        config: SyncConfig,
        clock: Clock,
        *,
        volumes: VolumeKeeper,
        access: ImageAccess | None = None,
        measures: Measures | None = None,
    ) -> None:
        """`access` None: images are anybody's, and are pulled without a pod's credentials."""
        self.runtime = runtime
        self.images = image_service
        self.permits = permits
        self.pulls = pulls
        self.node = node
        self.config = config
        self.clock = clock
        self.volumes = volumes
        self.access = access
        self.measures = Measures() if measures is None else measures


Progress = Callable[[PodMemory], None]
"""The memory with how far a pull is: for the bus only, not for the disk."""


@dataclass
class Outcome:
    """Of one plan, as far as it has got."""

    memory: PodMemory
    events: list[PodEvent] = field(default_factory=list)

    @property
    def pod_name(self) -> str:
        return f"{self.memory.namespace}/{self.memory.name}"


class HeldPermit:
    """One place among those who may start things now; asked for and given back as often as one likes."""

    def __init__(self, permits: Permits) -> None:
        self._permits = permits
        self._is_held = False

    async def acquire(self) -> None:
        if not self._is_held:
            await self._permits.acquire()
            self._is_held = True

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._permits.release()
