"""Databases and memories for the tests of this package."""

from __future__ import annotations

from pathlib import Path

from services.podworker.adapters.database import DATABASE
from services.podworker.adapters.pod_store import SqlitePodStore
from services.podworker.core.model import PodMemory
from services.podworker.ports import Demand, NodeLimits
from shared.contracts.events import Event, InvolvedObject
from shared.storage.migrate import upgrade

ROOMY = NodeLimits(cpu_milli=2000, memory_bytes=1 << 30, pods=110)
NOTHING = Demand(cpu_milli=0, memory_bytes=0, host_ports=())


def new_store(directory: Path) -> SqlitePodStore:
    upgrade(directory / DATABASE.file, DATABASE)
    return SqlitePodStore(directory)


def a_memory(uid: str = "u1", name: str = "web", source: str = "file", gen: int = 1) -> PodMemory:
    return PodMemory(uid=uid, namespace="default", name=name, source=source, gen=gen, hash="h")


def an_event(event_id: str, time: float = 1.0) -> Event:
    return Event(
        id=event_id,
        time=time,
        type="Normal",
        reason="Started",
        message="Started container c",
        involved=InvolvedObject(kind="Pod", name="web", namespace="default", uid="u1"),
        component="podworker",
    )
