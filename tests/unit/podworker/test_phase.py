"""The pod's phase (lifecycle 4.1)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.podworker.core.model import Stop
from services.podworker.core.phase import pod_phase, projected_phase
from shared.kube.status import (
    ContainerState,
    ContainerStatus,
    PodStatus,
    StateRunning,
    StateTerminated,
    StateWaiting,
)
from tests.support.builders import a_container, a_memory, a_pod, a_runtime, exited

C = a_pod().spec.containers[0]

STATES = {
    "run": (ContainerState(running=StateRunning(started_at=None)), ContainerState()),
    "new": (ContainerState(waiting=StateWaiting(reason="ContainerCreating")), ContainerState()),
    "ok": (
        ContainerState(terminated=StateTerminated(exit_code=0, started_at=None, finished_at=None)),
        ContainerState(),
    ),
    "bad": (
        ContainerState(terminated=StateTerminated(exit_code=1, started_at=None, finished_at=None)),
        ContainerState(),
    ),
    "loop": (
        ContainerState(waiting=StateWaiting(reason="CrashLoopBackOff")),
        ContainerState(terminated=StateTerminated(exit_code=1, started_at=None, finished_at=None)),
    ),
    "none": (ContainerState(), ContainerState()),
}


def status(kind: str, name: str = "c") -> ContainerStatus:
    state, last_state = STATES[kind]
    return ContainerStatus(
        name=name,
        state=state,
        last_state=last_state,
        ready=kind == "run",
        restart_count=0,
        image="i",
        image_id="",
        started=kind == "run",
    )


def phase(policy: str, *kinds: str, init: tuple[str, ...] = (), **facts: bool) -> str:
    names = [f"c{number}" for number in range(len(kinds))]
    init_names = [f"i{number}" for number in range(len(init))]
    pod = a_pod(*map(a_container, names), restartPolicy=policy, initContainers=[*map(a_container, init_names)])
    return pod_phase(pod, [*map(status, init, init_names)], [*map(status, kinds, names)], **facts)


@pytest.mark.parametrize(
    ("policy", "kinds", "expected"),
    [
        ("Always", ("run",), "Running"),
        ("Always", ("new",), "Pending"),
        ("Always", ("run", "new"), "Pending"),
        ("Always", ("run", "loop"), "Running"),
        ("Always", ("loop",), "Running"),
        ("Always", ("ok",), "Running"),
        ("Always", ("ok", "bad"), "Running"),
        ("Always", ("none",), "Pending"),
        ("OnFailure", ("ok",), "Succeeded"),
        ("OnFailure", ("ok", "bad"), "Running"),
        ("OnFailure", ("ok", "loop"), "Running"),
        ("OnFailure", ("ok", "run"), "Running"),
        ("Never", ("ok", "ok"), "Succeeded"),
        ("Never", ("ok", "bad"), "Failed"),
        ("Never", ("bad", "run"), "Running"),
        ("Never", ("bad", "new"), "Pending"),
    ],
)
def test_the_phase_follows_the_containers(policy: str, kinds: tuple[str, ...], expected: str) -> None:
    assert phase(policy, *kinds) == expected


@pytest.mark.parametrize(
    ("policy", "init", "expected"),
    [
        ("Never", ("bad",), "Failed"),
        ("Always", ("bad",), "Pending"),
        ("Always", ("run",), "Pending"),
        ("Always", ("ok", "new"), "Pending"),
        ("Always", ("ok", "ok"), "Running"),
    ],
)
def test_init_containers_come_first(policy: str, init: tuple[str, ...], expected: str) -> None:
    regular = "run" if expected == "Running" else "new"
    assert phase(policy, regular, init=init) == expected


def test_an_init_container_that_was_removed_does_not_take_a_started_pod_back() -> None:
    assert phase("Always", "run", init=("new",), has_started=True) == "Running"
    assert phase("Always", "run", init=("new",)) == "Pending"


def test_a_pod_of_the_api_that_was_torn_down_ends_in_a_terminal_phase() -> None:
    assert phase("Always", "ok", "ok", has_ended=True) == "Succeeded"
    assert phase("Always", "ok", "bad", has_ended=True) == "Failed"


def test_a_container_that_we_replace_does_not_end_its_pod() -> None:
    pod = a_pod(restartPolicy="Never")
    memory = a_memory(stops={"c-0": Stop(deadline=0, reason="definition")})
    assert projected_phase(pod, memory, a_runtime(exited(C, 143))) == "Running"
    assert projected_phase(pod, a_memory(), a_runtime(exited(C, 143))) == "Failed"


@pytest.mark.parametrize("terminal", ["Succeeded", "Failed"])
def test_a_terminal_phase_sticks(terminal: str) -> None:
    kept = PodStatus(phase=terminal, qos_class="BestEffort")  # type: ignore[arg-type]
    assert projected_phase(a_pod(), a_memory(status=kept), a_runtime()) == terminal


@given(
    policy=st.sampled_from(["Always", "OnFailure", "Never"]),
    kinds=st.lists(st.sampled_from(sorted(STATES)), min_size=1, max_size=4),
    has_ended=st.booleans(),
)
def test_every_mixture_has_a_phase_and_its_order_does_not_matter(
    policy: str, kinds: list[str], has_ended: bool
) -> None:
    expected = phase(policy, *kinds, has_ended=has_ended)
    for mixed in itertools.islice(itertools.permutations(kinds), 6):
        assert phase(policy, *mixed, has_ended=has_ended) == expected
    if policy == "Always" and not has_ended:
        assert expected in ("Pending", "Running")
    if "run" in kinds:
        assert expected in ("Pending", "Running")
