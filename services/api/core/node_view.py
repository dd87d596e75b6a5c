"""What the API knows: both buckets and the workers' heartbeats. Raw bytes in; decoded when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from services.api.core.metrics_view import Reported, Tally, tally
from services.api.core.render import Deletion, pod_item, pod_list
from shared.contracts.pods import SourceMarker
from shared.contracts.registry import NODE_REPORT, POD_DESIRED, POD_REPORT, RUNTIME_REPORT, SOURCE_MARKER
from shared.contracts.status import NodeReport, RuntimeReport
from shared.kube.status import PodStatus

T = TypeVar("T")

WORKER_SECONDS = 20.0
"""A worker whose last heartbeat is older than this is taken for gone: four of them were missed."""

REPORT_SECONDS = 35.0
"""The engine is reported every ten seconds: three reports were missed."""


class _Desired(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    body: msgspec.Raw


class _Report(msgspec.Struct, frozen=True):
    """The parts of a PodReport that are used here; the status stays as its owner wrote it."""

    namespace: str
    name: str
    status: msgspec.Raw
    deletion_at: float = 0.0
    deletion_grace: int = 0
    body: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Container(msgspec.Struct, frozen=True):
    name: str
    stdin: bool = False
    tty: bool = False


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    containers: list[_Container] = []
    init_containers: list[_Container] | None = None
    ephemeral_containers: list[_Container] | None = None


class _PodSpec(msgspec.Struct, frozen=True):
    spec: _Spec


class _Entry:
    """One UID: what is wanted, what is reported, and the item made of both."""

    __slots__ = ("desired", "item", "place", "report", "wanted")

    def __init__(self) -> None:
        self.desired: bytes | None = None
        """The last desired message; kept when its key goes, while the pod is still reported."""
        self.wanted = False
        self.report: bytes | None = None
        self.item: bytes | None = None
        self.place: tuple[str, str] = ("", "")
        """(namespace, name), known once the item is made."""


class PodView(msgspec.Struct, frozen=True):
    """One pod for the endpoints that look inside."""

    uid: str
    namespace: str
    name: str
    containers: tuple[str, ...]
    """All names of the spec: init, regular, ephemeral."""
    status: PodStatus | None
    """None = its worker hasn't spoken of it yet."""
    terminals: frozenset[str] = frozenset()
    """Containers with `tty`."""
    with_stdin: frozenset[str] = frozenset()
    """Containers with `stdin`."""


class NodeView:
    """State only: no clock, no I/O. Times are seconds since the epoch."""

    def __init__(self, started_at: float) -> None:
        self._started_at = started_at
        self._pods: dict[str, _Entry] = {}
        self._markers: dict[str, bytes] = {}
        self._runtime: bytes | None = None
        self._node: bytes | None = None
        self._heard: dict[int, float] = {}
        self._body: bytes | None = None
        self._tally: Tally | None = None
        self.problems: dict[str, str] = {}
        """Messages that can't be read, by key, until they change."""

    # -- what comes in ------------------------------------------------------------------------------------

    def list_pods(self, entries: Mapping[str, bytes]) -> None:
        """The whole bucket podbus_pods."""
        uids = {uid for key in entries if (uid := POD_DESIRED.id_of(key))}
        for uid in [uid for uid, entry in self._pods.items() if entry.wanted and uid not in uids]:
            self.change_pods(POD_DESIRED.key(uid), None)
        self._markers = {name: raw for key, raw in entries.items() if (name := SOURCE_MARKER.id_of(key))}
        for key, raw in entries.items():
            self.change_pods(key, raw)

    def change_pods(self, key: str, raw: bytes | None) -> None:
        """One key; None = it was deleted."""
        self.problems.pop(key, None)
        if uid := POD_DESIRED.id_of(key):
            self._set_desired(uid, raw)
        elif source := SOURCE_MARKER.id_of(key):
            if raw is None:
                self._markers.pop(source, None)
            else:
                self._markers[source] = raw

    def list_status(self, entries: Mapping[str, bytes]) -> None:
        """The whole bucket podbus_status."""
        uids = {uid for key in entries if (uid := POD_REPORT.id_of(key))}
        for uid in [uid for uid, entry in self._pods.items() if entry.report is not None and uid not in uids]:
            self.change_status(POD_REPORT.key(uid), None)
        self._runtime = entries.get(RUNTIME_REPORT.key())
        self._node = entries.get(NODE_REPORT.key())
        for key, raw in entries.items():
            self.change_status(key, raw)

    def change_status(self, key: str, raw: bytes | None) -> None:
        """One key; None = it was deleted."""
        self.problems.pop(key, None)
        if uid := POD_REPORT.id_of(key):
            self._set_report(uid, raw)
        elif key == RUNTIME_REPORT.key():
            self._runtime = raw
        elif key == NODE_REPORT.key():
            self._node = raw

    def worker_heard(self, worker: int, at: float) -> None:
        """A heartbeat came in at `at` (our clock, not the worker's)."""
        self._heard[worker] = at

    def _set_desired(self, uid: str, raw: bytes | None) -> None:
        entry = self._pods.setdefault(uid, _Entry())
        if raw is None:
            entry.wanted = False
            if entry.report is None:
                del self._pods[uid]
            self._body = None
            return
        changed = raw != entry.desired
        entry.wanted = True
        if changed:
            entry.desired = raw
            entry.item = self._body = None

    def _set_report(self, uid: str, raw: bytes | None) -> None:
        entry = self._pods.setdefault(uid, _Entry())
        if raw != entry.report:
            self._tally = None
        if raw is None and not entry.wanted:
            del self._pods[uid]
            self._body = None
        elif raw != entry.report:
            entry.report = raw
            entry.item = self._body = None

    # -- what goes out ------------------------------------------------------------------------------------

    def pod_list(self) -> bytes:
        """The body of /pods, by namespace and name. Made anew only for the pods that changed."""
        if self._body is None:
            made = [
                (*entry.place, uid, item)
                for uid, entry in self._pods.items()
                if (item := self._item(uid, entry)) is not None
            ]
            made.sort()
            self._body = pod_list(item for *_, item in made)
        return self._body

    def find_pod(self, namespace: str, name: str) -> PodView | None:
        """By name: the wanted one before one that is ending under the same name."""
        best: tuple[bool, str, _Entry] | None = None
        for uid, entry in self._pods.items():
            found = self._item(uid, entry) is not None and entry.place == (namespace, name)
            if found and (best is None or entry.wanted):
                best = (entry.wanted, uid, entry)
        return None if best is None else self._pod_view(best[1], best[2])

    def count(self) -> tuple[int, int]:
        """(wanted pods, pods that are ending)"""
        wanted = sum(entry.wanted for entry in self._pods.values())
        return wanted, len(self._pods) - wanted

    def tally(self) -> Tally:
        """Pods and containers by what they do. Counted anew only when a report has changed."""
        if self._tally is None:
            found = (self._decode(POD_REPORT.key(uid), entry.report, Reported) for uid, entry in self._pods.items())
            self._tally = tally(report for report in found if report is not None)
        return self._tally

    def markers(self) -> list[SourceMarker]:
        decoded = (
            self._decode(SOURCE_MARKER.key(name), raw, SourceMarker) for name, raw in sorted(self._markers.items())
        )
        return [marker for marker in decoded if marker is not None]

    def runtime(self) -> RuntimeReport | None:
        return self._decode(RUNTIME_REPORT.key(), self._runtime, RuntimeReport)

    def node(self) -> bytes | None:
        """The v1.Node as JSON; None = status hasn't published one."""
        report = self._decode(NODE_REPORT.key(), self._node, NodeReport)
        return None if report is None else bytes(report.body)

    def live_workers(self, now: float) -> list[int]:
        """Numbers of the workers heard within the last 20 s."""
        return sorted(worker for worker, at in self._heard.items() if now - at <= WORKER_SECONDS)

    def no_worker(self, now: float) -> str | None:
        """Why nobody looks after the pods; None = somebody does, or it is too early to tell."""
        if self.live_workers(now) or now - self._started_at <= WORKER_SECONDS:
            return None
        if not self._heard:
            return f"no podworker was heard since {now - self._started_at:.0f} s"
        return f"no podworker is alive: the last heartbeat came {now - max(self._heard.values()):.0f} s ago"

    # -- inside -------------------------------------------------------------------------------------------

    def stale(self, now: float) -> str | None:
        """Why what is shown may be old; None = the engine was reported lately, or never yet."""
        runtime = self.runtime()
        if runtime is None or now - runtime.ts <= REPORT_SECONDS:
            return None
        return f"the engine was last reported {now - runtime.ts:.0f} s ago: what is shown may be old"

    def _item(self, uid: str, entry: _Entry) -> bytes | None:
        """Made at most once per version; None = there is no body to show, or it can't be read."""
        if entry.item is not None:
            return entry.item
        report = self._decode(POD_REPORT.key(uid), entry.report, _Report)
        desired = self._decode(POD_DESIRED.key(uid), entry.desired, _Desired)
        body = _body(desired, report)
        named = desired or report
        if body is None or named is None:
            return None
        deletion = Deletion(report.deletion_at, report.deletion_grace) if report and report.deletion_at else None
        try:
            entry.item = pod_item(body, None if report is None else bytes(report.status), deletion)
        except msgspec.MsgspecError as error:
            self.problems.setdefault(POD_DESIRED.key(uid), str(error))
            return None
        entry.place = (named.namespace, named.name)
        return entry.item

    def _pod_view(self, uid: str, entry: _Entry) -> PodView | None:
        report = self._decode(POD_REPORT.key(uid), entry.report, _Report)
        body = _body(self._decode(POD_DESIRED.key(uid), entry.desired, _Desired), report)
        pod = self._decode(POD_DESIRED.key(uid), body, _PodSpec)
        if pod is None:
            return None
        status = None
        if report is not None:
            status = self._decode(POD_REPORT.key(uid), bytes(report.status), PodStatus)
        containers = tuple(_containers(pod.spec))
        return PodView(
            uid,
            *entry.place,
            tuple(one.name for one in containers),
            status,
            frozenset(one.name for one in containers if one.tty),
            frozenset(one.name for one in containers if one.stdin),
        )

    def _decode(self, key: str, raw: bytes | None, kind: type[T]) -> T | None:
        if raw is None:
            return None
        try:
            return msgspec.json.decode(raw, type=kind)
        except msgspec.MsgspecError as error:
            self.problems.setdefault(key, str(error))
            return None


def _body(desired: _Desired | None, report: _Report | None) -> bytes | None:
    """What is being run: a pod that is ending carries its own body, which a newer desired one would hide."""
    if report is not None and report.body is not msgspec.UNSET and desired is None:
        return bytes(report.body)
    return None if desired is None else bytes(desired.body)


def _containers(spec: _Spec) -> Iterator[_Container]:
    for containers in (spec.init_containers, spec.containers, spec.ephemeral_containers):
        yield from containers or ()
