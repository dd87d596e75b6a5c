"""What the API makes of the processes' reports, and how it names paths."""

from __future__ import annotations

import pytest

from services.api.core.metrics_view import REPORT_SECONDS, MetricsView, Reported, own_page, probes_page, tally
from services.api.core.served_paths import is_long_running, path_label
from shared.contracts.metrics import Family, MetricsReport, Sample
from shared.kube.status import (
    ContainerState,
    ContainerStatus,
    PodPhase,
    PodStatus,
    StateRunning,
    StateTerminated,
    StateWaiting,
)


def family(name: str, value: float) -> Family:
    return Family(name, "counter", "text", (), (Sample((), value),))


def report(value: float) -> MetricsReport:
    return MetricsReport(at=0.0, families=(family("podbus_x", value),))


def values(families: list[Family]) -> dict[str, float]:
    return {one.name: one.samples[0].value for one in families}


def test_the_last_report_of_each_process_counts_and_the_sum_is_told() -> None:
    view = MetricsView()
    view.heard("podworker-0", report(1), 10)
    view.heard("podworker-1", report(10), 10)
    view.heard("podworker-0", report(2), 20)
    assert values(view.families([family("podbus_own", 5)], 20)) == {"podbus_own": 5, "podbus_x": 12}


def test_a_process_that_was_silent_for_long_is_left_out() -> None:
    view = MetricsView()
    view.heard("podworker-0", report(1), 0)
    view.heard("podworker-1", report(10), 20)
    assert values(view.families([], REPORT_SECONDS)) == {"podbus_x": 11}
    assert values(view.families([], REPORT_SECONDS + 1)) == {"podbus_x": 10}
    assert view.families([], 1000) == []


def test_results_of_probes_are_on_their_own_page() -> None:
    found = [family(name, 1) for name in ("kubelet_x", "prober_probe_total", "process_start_time_seconds")]
    assert [one.name for one in own_page(found)] == ["kubelet_x", "process_start_time_seconds"]
    assert [one.name for one in probes_page(found)] == ["prober_probe_total", "process_start_time_seconds"]


def container(state: ContainerState, id_: str = "docker://1") -> ContainerStatus:
    return ContainerStatus(
        name="c",
        state=state,
        last_state=ContainerState(),
        ready=False,
        restart_count=0,
        image="",
        image_id="",
        started=False,
        container_id=id_,
    )


RUNNING = ContainerState(running=StateRunning(started_at=None))
ENDED = ContainerState(terminated=StateTerminated(exit_code=0, started_at=None, finished_at=None))
WAITING = ContainerState(waiting=StateWaiting(reason="x"))


def pod(phase: PodPhase, *states: ContainerState) -> Reported:
    found = [container(state, "" if state is WAITING else "docker://1") for state in states]
    return Reported(PodStatus(phase=phase, qos_class="BestEffort", container_statuses=found))


def test_containers_count_by_what_they_do_and_pods_while_anything_of_them_runs() -> None:
    found = tally(
        [pod("Running", RUNNING, ENDED), pod("Pending", WAITING), pod("Pending", RUNNING), pod("Succeeded", ENDED)]
    )
    assert found.running_pods == 2
    assert found.containers == {"created": 0, "exited": 2, "running": 2, "unknown": 0}


@pytest.mark.parametrize(
    ("path", "label", "is_long"),
    [
        ("/pods", "pods", False),
        ("/containerLogs/ns/p/c", "containerLogs", False),
        ("/exec/ns/p/c", "exec", True),
        ("/attach/ns/p/c", "attach", True),
        ("/debug/pprof/heap", "debug", True),
        ("/portForward/ns/p", "portForward", False),
        ("/metrics", "metrics", False),
        ("/metrics/cadvisor", "metrics/cadvisor", False),
        ("/metrics/whatever", "metrics", False),
        ("/", "other", False),
        ("/favicon.ico", "other", False),
    ],
)
def test_a_path_is_called_by_what_is_known_of_it(path: str, label: str, is_long: bool) -> None:
    assert (path_label(path), is_long_running(path)) == (label, is_long)
