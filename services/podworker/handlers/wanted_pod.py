"""What the sources want of one pod: its definition, and its memory with the newest word about it."""

from __future__ import annotations

import logging

from services.podworker.core import events_text
from services.podworker.core.model import PodMemory, RuntimePod
from services.podworker.core.resize import keep_granted
from services.podworker.core.resources import cgroup_parent
from services.podworker.core.state import adopt, begin_termination, merge_update
from services.podworker.handlers.pod_context import PodContext
from services.podworker.handlers.pod_record import PodRecord
from shared.kube.pod import Pod, decode_pod

log = logging.getLogger("podbus.podworker.pod")


class WantedPod:
    """Belongs to the pod's task, and shares its record."""

    def __init__(self, context: PodContext, record: PodRecord, uid: str, namespace: str, name: str) -> None:
        self._context = context
        self._record = record
        self._uid = uid
        self._told_as = f"pod={namespace}/{name} uid={uid}"
        self._orphan = PodMemory(uid=uid, namespace=namespace, name=name, source="", admitted=True)
        self._pod: Pod | None = None
        self._pod_body = b""

    def definition(self) -> Pod | None:
        """The pod being run, decoded once per body; None for an orphan."""
        if not self._record.body:
            return None
        if self._pod is None or self._pod_body != self._record.body:
            self._pod, self._pod_body = decode_pod(self._record.body), self._record.body
            self._record.cgroup_parent = cgroup_parent(self._pod, self._context.executor.node)
            self._record.container_lists = events_text.container_lists(self._pod)
        return self._pod

    def is_nothing(self, runtime: RuntimePod | None) -> bool:
        """Nobody wants it, and there is nothing of it: neither a row nor a container."""
        return self._record.memory is None and self._context.desired.get(self._uid) is None and runtime is None

    def is_to_end(self) -> bool:
        """Its end was told, and no look has seen that yet."""
        memory = self._record.memory
        if memory is None or memory.termination is not None:
            return False
        desired = self._context.desired.get(self._uid)
        return self._is_removed(memory) or (desired is not None and desired.deletion_grace is not None)

    def taken(self, runtime: RuntimePod | None) -> PodMemory | None:
        """The memory with what is desired now; None when nothing is known that may be acted on."""
        context, record = self._context, self._record
        memory, desired = record.memory, context.desired.get(self._uid)
        if memory is None and desired is None:
            return self._ended_orphan(runtime)
        if memory is None and desired is not None and runtime is None and self._has_ended(desired.gen):
            return None
        if desired is not None:
            merged = merge_update(memory, desired)
            if merged.gen == desired.gen and merged.termination is None:
                merged = keep_granted(merged, record.body, bytes(desired.body))
                record.body = bytes(desired.body)
            if memory is None and runtime is not None and (runtime.containers or runtime.sandboxes):
                merged = adopt(merged, runtime, self._now())
                log.info("adopted %s", self._told_as)
            memory = merged
            if desired.deletion_grace is not None:
                memory = begin_termination(memory, self._now(), desired.deletion_grace, "deleted")
        assert memory is not None
        if memory.termination is None and self._is_removed(memory):
            memory = self._terminated(memory, runtime, "removed")
        return memory

    def _is_removed(self, memory: PodMemory) -> bool:
        return self._context.desired.verdict(self._uid, memory.source) == "removed"

    def _has_ended(self, gen: int) -> bool:
        ended = self._context.recorder.has_ended(self._uid, gen)
        if ended:
            log.info("not started, it has ended %s gen=%d", self._told_as, gen)
        return ended

    def _ended_orphan(self, runtime: RuntimePod | None) -> PodMemory | None:
        """Containers of ours that no source wants: ended by their labels, once every source was seen."""
        if runtime is None or not self._context.desired.all_sources_ready:
            return None
        log.warning("orphan %s: ending it", self._told_as)
        return self._terminated(self._orphan, runtime, "orphaned")

    def _terminated(self, memory: PodMemory, runtime: RuntimePod | None, reason: str) -> PodMemory:
        pod = self.definition()
        grace = runtime.grace_seconds if runtime is not None else 0
        if pod is not None:
            grace = pod.spec.termination_grace_period_seconds
        return begin_termination(memory, self._now(), grace, reason)

    def _now(self) -> float:
        return self._context.executor.clock.now()
