"""All pods of the slots that this worker owns: one task each, and the order among pods of one name."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from services.podworker.core.model import RuntimePod
from services.podworker.handlers.desired_pods import DesiredPods
from services.podworker.handlers.pod_context import PodContext
from services.podworker.handlers.pod_record import Recorder
from services.podworker.handlers.pod_task import PodTask
from services.podworker.handlers.reports import Reports
from services.podworker.ports import StoreUnavailable
from shared.kube.ids import slot_of

log = logging.getLogger("podbus.podworker.pods")

CHECKPOINT_SECONDS = 6.0
"""How long a slot that goes waits for a look that is under way; then the look is cut. What the engine was asked
for, it finishes by itself, and its names keep the next owner from doing it twice."""


class Pods:
    """Gained and lost with slots (Ownership's callbacks); fed by the bus, the engine's events and the relist."""

    def __init__(self, desired: DesiredPods, recorder: Recorder, reports: Reports) -> None:
        self._desired = desired
        self._recorder = recorder
        self._reports = reports
        self._context: PodContext | None = None
        self._tasks: dict[str, PodTask] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._names: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._slots: set[int] = set()
        self._listed: Mapping[str, RuntimePod] = {}

    def use(self, context: PodContext) -> None:
        """The context refers to this object, so it comes after it."""
        self._context = context

    def __len__(self) -> int:
        return len(self._tasks)

    # -- slots ------------------------------------------------------------------------------------------------

    def gained(self, slots: frozenset[int]) -> None:
        """Rows first, then what is desired, then what only the engine knows."""
        self._slots |= slots
        try:
            rows = self._recorder.load_slots(slots)
        except StoreUnavailable as error:
            log.error("rows not loaded, going on from labels error=%s", error)
            rows = []
        for row in rows:
            memory = row.memory
            if memory.uid not in self._tasks:
                self._add(PodTask.of(self._with(), memory.uid, memory.namespace, memory.name, row))
        for uid in [pod.uid for pod in self._desired]:
            self.desired_changed(uid)
        self._take_listed()

    async def lost(self, slot: int) -> None:
        """Let the slot's looks finish, at most CHECKPOINT_SECONDS, and forget its pods."""
        self._slots.discard(slot)
        tasks = [task for task in self._tasks.values() if slot_of(task.namespace, task.name) == slot]
        for task in tasks:
            task.stop()
        running = [self._running[task.uid] for task in tasks if task.uid in self._running]
        if running:
            _, late = await asyncio.wait(running, timeout=CHECKPOINT_SECONDS)
            for one in late:
                one.cancel()
            if late:
                await asyncio.wait(late)
        for task in tasks:
            self._drop(task)
            self._reports.leave(task.uid)

    # -- hints ------------------------------------------------------------------------------------------------

    def desired_changed(self, uid: str) -> None:
        """A pod's key changed; "" = a source's marker did: that may concern any."""
        if not uid:
            for task in self._tasks.values():
                memory = task.record.memory
                source = memory.source if memory is not None else ""
                if self._desired.verdict(task.uid, source) != "wanted":
                    task.wake()
            return
        if (known := self._tasks.get(uid)) is not None:
            known.wake()
            return
        desired = self._desired.get(uid)
        if desired is not None and self._ours(desired.namespace, desired.name):
            self._add(self._without_row(uid, desired.namespace, desired.name))

    def configs_changed(self, uids: Iterable[str]) -> None:
        """What these pods refer to has changed, come or gone: a hint."""
        for uid in uids:
            if (task := self._tasks.get(uid)) is not None:
                task.config_changed()

    def runtime_changed(self, uid: str) -> None:
        """The engine told of something about that pod."""
        if (task := self._tasks.get(uid)) is not None:
            task.wake()

    def listed(self, pods: Mapping[str, RuntimePod]) -> None:
        """A complete list: whoever looks different looks closer; who is unknown gets a task."""
        self._listed = pods
        for uid, task in self._tasks.items():
            task.see(pods.get(uid))
        self.preempt(self._recorder.preempted())
        self._take_listed()

    def wake_all(self) -> None:
        for task in self._tasks.values():
            task.wake()

    # -- names ------------------------------------------------------------------------------------------------

    def may_start(self, task: PodTask) -> bool:
        """An edited static pod has a new UID: it waits until the old one is gone. Of several that wait, the newest
        that is still wanted goes first."""
        if self._desired.get(task.uid) is None:
            return False
        others = [self._tasks[uid] for uid in self._names[task.namespace, task.name] if uid != task.uid]
        return not any(other.has_started or self._goes_first(other, task) for other in others)

    def _goes_first(self, other: PodTask, task: PodTask) -> bool:
        theirs, ours = self._desired.get(other.uid), self._desired.get(task.uid)
        if theirs is None or ours is None:
            return False
        return (theirs.seen, theirs.uid) > (ours.seen, ours.uid)

    def ended(self, task: PodTask) -> None:
        """Nothing of the pod is left: the next of its name, and whoever lacked what it held, may go."""
        self._drop(task)
        for other in self._tasks.values():
            if other.waits_for_admission:
                other.judge_again()

    def preempt(self, uids: Collection[str]) -> None:
        """They make room for a critical pod; those of other workers are seen there with the next list."""
        for uid in uids:
            if (task := self._tasks.get(uid)) is not None:
                task.preempt()

    # -- inside -----------------------------------------------------------------------------------------------

    def _ours(self, namespace: str, name: str) -> bool:
        return slot_of(namespace, name) in self._slots

    def _with(self) -> PodContext:
        assert self._context is not None
        return self._context

    def _take_listed(self) -> None:
        for uid, pod in self._listed.items():
            if uid not in self._tasks and self._ours(pod.namespace, pod.name):
                self._add(self._without_row(uid, pod.namespace, pod.name))

    def _without_row(self, uid: str, namespace: str, name: str) -> PodTask:
        """With what the last list showed of it, before its first look: if it's there, the next of its name waits."""
        task = PodTask.of(self._with(), uid, namespace, name, None)
        task.runtime = self._listed.get(uid)
        return task

    def _add(self, task: PodTask) -> None:
        self._tasks[task.uid] = task
        self._names[task.namespace, task.name].add(task.uid)
        self._running[task.uid] = asyncio.create_task(task.run(), name=f"pod {task.namespace}/{task.name}")

    def _drop(self, task: PodTask) -> None:
        if self._tasks.get(task.uid) is not task:
            return
        del self._tasks[task.uid]
        self._with().executor.volumes.forget(task.uid)
        self._running.pop(task.uid, None)
        same_name = self._names[task.namespace, task.name]
        same_name.discard(task.uid)
        if not same_name:
            del self._names[task.namespace, task.name]
