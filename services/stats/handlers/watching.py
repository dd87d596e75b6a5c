"""What to measure, as the bus shows it: pods' live containers and the runtime's facts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import msgspec

from services.stats.core.model import Targets
from services.stats.core.targets import targets_of
from services.stats.handlers.collect import Collector
from services.stats.handlers.kills import Kills
from shared.contracts.registry import POD_REPORT, RUNTIME_REPORT
from shared.contracts.status import PodReport, RuntimeReport

log = logging.getLogger("podbus.stats.watching")


class Watching:
    """Fed by a watch on podbus_status; `run` is a guarded task that samples when due and at every change."""

    def __init__(self, collector: Collector, kills: Kills, *, cgroup_root: str, allocatable_memory: int) -> None:
        self._collector = collector
        self._kills = kills
        self._cgroup_root = cgroup_root
        self._allocatable_memory = allocatable_memory
        self._reports: dict[str, PodReport] = {}
        self._runtime: RuntimeReport | None = None
        self._report = msgspec.json.Decoder(PodReport)
        self._changed = asyncio.Event()

    def on_list(self, entries: Mapping[str, bytes]) -> None:
        self._reports = {}
        for key, value in entries.items():
            self._take(key, value)
        self._changed.set()

    def on_change(self, key: str, value: bytes | None) -> None:
        self._take(key, value)
        self._changed.set()

    def _take(self, key: str, value: bytes | None) -> None:
        uid = POD_REPORT.id_of(key)
        try:
            if uid is not None:
                if value is None:
                    self._reports.pop(uid, None)
                else:
                    self._reports[uid] = self._report.decode(value)
            elif RUNTIME_REPORT.id_of(key) is not None and value is not None:
                self._runtime = msgspec.json.decode(value, type=RuntimeReport)
        except msgspec.MsgspecError as error:
            log.error("message not understood key=%s error=%s", key, error)

    def targets(self) -> Targets:
        return targets_of(
            self._reports.values(),
            self._runtime,
            cgroup_root=self._cgroup_root,
            allocatable_memory=self._allocatable_memory,
            kills=self._kills.counts,
        )

    async def run(self) -> None:
        while True:
            self._changed.clear()
            self._kills.look()
            self._collector.set_targets(self.targets())
            delay = self._collector.tick()
            try:
                await asyncio.wait_for(self._changed.wait(), delay)
            except TimeoutError:
                continue
