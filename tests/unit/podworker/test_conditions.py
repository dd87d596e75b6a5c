"""The pod's conditions (lifecycle 4.2)."""

from __future__ import annotations

from typing import Any

import pytest

from services.podworker.core.conditions import pod_conditions
from shared.kube.status import (
    ContainerState,
    ContainerStatus,
    PodPhase,
    PodStatus,
    StateRunning,
    StateTerminated,
)
from shared.kube.times import rfc3339
from tests.support.builders import NOW, a_container, a_pod

TWO = a_pod(a_container("b"), a_container("a"))
RUNNING = ContainerState(running=StateRunning(started_at=None))
ENDED = ContainerState(terminated=StateTerminated(exit_code=0, started_at=None, finished_at=None))


def a_status(name: str, *, ready: bool = True, state: ContainerState = RUNNING) -> ContainerStatus:
    return ContainerStatus(
        name=name,
        state=state,
        last_state=ContainerState(),
        ready=ready,
        restart_count=0,
        image="",
        image_id="",
        started=ready,
    )


def answers(
    *regular: ContainerStatus, pod: Any = TWO, phase: PodPhase = "Running", init: tuple[ContainerStatus, ...] = ()
) -> dict[str, tuple[str, str, str]]:
    conditions = pod_conditions(pod, phase, init, regular, None, can_start_containers=True, now=NOW)
    return {c.type: (c.status, c.reason, c.message) for c in conditions}


def test_a_ready_pods_conditions_are_all_true_in_the_kubelets_order() -> None:
    shown = answers(a_status("a"), a_status("b"))
    assert list(shown) == [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]
    assert set(shown.values()) == {("True", "", "")}


def test_unready_containers_are_named_in_the_specs_order() -> None:
    shown = answers(a_status("a", ready=False), a_status("b", ready=False))
    assert shown["Ready"] == shown["ContainersReady"]
    assert shown["Ready"] == ("False", "ContainersNotReady", "containers with unready status: [b a]")


def test_unknown_containers_are_named_before_unready_ones() -> None:
    assert answers(a_status("a", ready=False))["Ready"][2] == (
        "containers with unknown status: [b], containers with unready status: [a]"
    )


@pytest.mark.parametrize(("phase", "reason"), [("Succeeded", "PodCompleted"), ("Failed", "PodFailed")])
def test_a_finished_pod_is_not_ready_for_that_reason(phase: PodPhase, reason: str) -> None:
    ended = [a_status(name, ready=False, state=ENDED) for name in "ab"]
    shown = answers(*ended, phase=phase)
    assert shown["Ready"] == shown["ContainersReady"] == ("False", reason, "")
    assert shown["Initialized"] == ("True", "PodCompleted" if phase == "Succeeded" else "", "")


def test_incomplete_init_containers_are_named_until_a_regular_one_has_started() -> None:
    pod = a_pod(a_container("a"), initContainers=[a_container("i2"), a_container("i1")])
    init = (a_status("i1", ready=False), a_status("i2", ready=False))
    waiting = a_status("a", ready=False, state=ContainerState())
    assert answers(waiting, pod=pod, init=init, phase="Pending")["Initialized"] == (
        "False",
        "ContainersNotInitialized",
        "containers with incomplete status: [i2 i1]",
    )
    assert answers(a_status("a"), pod=pod, init=init)["Initialized"] == ("True", "", "")


def test_a_transition_time_moves_only_with_the_status() -> None:
    before = pod_conditions(TWO, "Pending", (), [a_status("a", ready=False)], None, can_start_containers=True, now=NOW)
    previous = PodStatus(phase="Pending", conditions=before, qos_class="BestEffort")
    after = pod_conditions(
        TWO,
        "Running",
        (),
        [a_status("a"), a_status("b")],
        previous,
        can_start_containers=True,
        now=NOW + 60,
    )
    times = {c.type: c.last_transition_time for c in after}
    assert times["Ready"] == times["ContainersReady"] == rfc3339(NOW + 60)
    assert times["PodScheduled"] == times["Initialized"] == rfc3339(NOW)


def test_a_changed_message_alone_moves_no_time() -> None:
    first = pod_conditions(TWO, "Pending", (), [a_status("a", ready=False)], None, can_start_containers=False, now=NOW)
    previous = PodStatus(phase="Pending", conditions=first, qos_class="BestEffort")
    second = pod_conditions(
        TWO,
        "Pending",
        (),
        [a_status("a"), a_status("b", ready=False)],
        previous,
        can_start_containers=False,
        now=NOW + 60,
    )
    assert first[2].message != second[2].message
    assert {c.last_transition_time for c in second} == {rfc3339(NOW)}
