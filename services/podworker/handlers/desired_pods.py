"""What should run, as the bus shows it. An absent pod is not a removed one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from shared.contracts.pods import PodDesired, SourceMarker
from shared.contracts.registry import POD_DESIRED, SOURCE_MARKER

log = logging.getLogger("podbus.podworker.desired")

Verdict = Literal["wanted", "removed", "unknown"]


class DesiredPods:
    """Fed by a watch on podbus_pods; calls `changed(uid)` for every pod whose verdict may have changed."""

    def __init__(self, sources: Iterable[str], changed: Callable[[str], None]) -> None:
        self._sources = frozenset(sources)
        self._changed = changed
        self._pods: dict[str, PodDesired] = {}
        self._markers: dict[str, SourceMarker] = {}
        self._listed: dict[str, frozenset[str]] = {}
        self._desired = msgspec.json.Decoder(PodDesired)
        self._marker = msgspec.json.Decoder(SourceMarker)

    def get(self, uid: str) -> PodDesired | None:
        return self._pods.get(uid)

    def __iter__(self) -> Iterator[PodDesired]:
        return iter(self._pods.values())

    @property
    def all_sources_ready(self) -> bool:
        """Every configured source has listed once: only now may a pod that nobody asks for be ended."""
        return all((marker := self._markers.get(name)) and marker.ready for name in self._sources)

    def verdict(self, uid: str, source: str) -> Verdict:
        """Only a ready list of its source without the UID removes a pod; an empty bucket tells nothing."""
        if uid in self._pods:
            return "wanted"
        if self.is_left_out(uid, source):
            return "removed"
        if source not in self._sources and self.all_sources_ready:
            return "removed"  # its source isn't configured any more
        return "unknown"

    def is_left_out(self, uid: str, source: str) -> bool:
        """A ready list of its source doesn't name the pod."""
        marker = self._markers.get(source)
        return marker is not None and marker.ready and uid not in self._listed[source]

    def on_list(self, entries: Mapping[str, bytes]) -> None:
        """A complete list of the bucket."""
        before = dict(self._pods)
        self._pods = {}
        self._markers = {}
        self._listed = {}
        for key, value in entries.items():
            self._take(key, value)
        for uid in {*before, *self._pods, *(u for uids in self._listed.values() for u in uids)}:
            if before.get(uid) != self._pods.get(uid):
                self._changed(uid)
        self._changed("")

    def on_change(self, key: str, value: bytes | None) -> None:
        """One key; None = deleted."""
        uid = POD_DESIRED.id_of(key)
        if value is not None:
            self._take(key, value)
        elif uid is not None:
            self._pods.pop(uid, None)
        elif (name := SOURCE_MARKER.id_of(key)) is not None:
            self._markers.pop(name, None)
            self._listed.pop(name, None)
        self._changed(uid or "")

    def _take(self, key: str, value: bytes) -> None:
        try:
            if POD_DESIRED.id_of(key) is not None:
                pod = self._desired.decode(value)
                self._pods[pod.uid] = pod
            elif (name := SOURCE_MARKER.id_of(key)) is not None:
                marker = self._marker.decode(value)
                self._markers[name] = marker
                self._listed[name] = frozenset(marker.uids)
        except msgspec.MsgspecError as error:
            log.error("message not understood key=%s error=%s", key, error)
