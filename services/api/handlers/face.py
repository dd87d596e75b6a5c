"""What every endpoint works with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from services.api.core.metrics_view import MetricsView
from services.api.core.node_view import NodeView
from services.api.core.routing import FULL, Surface
from services.api.ports import Owners
from shared.runtime.clock import Clock
from shared.runtime.metrics import Metrics


@dataclass(frozen=True)
class Face:
    node: str
    version: str
    view: NodeView
    owners: Owners
    clock: Clock
    started_at: float = 0.0
    """Seconds since the epoch."""
    config: Mapping[str, object] = field(default_factory=dict)
    """The effective KubeletConfiguration."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """What was set besides: `podbus up`'s flags and variables."""
    log_root: Path = Path("/var/log")
    """Served below /logs/."""
    idle_seconds: float = 4 * 3600.0
    """After which a stream without a byte ends."""
    surface: Surface = FULL
    """Of the HTTPS port."""
    disk_trouble: Callable[[], str] = lambda: ""
    """What keeps the data directory's disk from taking anything; "" = nothing."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the service ends: long answers end by themselves."""

    metrics: Metrics = field(default_factory=Metrics)
    """This process's own."""
    others: MetricsView = field(default_factory=MetricsView)
    """Those of the other processes."""

    def no_worker(self) -> str | None:
        """Why nobody looks after the pods, for people; None = somebody does."""
        why = self.view.no_worker(self.clock.now())
        return f"{why}; the bus is away" if why and not self.owners.connected else why

    def troubles(self) -> list[str]:
        """All that is wrong with the node as far as this process sees it, for people."""
        runtime = self.view.runtime()
        told = runtime.message if runtime is not None and not runtime.healthy else ""
        found = [self.disk_trouble(), self.no_worker(), self.view.stale(self.clock.now()), told]
        return [why for why in found if why]
