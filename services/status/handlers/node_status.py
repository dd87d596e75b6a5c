"""Keeps the `node` key true: looks at the machine and the runtime's report, judges, publishes what changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from services.status.core.aggregate import Tally
from services.status.core.conditions import judge, reboot_event, schedulable_event
from services.status.core.model import PRESSURES, READY, NodeMemory, NodeSettings, Observation
from services.status.core.node import Node, build_node, same_but_heartbeat, with_remote
from services.status.core.pod_network import range_warning
from services.status.core.pressure import hold, met_thresholds, pressures
from services.status.core.readiness import RuntimeView, capacity_problems, hear, runtime_problems
from services.status.core.remote_node import RemoteNode
from services.status.handlers.own_events import OwnEvents
from services.status.ports import NodeProbe, NodeStore, StoreUnavailable
from shared.bus import Bus, BusUnavailable
from shared.contracts.envelope import VERSION
from shared.contracts.registry import NODE_REPORT, RUNTIME_REPORT
from shared.contracts.status import NodeReport, RuntimeReport
from shared.runtime.clock import Clock
from shared.runtime.restart_event import node_object

log = logging.getLogger("podbus.status.node")

REPORT_SECONDS = 300.0
"""kubelet 1.36: nodeStatusReportFrequency's default: an unchanged node is published this often."""


class NodeStatus:
    """Fed by a watch on podbus_status; `run` is a guarded task."""

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        store: NodeStore,
        probe: NodeProbe,
        own_events: OwnEvents,
        settings: NodeSettings,
        period: float,
    ) -> None:
        """`period`: seconds between two computations."""
        self._bus = bus
        self._clock = clock
        self._store = store
        self._probe = probe
        self._own = own_events
        self._settings = settings
        self._period = period
        self._involved = node_object(settings.name)
        self._runtime = RuntimeView()
        self._memory = NodeMemory(created_at=clock.now())
        self._saved: NodeMemory | None = None
        self._pressures: dict[str, float] = {}
        self._told_signals: set[str] = set()
        self._published: Node | None = None
        self._published_at = 0.0
        self._told_range = ""
        self._trouble = ""
        self._listed = asyncio.Event()
        self._now_please = asyncio.Event()
        self.published = asyncio.Event()
        """Set once the node is on the bus."""
        self._remote: RemoteNode | None = None
        self._on_node: Callable[[Node], None] | None = None
        self._on_counted: Callable[[Mapping[str, Tally]], None] | None = None
        bus.on_reconnect(self._again)

    def report_to(self, on_node: Callable[[Node], None], on_counted: Callable[[Mapping[str, Tally]], None]) -> None:
        """From now on `on_node` is called with each node that is computed, `on_counted` with the node's events, by
        key, once they are in the history."""
        self._on_node, self._on_counted = on_node, on_counted

    def note_remote(self, remote: RemoteNode) -> None:
        """The Node as the API server has it: the bus gets to know its labels, taints and UID."""
        before, self._remote = self._remote, remote
        if before is None or (before.metadata, before.spec) != (remote.metadata, remote.spec):
            self._now_please.set()
        if (event := schedulable_event(self._settings.name, before, remote)) is not None:
            self._own.tell_all([event], self._involved)

    # -- what comes in ----------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Go on from what status.db remembers; without it the node begins anew."""
        at = self._clock.boot_seconds()
        try:
            self._saved = self._store.load_node()
        except (StoreUnavailable, msgspec.MsgspecError) as error:
            log.error("the node's past isn't known error=%s", error)
        if self._saved is None:
            return
        self._memory = self._saved
        so = {kind for kind, known in self._memory.conditions.items() if known.status == "True"}
        self._pressures = {kind: at for kind in PRESSURES if kind in so}
        if READY in so and self._memory.boot_id == self._clock.boot_id():
            # Only we were away: the runtime has as long to be heard as it has otherwise.
            self._runtime = RuntimeView(good_at=at)

    def on_list(self, entries: Mapping[str, bytes]) -> None:
        """A missing report changes nothing: its writer brings it back, or falls silent."""
        if NODE_REPORT.key() not in entries:
            self._again()
        if (raw := entries.get(RUNTIME_REPORT.key())) is not None:
            self._hear(raw)
        self._listed.set()

    def on_change(self, key: str, value: bytes | None) -> None:
        if key == RUNTIME_REPORT.key() and value is not None:
            self._hear(value)
        elif key == NODE_REPORT.key() and value is None:
            self._again()

    def _hear(self, raw: bytes) -> None:
        try:
            report = msgspec.json.decode(raw, type=RuntimeReport)
        except msgspec.MsgspecError as error:
            log.error("message not understood key=%s error=%s", RUNTIME_REPORT.key(), error)
            return
        before = self._runtime
        at = self._clock.boot_seconds()
        self._runtime = hear(before, report, self._clock.now(), at)
        if (
            before.report is None
            or before.report.engine_version != report.engine_version
            or bool(runtime_problems(before, at)) != bool(runtime_problems(self._runtime, at))
        ):
            self._now_please.set()

    def _again(self) -> None:
        """The store may be new."""
        self._published = None
        self._now_please.set()

    # -- what goes out ----------------------------------------------------------------------------------------

    async def run(self) -> None:
        await self._listed.wait()
        while True:
            self._now_please.clear()
            node = self._compute()
            self._keep()
            if self._on_node is not None:
                self._on_node(node)
            try:
                await self._publish(node if self._remote is None else with_remote(node, self._remote))
            except BusUnavailable as error:
                log.debug("node waits error=%s", error)
            try:
                await asyncio.wait_for(self._now_please.wait(), self._period)
            except TimeoutError:
                continue

    def _compute(self) -> Node:
        now, at = self._clock.now(), self._clock.boot_seconds()
        report = self._runtime.report
        seen = self._probe.observe(report.root_dir if report else "")
        met = met_thresholds(self._settings.eviction_hard, seen)
        self._tell_signals(met)
        self._pressures = hold(self._pressures, pressures(met), at)
        problems = [*runtime_problems(self._runtime, at), *capacity_problems(seen)]
        self._note_boot(seen)
        self._tell_range(report.subnets if report else [])
        verdict = judge(self._settings.name, self._memory, self._pressures.keys(), problems, now)
        self._memory = verdict.memory
        for event in verdict.events:
            why = f" why={'; '.join(problems)}" if event.reason == "NodeNotReady" else ""
            log.info("condition flipped reason=%s%s", event.reason, why)
        self._own.tell_all(verdict.events, self._involved)
        return build_node(self._settings, seen, report, verdict.conditions, self._memory.created_at)

    def _note_boot(self, seen: Observation) -> None:
        boot_id = seen.system.boot_id
        if (event := reboot_event(self._settings.name, self._memory, boot_id)) is not None:
            self._own.tell_all([event], self._involved)
        self._memory = msgspec.structs.replace(self._memory, boot_id=boot_id or self._memory.boot_id)

    def _tell_range(self, subnets: Sequence[str]) -> None:
        """Once per cause."""
        cidrs = self._remote.pod_cidrs if self._remote else []
        event = range_warning(self._settings.name, cidrs, subnets)
        if event is not None and event.message != self._told_range:
            log.warning("%s", event.message)
            self._own.tell_all([event], self._involved)
        self._told_range = event.message if event is not None else ""

    def _tell_signals(self, met: set[str]) -> None:
        if met != self._told_signals and met:
            log.warning("below evictionHard: %s", ", ".join(sorted(met)))
        self._told_signals = met

    def _keep(self) -> None:
        """A full disk delays it: the next computation tries again."""
        events = self._own.waiting
        if not events and self._memory == self._saved:
            return
        try:
            counted = self._store.save_node(self._memory, events, self._clock.now())
        except StoreUnavailable as error:
            if not self._trouble:
                log.error("the node's past isn't kept error=%s", error)
            self._trouble = str(error)
            return
        self._trouble = ""
        self._saved = self._memory
        self._own.kept(events)
        if self._on_counted is not None:
            self._on_counted(counted)

    async def _publish(self, node: Node) -> None:
        at = self._clock.boot_seconds()
        known = self._published
        if known is not None and at - self._published_at < REPORT_SECONDS and same_but_heartbeat(node, known):
            return
        body = msgspec.Raw(msgspec.json.encode(node))
        await self._bus.put(NODE_REPORT, NodeReport(v=VERSION, node=self._bus.node, ts=self._clock.now(), body=body))
        if not self._now_please.is_set():  # else the store may be another one than the one we wrote to
            self._published, self._published_at = node, at
        self.published.set()
