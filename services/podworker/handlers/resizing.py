"""Asks admission for what a changed definition wants: granted, deferred or never to be had."""

from __future__ import annotations

import logging

from services.podworker.core.demand import demand_of
from services.podworker.core.events_text import PodEvent
from services.podworker.core.model import PodMemory
from services.podworker.core.resize import never_fits, record_granted, record_pending, with_granted
from services.podworker.handlers.pod_context import PodContext
from services.podworker.handlers.pod_record import PodRecord
from shared.kube.pod import Pod

log = logging.getLogger("podbus.podworker.resize")


def resized(
    context: PodContext, record: PodRecord, pod: Pod, memory: PodMemory
) -> tuple[Pod, PodMemory, list[PodEvent]]:
    """The pod with the resources that it may have now. Raises StoreUnavailable."""
    if not memory.allocated or memory.termination is not None or not memory.admitted:
        return with_granted(pod, memory), memory, []
    limits = context.limits
    if reason := never_fits(pod, memory, limits):
        memory, events = record_pending(memory, "Infeasible", reason)
    else:
        granted, started = record_granted(pod, memory)
        rejection = context.recorder.resize(record, granted, demand_of(pod, limits.traits), limits)
        if rejection is None:
            log.info("resize granted pod=%s/%s", memory.namespace, memory.name)
            memory, events = granted, started
        else:
            memory, events = record_pending(memory, "Deferred", rejection.message)
    return with_granted(pod, memory), memory, events
