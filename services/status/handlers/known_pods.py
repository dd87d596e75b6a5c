"""What the bus tells of the pods that concern the API server: what is wanted, how it is, and the pictures there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from services.status.core.mirror_pods import StaticPod
from shared.contracts.pods import MirrorPod, PodDesired, SourceMarker, SourceName
from shared.contracts.registry import POD_DESIRED, POD_REPORT, SOURCE_MARKER
from shared.contracts.status import PodReport

log = logging.getLogger("podbus.status.pods")

Message = TypeVar("Message")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str
    name: str
    source: SourceName
    is_deleting: bool


class KnownPods:
    """Fed by watches on both buckets, on the loop."""

    def __init__(self) -> None:
        self._pod_listeners: list[Callable[[str], None]] = []
        self._mirror_listeners: list[Callable[[], None]] = []
        self._markers: dict[str, SourceMarker] = {}
        self.reports: dict[str, PodReport] = {}
        self.wanted: dict[str, Wanted] = {}
        self.static: dict[str, StaticPod] = {}
        """Those of files and URLs, with their bodies: a picture shows them."""

    def tell_of_pods(self, listener: Callable[[str], None]) -> None:
        """Called with a UID when something about that pod has changed. It only takes a note."""
        self._pod_listeners.append(listener)

    def tell_of_mirrors(self, listener: Callable[[], None]) -> None:
        """Called when pictures may have to be made or removed."""
        self._mirror_listeners.append(listener)

    @property
    def mirrors(self) -> list[MirrorPod]:
        marker = self._markers.get("api")
        return marker.mirrors if marker is not None else []

    @property
    def is_complete(self) -> bool:
        """All sources have said what they want: what isn't here isn't wanted."""
        return "api" in self._markers and all(marker.ready for marker in self._markers.values())

    def mirror_of(self, uid: str) -> MirrorPod | None:
        """The picture of a static pod, while it's sound."""
        return next((one for one in self.mirrors if one.hash == uid and not one.deleting), None)

    def static_uid(self, mirror_uid: str) -> str:
        """Of the pod that this picture shows; "" = it's no picture."""
        return next((one.hash for one in self.mirrors if one.uid == mirror_uid), "")

    # -- podbus_status ----------------------------------------------------------------------------------------

    def on_status_list(self, entries: Mapping[str, bytes]) -> None:
        before, self.reports = self.reports, {}
        for key, value in entries.items():
            self._take_report(key, value)
        for uid in before.keys() - self.reports.keys():
            self._on_pod(uid)
        self._on_mirrors()

    def on_status_change(self, key: str, value: bytes | None) -> None:
        if value is not None:
            self._take_report(key, value)
        elif (uid := POD_REPORT.id_of(key)) is not None and self.reports.pop(uid, None) is not None:
            self._on_pod(uid)
            self._on_mirrors()

    def _take_report(self, key: str, value: bytes) -> None:
        if (uid := POD_REPORT.id_of(key)) is None or (report := _read(key, value, PodReport)) is None:
            return
        is_new = uid not in self.reports
        self.reports[uid] = report
        self._on_pod(uid)
        if is_new:
            self._on_mirrors()

    # -- podbus_pods ------------------------------------------------------------------------------------------

    def on_pods_list(self, entries: Mapping[str, bytes]) -> None:
        self.wanted, self.static, self._markers = {}, {}, {}
        for key, value in entries.items():
            self.on_pods_change(key, value)

    def on_pods_change(self, key: str, value: bytes | None) -> None:
        if (name := SOURCE_MARKER.id_of(key)) is not None:
            self._take_marker(name, None if value is None else _read(key, value, SourceMarker))
        elif (uid := POD_DESIRED.id_of(key)) is not None:
            self._take_wanted(uid, None if value is None else _read(key, value, PodDesired))

    def _take_marker(self, name: str, marker: SourceMarker | None) -> None:
        before = self.mirrors
        if marker is None:
            self._markers.pop(name, None)
        else:
            self._markers[name] = marker
        for mirror in self.mirrors:
            if mirror not in before:
                self._on_pod(mirror.hash)
        self._on_mirrors()

    def _take_wanted(self, uid: str, desired: PodDesired | None) -> None:
        self.static.pop(uid, None)
        if desired is None:
            self.wanted.pop(uid, None)
        else:
            self.wanted[uid] = Wanted(
                namespace=desired.namespace,
                name=desired.name,
                source=desired.source,
                is_deleting=desired.deletion_grace is not None,
            )
            if desired.source != "api":
                self.static[uid] = StaticPod(
                    uid=uid, namespace=desired.namespace, name=desired.name, body=bytes(desired.body)
                )
        self._on_pod(uid)
        self._on_mirrors()

    def _on_pod(self, uid: str) -> None:
        for listener in self._pod_listeners:
            listener(uid)

    def _on_mirrors(self) -> None:
        for listener in self._mirror_listeners:
            listener()


def _read(key: str, value: bytes, kind: type[Message]) -> Message | None:
    try:
        return msgspec.json.decode(value, type=kind)
    except msgspec.MsgspecError as error:
        log.error("message not understood key=%s error=%s", key, error)
        return None
