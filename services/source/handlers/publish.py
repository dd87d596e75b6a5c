"""Keeps podbus_pods equal to what the sources want: puts what differs, then the marker, then deletes what is gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

from shared.bus import Bus, BusUnavailable
from shared.contracts.pods import PodDesired, SourceMarker
from shared.contracts.registry import POD_DESIRED, PODS, SOURCE_MARKER

log = logging.getLogger("podbus.source.publish")

_RETRY_SECONDS = 0.5
_FORGET_EVERY_SECONDS = 300.0


class Publisher:
    """`want` is told the newest truth of a source at any time; `run`, a guarded task, brings the bucket there."""

    def __init__(self, bus: Bus, sources: Iterable[str]) -> None:
        """`sources` are all that there will be. Nothing is published before each has spoken: beside a fresh marker of
        one the bucket might hold another's of a former life, which says ready."""
        self._bus = bus
        self._sources = frozenset(sources)
        self._pods: dict[str, PodDesired] = {}
        self._markers: dict[str, SourceMarker] = {}
        self._put: dict[str, tuple[int, str]] = {}
        """What the bucket holds, as far as we know: uid -> (gen, hash)."""
        self._put_markers: dict[str, SourceMarker] = {}
        self._swept = False
        self._work = asyncio.Event()
        self._settled: dict[str, asyncio.Event] = {}
        bus.on_reconnect(self._again)

    def want(self, marker: SourceMarker, pods: Mapping[str, PodDesired]) -> None:
        """All pods of one source, and its marker."""
        source = marker.source
        self._pods = {uid: pod for uid, pod in self._pods.items() if pod.source != source} | dict(pods)
        self._markers[source] = marker
        self._settled.setdefault(source, asyncio.Event()).clear()
        self._work.set()

    @property
    def markers(self) -> list[SourceMarker]:
        return [self._markers[name] for name in sorted(self._markers)]

    async def published(self, source: str) -> None:
        """Return when the bucket holds all that the source wants."""
        await self._settled.setdefault(source, asyncio.Event()).wait()

    def _again(self) -> None:
        """The store may be new: nothing is known of it."""
        self._put.clear()
        self._put_markers.clear()
        self._swept = False
        self._work.set()

    async def run(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            if not self._markers.keys() >= self._sources:
                continue
            try:
                await self._level()
            except BusUnavailable as error:
                log.debug("publishing waits error=%s", error)
                self._work.set()
                await asyncio.sleep(_RETRY_SECONDS)

    async def forget(self) -> None:
        """A guarded task: what deleted pods leave in the bucket goes too, else it would only grow."""
        while True:
            await asyncio.sleep(_FORGET_EVERY_SECONDS)
            try:
                await self._bus.forget_deleted(PODS)
            except BusUnavailable as error:
                log.debug("forgetting waits error=%s", error)

    async def _level(self) -> None:
        """Pods before their marker: a ready marker speaks of pods that are there. Markers that aren't ready before
        those that are: together these let orphans be ended. Deletions after them: a key that goes while its marker
        lists it would only be a riddle."""
        pods, markers = dict(self._pods), dict(self._markers)
        for uid, pod in pods.items():
            version = (pod.gen, pod.hash)
            if self._put.get(uid) != version:
                await self._bus.put(POD_DESIRED, pod, uid)
                self._put[uid] = version
        for source, marker in sorted(markers.items(), key=lambda one: one[1].ready):
            if self._put_markers.get(source) != marker:
                await self._bus.put(SOURCE_MARKER, marker, source)
                self._put_markers[source] = marker
        gone = self._put.keys() - pods.keys()
        if not self._swept:
            keys = await self._bus.keys(PODS)
            gone |= {there for key in keys if (there := POD_DESIRED.id_of(key)) is not None} - pods.keys()
            for name in [SOURCE_MARKER.id_of(key) for key in keys]:
                if name is not None and name not in self._sources:
                    await self._bus.delete(SOURCE_MARKER, name)
            self._swept = True
        for uid in gone:
            await self._bus.delete(POD_DESIRED, uid)
            self._put.pop(uid, None)
        for source, marker in markers.items():
            if self._markers.get(source) is marker:
                self._settled[source].set()
