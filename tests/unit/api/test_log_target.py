"""Which container's log is meant."""

from __future__ import annotations

import pytest

from services.api.core.log_target import NoLog, log_target
from shared.kube.status import (
    ContainerState,
    ContainerStatus,
    PodStatus,
    StateRunning,
    StateTerminated,
    StateWaiting,
)

RUNNING = ContainerState(running=StateRunning(started_at="2026-01-01T00:00:00Z"))
NAMED = 'container "c1" in pod "p1"'


def _ended(container_id: str) -> ContainerState:
    return ContainerState(
        terminated=StateTerminated(exit_code=1, started_at=None, finished_at=None, container_id=container_id)
    )


def _waiting(reason: str) -> ContainerState:
    return ContainerState(waiting=StateWaiting(reason=reason))


def _status(state: ContainerState, last: ContainerState | None = None, *, name: str = "c1") -> PodStatus:
    container = ContainerStatus(
        name=name,
        state=state,
        last_state=last or ContainerState(),
        ready=False,
        restart_count=0,
        image="i",
        image_id="",
        container_id="docker://now",
        started=False,
    )
    return PodStatus(phase="Running", container_statuses=[container], qos_class="BestEffort")


@pytest.mark.parametrize(
    ("state", "last", "previous", "target"),
    [
        (RUNNING, None, False, "now"),
        (RUNNING, _ended("docker://before"), True, "before"),
        (RUNNING, _ended("docker://before"), False, "now"),
        (_ended("docker://ended"), None, False, "ended"),
        (_ended(""), _ended("docker://before"), False, "before"),
        (_waiting("CrashLoopBackOff"), _ended("docker://before"), False, "before"),
        (RUNNING, None, True, NoLog(f"previous terminated {NAMED} not found")),
        (RUNNING, _ended(""), True, NoLog(f"previous terminated {NAMED} not found")),
        (_ended(""), None, False, NoLog(f"{NAMED} is terminated")),
        (_waiting("x"), _ended(""), False, NoLog(f"{NAMED} is terminated")),
        (
            _waiting("ContainerCreating"),
            None,
            False,
            NoLog(f"{NAMED} is waiting to start: ContainerCreating"),
        ),
        (_waiting("ErrImagePull"), None, False, NoLog(f"{NAMED} is waiting to start: image can't be pulled")),
        (
            _waiting("ImagePullBackOff"),
            None,
            False,
            NoLog(f"{NAMED} is waiting to start: trying and failing to pull image"),
        ),
        (ContainerState(), None, False, NoLog(f"{NAMED} is waiting to start - no logs yet")),
    ],
)
def test_the_log_by_the_containers_state(
    state: ContainerState, last: ContainerState | None, previous: bool, target: str | NoLog
) -> None:
    assert log_target(_status(state, last), "p1", "c1", previous=previous) == target


def test_without_a_status_there_is_no_log() -> None:
    assert log_target(None, "p1", "c1", previous=False) == NoLog(f"{NAMED} is not available")
    assert log_target(_status(RUNNING, name="other"), "p1", "c1", previous=False) == NoLog(f"{NAMED} is not available")


def test_an_init_containers_log_is_found_too() -> None:
    status = PodStatus(
        phase="Pending", init_container_statuses=_status(RUNNING).container_statuses, qos_class="BestEffort"
    )
    assert log_target(status, "p1", "c1", previous=False) == "now"
