"""What the runtime's reports say about the node."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from services.status.core.readiness import RuntimeView, capacity_problems, hear, runtime_problems
from shared.contracts.status import RuntimeReport
from tests.support.node_observations import FINE

NOW = 1_764_547_200.0
"""Wall clock."""
AT = 500.0
"""The clock that never steps, at NOW."""
DOWN = "container runtime is down: no podworker reports it"
NOT_READY = "container runtime not ready: RuntimeReady=false message:docker: connection refused"


def report(ago: float = 0.0, *, healthy: bool = True, listed_ago: float | None = None) -> RuntimeReport:
    """Written `ago` seconds before NOW."""
    return RuntimeReport(
        v=1,
        node="n1",
        ts=NOW - ago,
        healthy=healthy,
        message="" if healthy else "docker: connection refused",
        relisted_at=NOW - (ago if listed_ago is None else listed_ago),
    )


def after(*reports: RuntimeReport, view: RuntimeView | None = None) -> RuntimeView:
    view = view or RuntimeView()
    for one in reports:
        view = hear(view, one, NOW, AT)
    return view


@pytest.mark.parametrize(
    ("view", "problems"),
    [
        (after(report()), []),
        (after(report(ago=30)), []),
        (after(report(ago=31)), [DOWN]),
        (RuntimeView(), ["container runtime status check may not have completed yet"]),
        (after(report(healthy=False)), [NOT_READY]),
        (after(report(ago=29), report(healthy=False)), []),
        (after(report(ago=31), report(healthy=False)), [NOT_READY]),
        (after(report(ago=31, healthy=False)), [DOWN]),
        (after(report(ago=90), report(ago=31, healthy=False)), [DOWN]),
        (after(report(listed_ago=180)), []),
        (
            after(report(listed_ago=200)),
            ["PLEG is not healthy: pleg was last seen active 3m20s ago; threshold is 3m0s"],
        ),
        (after(report(listed_ago=NOW)), ["PLEG is not healthy: pleg has yet to be successful"]),
    ],
)
def test_the_node_is_ready_only_with_a_recent_healthy_report_and_a_recent_list(
    view: RuntimeView, problems: list[str]
) -> None:
    assert runtime_problems(view, AT) == problems


def test_a_report_that_stays_the_same_grows_old() -> None:
    view = after(report())
    assert runtime_problems(view, AT + 30) == []
    assert runtime_problems(view, AT + 31) == [DOWN]


def test_a_report_read_again_is_no_younger() -> None:
    """A re-list of the bucket brings the same one."""
    view = after(report())
    assert hear(view, report(), NOW + 40, AT + 40) is view


def test_a_stepped_wall_clock_makes_nothing_silent() -> None:
    view = after(report())
    ahead = replace(report(), ts=NOW + 3600, relisted_at=NOW + 3600)
    assert runtime_problems(hear(view, ahead, NOW + 3600, AT + 10), AT + 10) == []
    behind = replace(report(), ts=NOW - 3600, relisted_at=NOW - 3600)
    assert runtime_problems(hear(view, behind, NOW - 3600, AT + 20), AT + 20) == []


def test_after_a_restart_of_status_alone_the_runtime_has_thirty_seconds_to_be_heard() -> None:
    view = RuntimeView(good_at=AT)
    assert runtime_problems(view, AT + 30) == []
    assert runtime_problems(view, AT + 31) == [DOWN]
    assert runtime_problems(after(report(ago=3600, listed_ago=3600), view=view), AT + 31)[0] == DOWN


def test_a_node_that_does_not_know_what_it_has_is_not_ready() -> None:
    assert capacity_problems(FINE) == []
    unknown = replace(FINE, memory_total=None, nodefs=None)
    assert capacity_problems(unknown) == ["missing node capacity for resources: memory, ephemeral-storage"]
