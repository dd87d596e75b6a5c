"""activeDeadlineSeconds (lifecycle 6, T17)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from services.podworker.core.actions import compute_pod_actions
from services.podworker.core.model import Failure, PodMemory, RuntimePod, Termination, Waiting
from services.podworker.core.plan import Kill, Plan, Signal, StopSandbox
from shared.kube.pod import Pod
from shared.kube.status import PodStatus
from tests.support.builders import (
    NOW,
    a_container,
    a_memory,
    a_pod,
    a_runtime,
    a_sandbox,
    exited,
    nothing,
    running,
    stored,
)

POD = a_pod(activeDeadlineSeconds=5, terminationGracePeriodSeconds=7)
C = POD.spec.containers[0]
EXCEEDED = Failure(reason="DeadlineExceeded", message="Pod was active on the node longer than the specified deadline")


def look(runtime: RuntimePod, *, after: float, pod: Pod = POD, **memory: Any) -> Plan:
    """The plan so long after the pod's start."""
    started = a_memory(pod, started_at=NOW, **memory)
    return compute_pod_actions(pod, started, runtime, now=NOW + after)


def test_until_its_deadline_a_pod_runs_and_is_looked_at_when_it_comes() -> None:
    plan = look(a_runtime(running(C)), after=4.9)
    assert plan.actions == ()
    assert plan.memory.failure is None
    assert plan.wake_at == NOW + 5


def test_at_its_deadline_a_pod_fails_and_ends_with_the_specs_grace() -> None:
    plan = look(a_runtime(running(C)), after=5)
    assert [type(action) for action in plan.actions] == [Signal]
    assert plan.memory.failure == EXCEEDED
    assert plan.memory.stops["c-0"].deadline == NOW + 5 + 7
    assert [(e.type, e.reason, e.message) for e in plan.events if e.reason != "Killing"] == [
        ("Normal", EXCEEDED.reason, EXCEEDED.message)
    ]
    status = stored(POD, plan.memory, a_runtime(running(C))).status
    assert status is not None
    assert (status.phase, status.reason, status.message) == ("Failed", EXCEEDED.reason, EXCEEDED.message)


def test_what_outlives_the_grace_is_killed() -> None:
    memory = look(a_runtime(running(C)), after=5).memory
    memory = msgspec.structs.replace(
        memory, stops={"c-0": msgspec.structs.replace(memory.stops["c-0"], signalled_at=NOW + 5)}
    )
    late = compute_pod_actions(POD, memory, a_runtime(running(C)), now=NOW + 12)
    assert [type(action) for action in late.actions] == [Kill]
    assert late.events == ()


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_after_its_deadline_nothing_starts_any_more(policy: str) -> None:
    """Whatever is missing: a container that crashed, the sandbox, everything."""
    pod = a_pod(a_container("c"), a_container("d"), activeDeadlineSeconds=5, restartPolicy=policy)
    crashed, other = pod.spec.containers
    for runtime in (a_runtime(exited(crashed, 1), running(other)), a_runtime(exited(crashed, 1)), nothing()):
        plan = look(runtime, after=6, pod=pod)
        assert plan.memory.failure == EXCEEDED
        assert {type(action) for action in plan.actions} <= {Signal, StopSandbox}


def test_init_containers_back_offs_and_pulls_count() -> None:
    pod = a_pod(initContainers=[a_container("i")], activeDeadlineSeconds=5)
    waiting = {"i": Waiting(reason="ErrImagePull", message="", at=NOW, retry_at=NOW + 100)}
    assert look(a_runtime(), after=1, pod=pod, waiting=waiting).wake_at == NOW + 5
    assert look(a_runtime(), after=5, pod=pod, waiting=waiting).memory.failure == EXCEEDED
    assert look(a_runtime(running(pod.spec.init_containers[0])), after=5, pod=pod).memory.failure == EXCEEDED


def test_a_pod_that_was_done_before_its_deadline_has_succeeded() -> None:
    """Also when the look that sees it comes after the deadline."""
    pod = a_pod(activeDeadlineSeconds=5, restartPolicy="Never")
    for code in (0, 1):
        plan = look(a_runtime(exited(C, code), sandboxes=(a_sandbox(ready=False),)), after=60, pod=pod)
        assert plan.memory.failure is None
        assert plan.wake_at is None


def test_a_terminal_phase_or_a_failure_of_before_stays() -> None:
    succeeded = PodStatus(phase="Succeeded", qos_class="BestEffort")
    assert look(a_runtime(), after=60, status=succeeded).memory.failure is None
    evicted = Failure(reason="Evicted", message="")
    assert look(a_runtime(running(C)), after=60, failure=evicted).memory.failure == evicted


@pytest.mark.parametrize(
    "memory", [{"admitted": False}, {"termination": Termination(at=NOW, grace=30, reason="removed")}]
)
def test_a_pod_that_is_not_active_has_no_deadline(memory: dict[str, Any]) -> None:
    plan = look(a_runtime(running(C)), after=60, **memory)
    assert plan.memory.failure is None


def test_the_clock_starts_with_the_first_status() -> None:
    """Not with the pod's first sight: it may have waited for its name."""
    plan = compute_pod_actions(POD, a_memory(POD, seen_at=NOW - 60), nothing(), now=NOW)
    assert plan.memory.failure is None
    assert plan.wake_at == NOW + 5


def test_without_a_deadline_nothing_wakes() -> None:
    pod = a_pod()
    memory: PodMemory = a_memory(pod, started_at=NOW - 10**9)
    plan = compute_pod_actions(pod, memory, a_runtime(running(C)), now=NOW)
    assert (plan.wake_at, plan.memory.failure) == (None, None)
