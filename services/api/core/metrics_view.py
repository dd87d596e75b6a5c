"""What the node's processes count and measure: the last word of each, and what the API itself adds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from services.api.core.metrics_text import merged
from shared.contracts.metrics import Family, MetricsReport
from shared.kube.status import ContainerStatus, PodStatus

REPORT_SECONDS = 35.0
"""A process that was silent for so long has ended: three of its reports are missing."""
PROBES = ("prober_probe_total", "process_start_time_seconds")
"""kubelet: the families of /metrics/probes; the first is there only."""


class MetricsView:
    """State only. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._reports: dict[str, tuple[float, MetricsReport]] = {}

    def heard(self, process: str, report: MetricsReport, now: float) -> None:
        self._reports[process] = (now, report)

    def families(self, own: Sequence[Family], now: float) -> list[Family]:
        """Of all processes that live, with this one's own; sorted by name."""
        self._reports = {name: found for name, found in self._reports.items() if now - found[0] <= REPORT_SECONDS}
        return merged([own, *(report.families for _, report in self._reports.values())])


def own_page(families: Iterable[Family]) -> list[Family]:
    return [family for family in families if family.name != PROBES[0]]


def probes_page(families: Iterable[Family]) -> list[Family]:
    return [family for family in families if family.name in PROBES]


class Reported(msgspec.Struct, frozen=True):
    """The part of a PodReport that is counted."""

    status: PodStatus


class Tally(msgspec.Struct, frozen=True):
    running_pods: int
    containers: dict[str, int]
    """State, as the kubelet's gauge calls it -> containers that exist."""


def tally(reports: Iterable[Reported]) -> Tally:
    """kubelet: pods with a running sandbox, and containers by state. Here a pod counts while any container of it runs
    or its phase is Running."""
    running, containers = 0, {"created": 0, "exited": 0, "running": 0, "unknown": 0}
    for report in reports:
        status = report.status
        found = [*status.init_container_statuses, *status.container_statuses, *status.ephemeral_container_statuses]
        states = [state for one in found if (state := _state(one))]
        for state in states:
            containers[state] += 1
        running += status.phase == "Running" or "running" in states
    return Tally(running, containers)


def _state(status: ContainerStatus) -> str:
    if status.state.running is not None:
        return "running"
    if status.state.terminated is not None and status.container_id:
        return "exited"
    return ""
