"""A node of several workers under everything that can happen to it: updates, deaths, and a bus that loses, repeats and
delays. The real handlers and planner over a model engine and a real pods.db; the time is a loop's own."""

from __future__ import annotations

import asyncio
import atexit
import shutil
from collections.abc import Coroutine
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeVar

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from services.podworker.adapters.database import DATABASE
from services.podworker.core.admission import NodeLimits
from services.podworker.core.demand import demand_of
from services.podworker.core.model import PodMemory
from shared.contracts.pods import PodDesired, SourceMarker
from shared.contracts.registry import POD_DESIRED, SOURCE_MARKER
from shared.kube.pod import Pod
from shared.storage.migrate import upgrade
from tests.support.model_runtime import ModelRuntime
from tests.support.model_worker import LoopClock, ModelWorker, shares
from tests.support.pod_versions import SPECS, a_version
from tests.support.virtual_loop import VirtualLoop
from tests.support.watched_store import WatchedStore

T = TypeVar("T")
NAMES = ("web", "db", "job", "agent")
LIMITS = NodeLimits(cpu_milli=1000, memory_bytes=1 << 30, pods=110)
FOREIGN = "f" * 64


CPU = ("", "400m", "700m")
PORTS = (0, 80, 81)
SCRIPTS: tuple[dict[str, str], ...] = ({}, {"model/ignore-term": "true"})


@cache
def an_empty_database() -> Path:
    """Made once: each node gets a copy."""
    directory = Path(mkdtemp(prefix="pb-node-"))
    atexit.register(shutil.rmtree, directory)
    upgrade(directory / DATABASE.file, DATABASE)
    return directory / DATABASE.file


class ANode(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.clock = LoopClock(self.loop)
        self.directory = Path(mkdtemp(prefix="pb-node-"))
        shutil.copy(an_empty_database(), self.directory / DATABASE.file)
        self.store = WatchedStore(self.directory)
        self.engine = ModelRuntime(self.clock.now)
        self.engine.foreign[FOREIGN] = "k8s_POD_foreign"
        self.told: dict[str, PodMemory] = {}
        self.bucket: dict[str, bytes] = {}
        self.pods: dict[str, Pod] = {}
        """Every version that was ever wanted, by UID."""
        self.may_end: set[str] = set()
        """UIDs of which a version may have run to its end: no edit takes that back."""
        self.wanted: dict[str, str] = {}
        """Name -> UID."""
        self.gen = 0
        self.workers: list[ModelWorker] = []

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(coroutine)

    @initialize(workers=st.integers(1, 3))
    def workers_start(self, workers: int) -> None:
        self._mark()
        for _ in range(workers):
            self.a_worker_joins()

    # -- workers

    @precondition(lambda self: len(self.workers) < 3)
    @rule()
    def a_worker_joins(self) -> None:
        self.workers.append(self.run(self._new_worker()))
        self._share()

    async def _new_worker(self) -> ModelWorker:
        worker = ModelWorker(self.engine, self.store, self.told, LIMITS, self.clock)
        await worker.start(self.bucket)
        return worker

    @precondition(lambda self: self.workers)
    @rule(index=st.integers(0, 2))
    def a_worker_dies(self, index: int) -> None:
        worker = self.workers.pop(index % len(self.workers))
        self.run(worker.end())
        self._share()

    @precondition(lambda self: self.workers)
    @rule(index=st.integers(0, 2), calls=st.integers(0, 12))
    def a_worker_dies_in_the_middle_of_something(self, index: int, calls: int) -> None:
        worker = self.workers[index % len(self.workers)]
        worker.life.calls_left = calls
        self._wait(15)
        self.workers.remove(worker)
        self.run(worker.end())
        self._share()

    @precondition(lambda self: self.workers)
    @rule(index=st.integers(0, 2))
    def a_worker_leaves(self, index: int) -> None:
        worker = self.workers.pop(index % len(self.workers))
        self.run(worker.take(frozenset()))
        self.run(worker.end())
        self._share()

    @precondition(lambda self: self.workers)
    @rule(index=st.integers(0, 2), is_deaf=st.booleans())
    def the_engines_events_reach_a_worker_or_not(self, index: int, is_deaf: bool) -> None:
        self.workers[index % len(self.workers)].is_deaf = is_deaf

    def _share(self) -> None:
        """A slot is taken from one before another gets it."""
        mine = dict(zip(self.workers, shares(len(self.workers)), strict=True)) if self.workers else {}
        for worker, slots in mine.items():
            self.run(worker.take(slots))
        for worker, slots in mine.items():
            self.run(worker.give(slots))

    # -- the bus

    @rule(
        name=st.sampled_from(NAMES),
        spec=st.sampled_from(SPECS),
        cpu=st.sampled_from(CPU),
        port=st.sampled_from(PORTS),
        script=st.sampled_from(SCRIPTS),
        keeps_uid=st.sampled_from([True, False, False]),
        promptly=st.sampled_from([True, True, False]),
    )
    def a_pod_is_wanted(
        self,
        name: str,
        spec: dict[str, Any],
        cpu: str,
        port: int,
        script: dict[str, str],
        keeps_uid: bool,
        promptly: bool,
    ) -> None:
        """A new one, or an edit of the one of that name, with its UID or another."""
        self.gen += 1
        before = self.wanted.get(name)
        uid = before if keeps_uid and before is not None else f"{self.gen:032x}"
        pod = a_version(name, uid, spec, cpu, port, script)
        if before is not None and before != uid:
            self._send(POD_DESIRED.key(before), None)
        self.wanted[name] = uid
        self.pods[uid] = pod
        if pod.spec.restart_policy != "Always":
            self.may_end.add(uid)
        self._send(POD_DESIRED.key(uid), self._desired(pod))
        self._mark()
        if promptly:
            self.the_bus_delivers_everything()

    @precondition(lambda self: self.wanted)
    @rule(name=st.sampled_from(NAMES))
    def a_pod_is_taken_away(self, name: str) -> None:
        if (uid := self.wanted.pop(name, None)) is not None:
            self.gen += 1
            self._send(POD_DESIRED.key(uid), None)
            self._mark()

    @rule()
    def the_bus_delivers_everything(self) -> None:
        for worker in self.workers:
            while worker.messages:
                self.run(worker.deliver())
        self._wait(0)

    @precondition(lambda self: any(worker.messages for worker in self.workers))
    @rule(index=st.integers(0, 2), how=st.sampled_from(["delivers", "repeats", "loses"]))
    def the_bus(self, index: int, how: str) -> None:
        worker = self.workers[index % len(self.workers)]
        if not worker.messages:
            return
        if how == "repeats":
            worker.messages.appendleft(worker.messages[0])
        if how == "loses":
            worker.messages.popleft()
        else:
            self.run(worker.deliver())
        self._wait(0)

    @precondition(lambda self: self.workers)
    @rule(index=st.integers(0, 2), is_wiped=st.booleans())
    def a_worker_lists_the_bucket(self, index: int, is_wiped: bool) -> None:
        self.run(self.workers[index % len(self.workers)].list_bucket({} if is_wiped else self.bucket))
        self._wait(0)

    def _desired(self, pod: Pod) -> bytes:
        meta = pod.metadata
        return msgspec.json.encode(
            PodDesired(
                v=1,
                node="n1",
                ts=self.clock.now(),
                uid=meta.uid,
                namespace=meta.namespace,
                name=meta.name,
                source="file",
                gen=self.gen,
                hash=str(self.gen),
                seen=self.clock.now(),
                body=msgspec.Raw(msgspec.json.encode(pod)),
            )
        )

    def _mark(self) -> None:
        uids, now = sorted(self.wanted.values()), self.clock.now()
        marker = SourceMarker(v=1, node="n1", ts=now, source="file", ready=True, epoch="1", uids=uids)
        self._send(SOURCE_MARKER.key("file"), msgspec.json.encode(marker))

    def _send(self, key: str, value: bytes | None) -> None:
        if value is None:
            self.bucket.pop(key, None)
        else:
            self.bucket[key] = value
        for worker in self.workers:
            worker.messages.append((key, value))

    # -- the engine

    @rule(seconds=st.sampled_from([0.5, 3.0, 11.0, 70.0]))
    def time_passes(self, seconds: float) -> None:
        self._wait(seconds)

    @rule(place=st.integers(0, 20), code=st.sampled_from([0, 1, 137]))
    def a_container_dies(self, place: int, code: int) -> None:
        running = [c for c in self.engine.containers.values() if c.is_running]
        if running:
            running[place % len(running)].end(code, self.clock.now())
            self._wait(0)

    @rule(place=st.integers(0, 20))
    def a_container_is_removed_by_hand(self, place: int) -> None:
        if self.engine.containers:
            del self.engine.containers[list(self.engine.containers)[place % len(self.engine.containers)]]

    @rule(place=st.integers(0, 20))
    def a_sandbox_dies(self, place: int) -> None:
        ready = [s.id for s in self.engine.sandboxes.values() if s.ready]
        if ready:
            self.engine.kill_sandbox(ready[place % len(ready)])
            self._wait(0)

    @rule(is_away=st.booleans())
    def the_engine_answers_or_not(self, is_away: bool) -> None:
        self.engine.unavailable = is_away

    def _wait(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds + 0.001))

    # -- what must hold at any time

    @invariant()
    def a_pod_has_at_most_one_live_sandbox(self) -> None:
        live = [s.config.uid for s in self.engine.sandboxes.values() if s.ready]
        assert len(live) == len(set(live))

    @invariant()
    def of_one_name_one_version_runs(self) -> None:
        running = {(c.config.pod, c.config.uid) for c in self.engine.containers.values() if c.is_running}
        assert len(running) == len({name for name, _ in running})

    @invariant()
    def the_node_is_not_oversubscribed(self) -> None:
        self.engine.tick()
        active = {c.config.uid for c in self.engine.containers.values() if c.is_running}
        active |= {s.config.uid for s in self.engine.sandboxes.values() if s.ready}
        demands = [self.store.demands[uid] for uid in active]
        assert sum(demand.cpu_milli for demand in demands) <= LIMITS.cpu_milli
        ports = [port for demand in demands for port in demand.host_ports]
        assert len(ports) == len(set(ports))

    @invariant()
    def nothing_foreign_is_touched(self) -> None:
        assert FOREIGN in self.engine.foreign, "and the engine itself refuses every call for it"

    @invariant()
    def no_fault_was_found_in_what_was_stored(self) -> None:
        assert not self.store.faults

    # -- what must hold in the end

    def teardown(self) -> None:
        try:
            if not self.store.faults:
                self._left_alone_all_is_as_wanted()
        finally:
            for worker in self.workers:
                self.run(worker.end())
            self.loop.close()
            self.store.close()
            shutil.rmtree(self.directory)

    def _left_alone_all_is_as_wanted(self) -> None:
        self.engine.unavailable = False
        if not self.workers:
            self.a_worker_joins()
        for worker in self.workers:
            self.run(worker.list_bucket(self.bucket))
        self._wait(1500)
        self.no_fault_was_found_in_what_was_stored()
        self.the_node_is_not_oversubscribed()
        known = {c.config.uid for c in self.engine.containers.values()}
        known |= {s.config.uid for s in self.engine.sandboxes.values()}
        assert known <= set(self.wanted.values()), "what nobody wants is gone"
        assert self.store.all_uids() == set(self.wanted.values())
        for uid in self.wanted.values():
            self._is_as_wanted(self.pods[uid], self.told[uid])

    def _is_as_wanted(self, pod: Pod, memory: PodMemory) -> None:
        assert memory.status is not None
        if memory.rejection is not None:
            assert self._has_no_room(pod), f"{memory.rejection}, and there is room"
            return
        phase, spec = memory.status.phase, pod.spec
        if phase in ("Succeeded", "Failed") and pod.metadata.uid in self.may_end:
            return
        if spec.restart_policy == "Always":
            assert phase == "Running", memory.status
            serves = {c.name for c in spec.containers if c.command == ["serve"]}
            serves |= {c.name for c in spec.init_containers if c.restart_policy == "Always"}
            running = {
                c.config.container
                for c in self.engine.containers.values()
                if c.config.uid == pod.metadata.uid and c.is_running
            }
            assert serves <= running
        elif not self._lost_its_sandbox_before_it_ran(pod):
            assert phase == "Running", memory.status

    def _lost_its_sandbox_before_it_ran(self, pod: Pod) -> bool:
        """kubelet: a Never pod gets no second sandbox once it had any container, and stays Pending when its init
        containers were through and no other had been made."""
        uid, regular = pod.metadata.uid, {c.name for c in pod.spec.containers}
        if pod.spec.restart_policy != "Never" or any(
            s.config.uid == uid for s in self.engine.sandboxes.values() if s.ready
        ):
            return False
        return not any(c.config.container in regular for c in self.engine.containers.values() if c.config.uid == uid)

    def _has_no_room(self, pod: Pod) -> bool:
        others = [
            self.store.demands[uid]
            for uid in self.wanted.values()
            if uid != pod.metadata.uid and self.told[uid].rejection is None
        ]
        demand = demand_of(pod)
        taken = {port for other in others for port in other.host_ports}
        is_full = sum(other.cpu_milli for other in others) + demand.cpu_milli > LIMITS.cpu_milli
        return is_full or bool(taken & set(demand.host_ports))


ANode.TestCase.settings = settings(
    max_examples=30,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestANode = ANode.TestCase
