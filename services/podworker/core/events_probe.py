"""The events of probes in the kubelet's words, and how many of them a pod may cause."""

from __future__ import annotations

import msgspec

from services.podworker.core.events_text import PodEvent
from services.podworker.core.probe_outcomes import Result
from services.podworker.core.probes import ProbeKind

MAX_TEXT = 1024
"""Of a message; the API server takes no more."""
BURST = 25
REFILL_SECONDS = 300.0

_NAMES: dict[ProbeKind, str] = {"startup": "Startup", "liveness": "Liveness", "readiness": "Readiness"}


def probe_event(container: str, kind: ProbeKind, result: Result) -> PodEvent | None:
    """None for a success."""
    match result.kind:
        case "success":
            return None
        case "warning":
            return _event("ProbeWarning", f"{_NAMES[kind]} probe warning: {result.text}", container)
        case "failure":
            return _event("Unhealthy", f"{_NAMES[kind]} probe failed: {result.text}", container)
        case "error":
            text = f"{_NAMES[kind]} probe errored and resulted in unknown state: {result.text}"
            return _event("Unhealthy", text, container)


def _event(reason: str, message: str, container: str) -> PodEvent:
    if len(message) > MAX_TEXT:
        message = f"{message[: MAX_TEXT - 3]}..."
    return PodEvent(type="Warning", reason=reason, message=message, container=container)


class EventAllowance(msgspec.Struct, frozen=True, kw_only=True):
    """client-go's spam filter: 25 events of a pod at once, then one each five minutes. A probe that fails each second
    for ever would write to the disk each second."""

    left: float = BURST
    at: float = 0.0


def spend(allowance: EventAllowance, now: float) -> EventAllowance | None:
    """What is left after one more event; None = it isn't told."""
    left = min(float(BURST), allowance.left + max(0.0, now - allowance.at) / REFILL_SECONDS)
    return EventAllowance(left=left - 1, at=now) if left >= 1 else None
