"""The pod's conditions, row by row (lifecycle 4.2)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from services.podworker.core.conditions import PodFacts, pod_conditions
from services.podworker.core.container_states import Statuses
from services.podworker.core.model import Failure
from shared.kube.pod import GivenStatus, Pod
from shared.kube.status import (
    ContainerState,
    ContainerStatus,
    PodCondition,
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


def a_status(
    name: str, *, ready: bool = True, state: ContainerState = RUNNING, started: bool | None = None
) -> ContainerStatus:
    return ContainerStatus(
        name=name,
        state=state,
        last_state=ContainerState(),
        ready=ready,
        restart_count=0,
        image="",
        image_id="",
        started=ready if started is None else started,
    )


def conditions_of(
    *regular: ContainerStatus,
    pod: Pod = TWO,
    phase: PodPhase = "Running",
    init: tuple[ContainerStatus, ...] = (),
    previous: PodStatus | None = None,
    now: float = NOW,
    **facts: Any,
) -> list[PodCondition]:
    shown = Statuses(init=[*init], regular=[*regular], ephemeral=[])
    return pod_conditions(
        pod, shown, PodFacts(**{"phase": phase, "can_start_containers": True, **facts}), previous, now=now
    )


def answers(*regular: ContainerStatus, **given: Any) -> dict[str, tuple[str, str, str]]:
    return {c.type: (c.status, c.reason, c.message) for c in conditions_of(*regular, **given)}


def a_status_with(conditions: list[PodCondition]) -> PodStatus:
    return PodStatus(phase="Running", conditions=conditions, qos_class="BestEffort")


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


def test_initialized_waits_for_plain_ones_to_succeed_and_for_sidecars_to_start() -> None:
    sidecar, plain = a_container("s", restartPolicy="Always"), a_container("i")
    pod = a_pod(a_container("a"), initContainers=[plain, sidecar])
    waiting = a_status("a", ready=False, state=ContainerState())
    done, started = a_status("i", state=ENDED), a_status("s", ready=False, started=True)
    assert answers(waiting, pod=pod, init=(done, started), phase="Pending")["Initialized"][0] == "True"
    for init, named in (
        ((a_status("i", ready=False), started), "i"),
        ((done, a_status("s", ready=False)), "s"),
    ):
        message = answers(waiting, pod=pod, init=init, phase="Pending")["Initialized"][2]
        assert message == f"containers with incomplete status: [{named}]"


def test_what_was_initialized_stays_so() -> None:
    """kubelet 1.36: also while all containers start over."""
    pod = a_pod(a_container("a"), initContainers=[a_container("i")])
    waiting, init = a_status("a", ready=False, state=ContainerState()), (a_status("i", ready=False),)
    before = a_status_with(conditions_of(a_status("a"), pod=pod, init=init))
    shown = answers(waiting, pod=pod, init=init, phase="Pending", previous=before)
    assert shown["Initialized"] == ("True", "", "")


def test_ready_needs_the_sidecars_too_and_names_them_first() -> None:
    """I08: the others run on."""
    pod = a_pod(a_container("a"), initContainers=[a_container("s", restartPolicy="Always"), a_container("i")])
    init = (a_status("s", ready=False, started=True), a_status("i", ready=False, state=ENDED))
    shown = answers(a_status("a", ready=False), pod=pod, init=init)
    assert shown["Ready"] == shown["ContainersReady"]
    assert shown["Ready"] == ("False", "ContainersNotReady", "containers with unready status: [s a]")
    assert answers(a_status("a"), pod=pod)["Ready"][2] == "containers with unknown status: [s]"


def test_without_a_usable_sandbox_containers_can_not_be_started() -> None:
    shown = answers(a_status("a", ready=False), can_start_containers=False, phase="Pending")
    assert shown["PodReadyToStartContainers"] == ("False", "", "")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            [],
            (
                "False",
                "ReadinessGatesNotReady",
                'corresponding condition of pod readiness gate "x.io/a" does not exist.'
                ', corresponding condition of pod readiness gate "x.io/b" does not exist.',
            ),
        ),
        (
            [{"type": "x.io/a", "status": "True"}, {"type": "x.io/b", "status": "False"}],
            (
                "False",
                "ReadinessGatesNotReady",
                'the status of pod readiness gate "x.io/b" is not "True", but False',
            ),
        ),
        ([{"type": "x.io/a", "status": "True"}, {"type": "x.io/b", "status": "True"}], ("True", "", "")),
    ],
)
def test_readiness_gates_hold_ready_but_not_containers_ready(
    given: list[dict[str, str]], expected: tuple[str, str, str]
) -> None:
    """T18."""
    gates = [{"conditionType": "x.io/a"}, {"conditionType": "x.io/b"}]
    pod = a_pod(a_container("a"), a_container("b"), readinessGates=gates)
    shown = answers(a_status("a"), a_status("b"), pod=with_conditions(pod, given))
    assert shown["Ready"] == expected
    assert shown["ContainersReady"] == ("True", "", "")


def test_the_containers_reason_comes_before_the_gates() -> None:
    pod = a_pod(a_container("a"), readinessGates=[{"conditionType": "x.io/a"}])
    assert answers(a_status("a", ready=False), pod=pod)["Ready"][1] == "ContainersNotReady"


def test_conditions_of_others_are_kept_and_come_first() -> None:
    """What the API gives back of the node's own isn't taken for another's."""
    given = [
        {"type": "x.io/a", "status": "True", "reason": "R", "lastTransitionTime": "2027-01-01T00:00:00Z"},
        {"type": "Ready", "status": "True"},
        {"type": "PodScheduled", "status": "False"},
    ]
    first, *others = conditions_of(a_status("a", ready=False), pod=with_conditions(a_pod(a_container("a")), given))
    assert (first.type, first.status, first.reason) == ("x.io/a", "True", "R")
    assert first.last_transition_time == "2027-01-01T00:00:00Z"
    assert {c.type: c.status for c in others} == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "False",
        "ContainersReady": "False",
        "PodScheduled": "True",
    }


@pytest.mark.parametrize("reason", ["Evicted", "Preempting", "Terminated"])
def test_a_disruption_is_the_nodes_doing(reason: str) -> None:
    failure = Failure(reason=reason, message="the node was low on memory")
    shown = answers(a_status("a"), a_status("b"), phase="Failed", failure=failure)
    assert next(iter(shown)) == "DisruptionTarget"
    assert shown["DisruptionTarget"] == ("True", "TerminationByKubelet", "the node was low on memory")


def test_a_passed_deadline_is_no_disruption() -> None:
    failure = Failure(reason="DeadlineExceeded", message="")
    assert "DisruptionTarget" not in answers(a_status("a"), a_status("b"), phase="Failed", failure=failure)


RESTARTS_ALL = a_pod(
    a_container(
        "a",
        restartPolicy="Never",
        restartPolicyRules=[{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}],
    )
)


@pytest.mark.parametrize(
    ("phase", "restarts_all", "expected"),
    [
        ("Running", False, ("False", "", "")),
        ("Running", True, ("True", "RestartAllContainersStarted", "container exited with restart policy rule")),
        ("Succeeded", False, ("False", "PodCompleted", "")),
        ("Failed", True, ("False", "PodFailed", "")),
    ],
)
def test_restarting_all_containers_is_a_condition_where_a_rule_asks_for_it(
    phase: PodPhase, restarts_all: bool, expected: tuple[str, str, str]
) -> None:
    shown = answers(a_status("a"), pod=RESTARTS_ALL, phase=phase, restarts_all=restarts_all)
    assert list(shown)[-1] == "AllContainersRestarting"
    assert shown["AllContainersRestarting"] == expected
    restarts_one = a_pod(
        a_container(
            "a",
            restartPolicy="Never",
            restartPolicyRules=[{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}],
        )
    )
    assert "AllContainersRestarting" not in answers(a_status("a"), pod=restarts_one, phase=phase)


def test_each_condition_tells_the_generation_that_it_was_judged_by() -> None:
    pod = replace(TWO, metadata=replace(TWO.metadata, generation=3))
    assert {c.observed_generation for c in conditions_of(a_status("a"), a_status("b"), pod=pod)} == {3}
    assert b"observedGeneration" not in msgspec.json.encode(conditions_of(a_status("a"), a_status("b")))


def test_a_transition_time_moves_only_with_the_status() -> None:
    before = a_status_with(conditions_of(a_status("a", ready=False), phase="Pending"))
    after = conditions_of(a_status("a"), a_status("b"), previous=before, now=NOW + 60)
    times = {c.type: c.last_transition_time for c in after}
    assert times["Ready"] == times["ContainersReady"] == rfc3339(NOW + 60)
    assert times["PodScheduled"] == times["Initialized"] == rfc3339(NOW)


def test_a_changed_message_alone_moves_no_time() -> None:
    first = conditions_of(a_status("a", ready=False), phase="Pending")
    second = conditions_of(
        a_status("a"), a_status("b", ready=False), phase="Pending", previous=a_status_with(first), now=NOW + 60
    )
    assert first[2].message != second[2].message
    assert {c.last_transition_time for c in second} == {rfc3339(NOW)}


def with_conditions(pod: Pod, given: list[dict[str, str]]) -> Pod:
    return replace(pod, status=msgspec.convert({"conditions": given}, GivenStatus))
