"""One pod at its owner: a task that looks, asks the core, acts, stores and reports, until nothing is left to do.

Level-triggered: every wake looks at everything anew, so no lost, doubled or late message changes the outcome.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field

from msgspec.structs import replace

from services.podworker.core import events_text
from services.podworker.core.actions import compute_pod_actions
from services.podworker.core.events_text import PodEvent
from services.podworker.core.generate import generate_status, remember_status
from services.podworker.core.hooks import record_hook_end
from services.podworker.core.model import PodMemory, Preemption, RuntimePod
from services.podworker.core.plan import Plan
from services.podworker.core.preemption import preempt
from services.podworker.core.state import nothing_of, readmit, sync_state
from services.podworker.handlers.execute import Execution
from services.podworker.handlers.hooks import PodHooks
from services.podworker.handlers.placing import Placing
from services.podworker.handlers.pod_context import PodContext
from services.podworker.handlers.pod_record import PodRecord
from services.podworker.handlers.probes import PodProbes
from services.podworker.handlers.resizing import resized
from services.podworker.handlers.wanted_pod import WantedPod
from services.podworker.ports import RuntimeRefused, RuntimeUnavailable, StoredPod, StoreUnavailable
from shared.kube.pod import Pod

log = logging.getLogger("podbus.podworker.pod")

RETRY_SECONDS = 10.0
"""After an error, times 1.0..1.5."""
RUNTIME_RETRY_SECONDS = 1.0
"""While the engine doesn't answer."""
READMIT_SECONDS = 10.0
"""How often a rejected static pod is judged again: the cause may have gone."""
PREEMPTION_SECONDS = 1.0
"""A critical pod looks this often whether its victims have ended, a pod that seems misplaced how the node is now."""
CONFIRMED_SECONDS = 15.0
"""So long after a complete list a pod in which nothing happened is taken for what that list showed."""
_MAX_ROUNDS = 12
"""Plans in one sync; what isn't settled then waits for the next wake."""


@dataclass
class PodTask:
    """The pod's live state at its owner. All methods run on the loop."""

    uid: str
    namespace: str
    name: str
    context: PodContext
    record: PodRecord
    runtime: RuntimePod | None = None
    """As last seen."""
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _stopping: bool = False
    _over: bool = False
    _execution: Execution | None = None
    """The plan that is being carried out."""
    _readmit_at: float = 0.0
    _is_preempted: bool = False
    _confirmed_at: float = float("-inf")
    """When a complete list showed the pod as it was last seen; seconds since boot."""

    def __post_init__(self) -> None:
        self._wanted = WantedPod(self.context, self.record, self.uid, self.namespace, self.name)
        self._placing = Placing(self.context)
        self._hooks = PodHooks(self.context.hooks, self.wake)
        self._full_name = events_text.full_name(self.namespace, self.name, self.uid)
        self._probes = PodProbes(self.context.prober, self._full_name, self.wake, self._tell_of_probe)

    @classmethod
    def of(cls, context: PodContext, uid: str, namespace: str, name: str, stored: StoredPod | None) -> PodTask:
        return cls(uid, namespace, name, context, PodRecord.of(stored))

    @property
    def has_started(self) -> bool:
        """Admitted, or something of it is there though its row was lost: it holds its name until it's gone."""
        memory = self.record.memory
        if memory is not None and memory.admitted:
            return True
        return self.runtime is not None and bool(self.runtime.containers or self.runtime.sandboxes)

    @property
    def waits_for_admission(self) -> bool:
        """Not judged yet, or turned down: another pod's end may be what it waits for."""
        memory = self.record.memory
        return memory is None or not memory.admitted

    def wake(self) -> None:
        self._woken.set()
        if self._execution is not None and self._wanted.is_to_end():
            self._execution.give_up()

    def config_changed(self) -> None:
        """A ConfigMap or Secret that the pod refers to."""
        self.context.executor.volumes.config_changed(self.uid)
        self._woken.set()

    def judge_again(self) -> None:
        """Another pod has ended: what a rejected pod lacked may be free now."""
        self._readmit_at = 0.0
        self._woken.set()

    def preempt(self) -> None:
        """A critical pod needs the room."""
        if not self._is_preempted:
            self._is_preempted = True
            self._woken.set()

    def see(self, runtime: RuntimePod | None) -> None:
        """A complete list showed this; look closer only if that's news."""
        if runtime != self.runtime:
            self._woken.set()
        else:
            self._confirmed_at = self.context.executor.clock.boot_seconds()

    def stop(self) -> None:
        """End after the current look: the slot goes to another worker. A pull that is under way isn't waited for: the
        next owner asks for it, and the engine has kept the layers."""
        self._stopping = True
        self._woken.set()
        if self._execution is not None:
            self._execution.give_up()

    async def run(self) -> None:
        """Until the pod is gone or the slot goes. Never raises: an error of one pod is that pod's."""
        try:
            while not self._stopping:
                wait = await self._sync_guarded()
                if self._over:
                    self.context.ended(self)
                    return
                await self._rest(wait)
        finally:
            try:
                await self._hooks.close()
            finally:
                self._take_ended_hooks()
                self._take_last_verdicts()
                self._check_point()

    async def _rest(self, seconds: float) -> None:
        """Until something wakes us; not at all when the slot is to go."""
        if not self._stopping:
            try:
                await asyncio.wait_for(self._woken.wait(), seconds)
            except TimeoutError:
                return

    def _check_point(self) -> None:
        """The next owner goes on from what the last look has done, also when that was cut."""
        memory = self.record.memory
        if memory is not None and self.record.stored is not None:  # without a row nothing was done for it yet
            self.context.recorder.save(self.record, memory, [])

    async def _sync_guarded(self) -> float:
        """One sync; how many seconds to wait at most before the next."""
        rng = self.context.rng
        try:
            wake_at = await self._sync()
        except RuntimeUnavailable as error:
            log.warning("engine away pod=%s/%s error=%s", self.namespace, self.name, error)
            return RUNTIME_RETRY_SECONDS * rng.uniform(1.0, 1.5)
        except RuntimeRefused as error:
            log.warning("engine refused pod=%s/%s reason=%s error=%s", self.namespace, self.name, error.reason, error)
            self._tell([events_text.sync_failed(error.reason, error.message)])
            return RETRY_SECONDS * rng.uniform(1.0, 1.5)
        except StoreUnavailable as error:
            log.error("not stored pod=%s/%s error=%s", self.namespace, self.name, error)
            return RETRY_SECONDS * rng.uniform(1.0, 1.5)
        except Exception:  # the boundary: one pod's error must not end the others
            log.exception("sync failed pod=%s/%s uid=%s", self.namespace, self.name, self.uid)
            return RETRY_SECONDS * rng.uniform(1.0, 1.5)
        resync = self.context.sync_seconds * rng.uniform(1.0, 1.5)
        return resync if wake_at is None else max(0.0, min(resync, wake_at - self._now()))

    async def _sync(self) -> float | None:
        gen = self._stored_gen()
        self.context.handled(self.uid, gen, True)
        operation, began_at = self._operation(gen), time.monotonic()
        if operation == "create" and (desired := self.context.desired.get(self.uid)) is not None:
            self.context.measures.worker_start_seconds.observe(max(0.0, self._now() - desired.seen))
        try:
            return await self._settle()
        finally:
            self.context.measures.sync_seconds.observe(time.monotonic() - began_at, operation)
            self.context.handled(self.uid, self._stored_gen() or gen, False)

    def _operation(self, gen: int) -> str:
        """As kubelet's pod workers call it, by what is known before the look."""
        memory = self.record.memory
        if memory is None or gen == 0:
            return "create"
        if memory.termination is not None or self._wanted.is_to_end():
            return "kill"
        desired = self.context.desired.get(self.uid)
        return "update" if desired is not None and desired.gen != memory.gen else "sync"

    def _stored_gen(self) -> int:
        """What the next owner starts from; 0 = nothing: a pod that waits for its turn has no row yet."""
        return self.record.stored.gen if self.record.stored is not None else 0

    async def _settle(self) -> float | None:
        """Look, plan, act, until there's nothing to do; when to look again (None = at the next resync)."""
        is_known = self._is_confirmed()
        for _ in range(_MAX_ROUNDS):
            # what woke us so far, the events of our own last actions among it, this look sees
            self._woken.clear()
            if not is_known:
                self.runtime = await self.context.executor.runtime.pod(self.uid)
            runtime = self.runtime
            self.context.recorder.follow_clock(self.record)
            self._take_ended_hooks()
            memory = self._wanted.taken(runtime)
            if memory is None:
                self._over = self._wanted.is_nothing(runtime)
                return None
            shown = runtime if runtime is not None else nothing_of(memory)
            memory = self.context.executor.volumes.with_retries(memory)
            memory = self._probes.taken_into(memory, shown)
            if memory.termination is None and not memory.admitted:
                judged = await self._admit(memory)
                if isinstance(judged, float):
                    return judged
                memory = judged
            if self._is_preempted:
                memory, told = preempt(self._wanted.definition(), memory, shown)
                self._tell(told)
            if (pod := self._wanted.definition()) is not None:
                pod, memory, events = resized(self.context, self.record, pod, memory)
                self._tell(events)
            plan = compute_pod_actions(pod, memory, shown, now=self._now(), config=self.context.executor.config)
            if is_known and (plan.actions or plan.memory.termination is not None):
                is_known = False  # before anything is done, it's looked at
                continue
            self._keep(pod, plan.memory, shown, plan.events)
            self._hooks.follow(plan.hooks, self._full_name)
            self._probes.follow(pod, self.record.memory or plan.memory, shown)
            if sync_state(plan.memory, shown) == "finished" and plan.memory.termination is not None:
                return await self._finish()
            if not plan.actions:
                self._tell_at_once(await self.context.executor.volumes.look_after(pod, plan.memory, shown))
                return self._next_look(plan)
            await self._execute(pod, plan, shown)
            if self._stopping:
                return None
        return self._now() + RETRY_SECONDS

    def _is_confirmed(self) -> bool:
        """Nothing has woken us and the last complete list showed the pod as it was: a resync needn't ask the engine,
        which for a hundred pods would be most of its work at rest."""
        if self._woken.is_set() or self.runtime is None:
            return False
        return self.context.executor.clock.boot_seconds() - self._confirmed_at < CONFIRMED_SECONDS

    def _next_look(self, plan: Plan) -> float | None:
        if plan.memory.rejection is not None and plan.memory.source != "api":
            return self._readmit_at
        return plan.wake_at

    async def _admit(self, memory: PodMemory) -> PodMemory | float:
        """The memory after admission; the time of the next look while others must go first: one of that name, or those
        that make room."""
        pod = self._wanted.definition()
        assert pod is not None
        if memory.rejection is not None:
            if self._now() < self._readmit_at:
                return memory
            before = memory.rejection
            memory = readmit(memory)
            if memory.rejection is not None:
                return memory
        else:
            before = None
        demand = await self._placing.demand(pod, self.uid, memory.source)
        if demand is None or not self.context.may_start(self):
            self.record.memory = memory
            return self._now() + (READMIT_SECONDS if demand is not None else PREEMPTION_SECONDS)
        rejection = self.context.recorder.admit(self.record, memory, demand, self.context.limits)
        if rejection is None:
            return self.context.recorder.admitted(memory)
        if isinstance(rejection, Preemption):
            log.info("preempts pod=%s/%s victims=%s", self.namespace, self.name, ",".join(rejection.victims))
            self.record.memory = memory
            self.context.preempt(rejection.victims)
            return self._now() + PREEMPTION_SECONDS
        self._readmit_at = self._now() + READMIT_SECONDS
        if before != rejection:
            self._tell([events_text.rejected(rejection.reason, rejection.message)])
        return replace(memory, rejection=rejection)

    def _keep(
        self,
        pod: Pod | None,
        memory: PodMemory,
        runtime: RuntimePod,
        events: tuple[PodEvent, ...] | list[PodEvent],
    ) -> None:
        """Store memory and status before anything is done about them, then report."""
        now = self._now()
        if pod is not None:
            before = memory.status.phase if memory.status is not None else ""
            status = generate_status(pod, memory, runtime, node_ip=self.context.node_ip, now=now)
            memory = remember_status(memory, status, now=now)
            if before in ("", "Pending") and status.phase == "Running" and memory.seen_at:
                self.context.measures.pod_start_seconds.observe(max(0.0, now - memory.seen_at))
        self.context.recorder.save(self.record, memory, events)
        self._report(memory, runtime)

    def _take_ended_hooks(self) -> None:
        """What came of the hooks that have ended, put into the memory."""
        for run, error in self._hooks.take_ended():
            if self.record.memory is not None:
                self.record.memory, events = record_hook_end(self.record.memory, run, error)
                self._tell(list(events))

    def _take_last_verdicts(self) -> None:
        """The next owner goes on from what was found here."""
        self._probes.close()
        if self.record.memory is not None and self.runtime is not None:
            self.record.memory = self._probes.taken_into(self.record.memory, self.runtime)

    def _tell_of_probe(self, event: PodEvent) -> None:
        """At once: a verdict below its threshold makes no look that would store it."""
        self._tell_at_once([event])

    def _tell_at_once(self, events: list[PodEvent]) -> None:
        self._tell(events)
        if events and self.record.memory is not None and self.record.stored is not None:
            self.context.recorder.save(self.record, self.record.memory, [])

    def _tell(self, events: list[PodEvent]) -> None:
        self.record.untold.extend(self.context.recorder.events_of(self, events, self.record.container_lists))

    def _report(self, memory: PodMemory, runtime: RuntimePod) -> None:
        if memory.status is not None:
            wanted = self.context.desired.get(self.uid) is not None
            self.context.reports.publish(memory, runtime, self.record, with_body=not wanted)

    async def _execute(self, pod: Pod | None, plan: Plan, runtime: RuntimePod) -> None:
        for reason in plan.reasons:
            log.debug("pod=%s/%s %s", self.namespace, self.name, reason)
        sandbox = next((s.id for s in runtime.sandboxes if s.ready), "")

        def progress(memory: PodMemory) -> None:
            if pod is not None:
                status = generate_status(pod, memory, runtime, node_ip=self.context.node_ip, now=self._now())
                self.context.reports.publish_later(replace(memory, status=status), runtime, self.record)

        # with the memory that was kept: it holds the status, too
        memory = self.record.memory if self.record.memory is not None else plan.memory
        self._execution = execution = Execution(self.context.executor, pod, sandbox, memory, progress)
        try:
            await execution.run(plan)
        finally:
            self._execution = None
            self.record.memory = execution.outcome.memory
            self._tell(execution.outcome.events)

    async def _finish(self) -> float | None:
        """The pod was told to end and has: nothing of it stays. Wanted again by now, it starts anew."""
        await self.context.executor.runtime.remove_pod_leftovers(self.uid)
        desired = self.context.desired.get(self.uid)
        if desired is not None and desired.deletion_grace is not None:
            return None  # the record of its end stays until the API server has let it go
        source = self.record.memory.source if self.record.memory is not None else ""
        is_removed = self.context.desired.is_left_out(self.uid, source)
        self.context.recorder.forget(self.record, self.uid, is_removed=is_removed)
        if desired is not None:
            self._readmit_at = 0.0
            self._woken.set()
            return None
        self.context.reports.withdraw(self.uid)
        self._over = True
        return None

    def _now(self) -> float:
        return self.context.executor.clock.now()
