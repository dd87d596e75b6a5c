"""Whether the container runtime serves this node, judged by the reports of the worker that holds slot 0."""

from __future__ import annotations

import msgspec

from services.status.core.model import Observation
from shared.contracts.status import RuntimeReport
from shared.kube.duration import format_seconds

SILENT_SECONDS = 30.0
"""kubelet 1.36: without a good word from the runtime for longer, it's down. Bridges a restart of the engine."""
RELIST_SECONDS = 180.0
"""kubelet 1.36: the list of containers may be this old."""


class RuntimeView(msgspec.Struct, frozen=True, kw_only=True):
    """Instants are seconds of a clock that never steps: a stepped wall clock mustn't make the node NotReady."""

    report: RuntimeReport | None = None
    """The newest."""
    heard_at: float = 0.0
    """When it was written."""
    good_at: float | None = None
    """When the newest healthy one was written; None = there was none."""


def hear(view: RuntimeView, report: RuntimeReport, now: float, at: float) -> RuntimeView:
    """Take a report in that was read at `now` (wall clock, as its ts) and `at`. One read again changes nothing."""
    if view.report is not None and report.ts == view.report.ts:
        return view
    heard_at = at - max(0.0, now - report.ts)
    good_at = view.good_at
    if report.healthy:
        good_at = heard_at if good_at is None else max(good_at, heard_at)
    return RuntimeView(report=report, heard_at=heard_at, good_at=good_at)


def runtime_problems(view: RuntimeView, at: float) -> list[str]:
    """Why the runtime doesn't serve; none = it does. kubelet 1.36: the texts of its runtime state."""
    report = view.report
    if report is None and view.good_at is None:
        return ["container runtime status check may not have completed yet"]
    found: list[str] = []
    if view.good_at is None or at - view.good_at > SILENT_SECONDS:
        if report is None or report.healthy or at - view.heard_at > SILENT_SECONDS:
            found.append("container runtime is down: no podworker reports it")
        else:
            found.append(f"container runtime not ready: RuntimeReady=false message:{report.message}")
    if report is not None:
        found += _relist_problems(report, at - view.heard_at)
    return found


def _relist_problems(report: RuntimeReport, age: float) -> list[str]:
    if not report.relisted_at:
        return ["PLEG is not healthy: pleg has yet to be successful"]
    since = report.ts - report.relisted_at + age
    if since <= RELIST_SECONDS:
        return []
    ago, limit = format_seconds(float(int(since))), format_seconds(RELIST_SECONDS)
    return [f"PLEG is not healthy: pleg was last seen active {ago} ago; threshold is {limit}"]


def capacity_problems(seen: Observation) -> list[str]:
    """kubelet 1.36: a node that doesn't know what it has isn't ready."""
    missing = [
        name
        for name, value in (
            ("cpu", seen.cores or None),
            ("memory", seen.memory_total),
            ("ephemeral-storage", seen.nodefs),
        )
        if value is None
    ]
    return [f"missing node capacity for resources: {', '.join(missing)}"] if missing else []
