"""Containers that the engine doesn't show (any more), and the end of a pod (lifecycle 3.3, 3.4, 4.3, 4.4)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from services.podworker.core.container_states import all_statuses
from services.podworker.core.generate import generate_status
from services.podworker.core.model import Failure, PodMemory, RuntimePod, Termination, Waiting
from shared.kube.pod import Pod
from shared.kube.status import ContainerStatus, PodStatus
from tests.support.builders import (
    NODE_IP,
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

POD = a_pod()
C = POD.spec.containers[0]
WAITING = {"c": Waiting(reason="CrashLoopBackOff", message="back-off", at=NOW)}
WITH_INIT = a_pod(initContainers=[a_container("i"), a_container("j")])
INIT, LATER = WITH_INIT.spec.init_containers
LOST = {
    "exitCode": 137,
    "reason": "ContainerStatusUnknown",
    "message": "The container could not be located when the pod was terminated",
    "startedAt": None,
    "finishedAt": None,
}
REMOVED = {
    "exitCode": 137,
    "reason": "RestartingAllContainers",
    "message": "The container is removed because RestartAllContainers in place",
    "startedAt": None,
    "finishedAt": None,
}


def the_status(pod: Pod, memory: PodMemory, runtime: RuntimePod) -> ContainerStatus:
    (status,) = all_statuses(pod, memory, runtime).regular
    return status


def states(statuses: list[ContainerStatus]) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(status.state) for status in statuses]


def ended(memory: PodMemory) -> PodMemory:
    return msgspec.structs.replace(
        memory, termination=Termination(at=NOW, grace=1, reason="removed"), terminated_at=NOW
    )


def test_a_running_container_that_vanished_counts_as_restarted_once() -> None:
    memory = stored(POD, a_memory(), a_runtime(running(C, attempt=1)))
    for _ in range(3):
        status = the_status(POD, memory, a_runtime())
        assert status.restart_count == 2
        assert status.last_state.terminated is not None
        assert status.last_state.terminated.reason == "ContainerStatusUnknown"
        assert status.last_state.terminated.message == (
            "The container could not be located when the pod was deleted.  The container used to be Running"
        )
        memory = stored(POD, memory, a_runtime())
    assert memory.status is not None
    assert memory.status.phase == "Running"


def test_a_vanished_dead_container_keeps_its_status() -> None:
    never = a_pod(restartPolicy="Never")
    memory = stored(never, a_memory(), a_runtime(exited(C, 3)))
    assert memory.status is not None
    assert all_statuses(never, memory, nothing()).regular == memory.status.container_statuses


def test_a_container_whose_state_can_not_be_told_any_more_has_ended_if_it_ran() -> None:
    memory = stored(POD, a_memory(), a_runtime(running(C)))
    for _ in range(2):
        untold = a_runtime(running(C, state="unknown"))
        assert msgspec.to_builtins(the_status(POD, memory, untold).state) == {"terminated": LOST}
        memory = stored(POD, memory, untold)
    assert the_status(POD, a_memory(), a_runtime(running(C, state="unknown"))).state.waiting


# -- init containers


def test_an_init_container_that_is_gone_has_succeeded_once_a_regular_one_was_made() -> None:
    """Nothing is known of it, and it doesn't take the pod back to Pending."""
    for regular in (running(C, state="created"), running(C), exited(C, 1)):
        shown = all_statuses(WITH_INIT, a_memory(), a_runtime(regular))
        assert (
            states(shown.init)
            == [
                {
                    "terminated": {
                        "exitCode": 0,
                        "reason": "Completed",
                        "message": "Unable to get init container status from container runtime and pod has been "
                        "initialized, treat it as exited normally",
                        "startedAt": None,
                        "finishedAt": None,
                    }
                }
            ]
            * 2
        )
        assert all(status.ready for status in shown.init)
    assert generate_status(WITH_INIT, a_memory(), a_runtime(running(C)), node_ip=NODE_IP, now=NOW).phase == "Running"


def test_what_was_told_of_a_removed_init_container_stays() -> None:
    memory = stored(
        WITH_INIT, a_memory(), a_runtime(running(C), exited(LATER), exited(INIT, termination_message="done"))
    )
    assert memory.status is not None
    shown = all_statuses(WITH_INIT, memory, a_runtime(running(C)))
    assert shown.init == memory.status.init_container_statuses


def test_a_sidecar_that_is_gone_waits_for_its_start() -> None:
    pod = a_pod(initContainers=[a_container("s", restartPolicy="Always")])
    shown = all_statuses(pod, a_memory(), a_runtime(running(C)))
    assert states(shown.init) == [{"waiting": {"reason": "PodInitializing"}}]
    assert not shown.init[0].ready


def test_a_reason_to_wait_is_not_shown_of_an_init_container_that_is_over() -> None:
    waiting = {"i": Waiting(reason="CrashLoopBackOff", message="", at=NOW)}
    for runtime in (a_runtime(running(C)), a_runtime(exited(INIT)), a_runtime(running(C), exited(INIT))):
        shown = all_statuses(WITH_INIT, a_memory(waiting=waiting), runtime)
        assert list(states(shown.init)[0]) == ["terminated"]


# -- all containers start over


def test_while_all_containers_are_removed_each_waits_with_137_as_its_last_end() -> None:
    """Whatever it had done, also the one whose exit asked for it. restartCount +1."""
    before = stored(WITH_INIT, a_memory(), a_runtime(exited(C, 42, attempt=1), exited(LATER), exited(INIT)))
    memory = msgspec.structs.replace(
        before, restart_all=("c",), restarted={"c": 1, "i": 0, "j": 0}, restarts={"c": 1, "i": 0, "j": 0}
    )
    for reason in ("RestartingAllContainers", "PodInitializing"):
        shown = all_statuses(WITH_INIT, memory, a_runtime())
        for status in (*shown.init, *shown.regular):
            assert status.state.waiting is not None
            assert status.state.waiting.reason == reason
            assert msgspec.to_builtins(status.last_state) == {"terminated": REMOVED}
            assert not status.ready
        assert [status.restart_count for status in (*shown.init, *shown.regular)] == [1, 1, 2]
        memory = msgspec.structs.replace(stored(WITH_INIT, memory, a_runtime()), restart_all=())


def test_what_was_not_removed_yet_shows_what_it_is() -> None:
    memory = a_memory(restart_all=("c",), restarted={"c": 0}, restarts={"c": 0, "i": 0})
    shown = all_statuses(WITH_INIT, memory, a_runtime(exited(INIT)))
    assert list(states(shown.init)[0]) == ["terminated"]
    assert next(iter(states(shown.regular)[0]["waiting"].values())) == "RestartingAllContainers"


def test_the_first_instance_after_it_has_137_as_its_last_end_and_the_next_one_its_own() -> None:
    memory = a_memory(restarted={"c": 1}, restarts={"c": 2})
    again = the_status(POD, memory, a_runtime(running(C, attempt=2)))
    assert msgspec.to_builtins(again.last_state) == {"terminated": REMOVED}
    assert again.restart_count == 2
    memory = stored(POD, memory, a_runtime(exited(C, 3, attempt=2)))
    later = the_status(POD, memory, a_runtime(running(C, attempt=3)))
    assert later.last_state.terminated is not None
    assert later.last_state.terminated.exit_code == 3


# -- the end of a pod


def test_at_the_end_no_container_of_an_initialized_pod_seems_to_wait_or_run() -> None:
    for runtime in (a_runtime(exited(C, 1)), a_runtime(running(C)), nothing()):
        memory = stored(POD, a_memory(waiting=WAITING), runtime)
        status = the_status(POD, ended(memory), nothing())
        assert msgspec.to_builtins(status.state) == {"terminated": LOST}
        assert not status.ready


def test_what_was_seen_of_an_end_stays() -> None:
    memory = stored(POD, a_memory(), a_runtime(exited(C, 3)))
    end = the_status(POD, ended(memory), nothing()).state.terminated
    assert end is not None
    assert (end.exit_code, end.reason) == (3, "Error")


@pytest.mark.parametrize(
    ("seen", "init", "regular"),
    [
        ((), ["LOST", "waits"], "waits"),
        ((exited(INIT, 1),), ["saw", "waits"], "waits"),
        ((exited(INIT),), ["saw", "waits"], "waits"),
        ((running(LATER), exited(INIT)), ["saw", "LOST"], "waits"),
        ((exited(LATER), exited(INIT)), ["saw", "saw"], "LOST"),
    ],
)
def test_at_the_end_what_never_started_waits_on_but_for_the_first_init_container(
    seen: tuple[Any, ...], init: list[str], regular: str
) -> None:
    """Up to the last init container that ever started all are lost; regular ones only in an initialized pod."""
    memory = stored(WITH_INIT, a_memory(), a_runtime(*seen))
    left = a_runtime(*(c for c in seen if c.state != "running"), sandboxes=())
    shown = all_statuses(WITH_INIT, ended(memory), left)

    def word(state: dict[str, Any]) -> str:
        return "waits" if "waiting" in state else "LOST" if state["terminated"] == LOST else "saw"

    assert [word(state) for state in states(shown.init)] == init
    assert [word(state) for state in states(shown.regular)] == [regular]


def test_a_pod_that_failed_as_a_whole_is_settled_once_nothing_of_it_runs() -> None:
    """Its deadline passed while the image couldn't be pulled."""
    failed = a_memory(
        status=PodStatus(phase="Failed", qos_class="BestEffort"),
        failure=Failure(reason="DeadlineExceeded", message=""),
        waiting={"c": Waiting(reason="ErrImagePull", message="", at=NOW)},
    )
    assert the_status(POD, failed, a_runtime()).state.waiting
    stopped = a_runtime(sandboxes=(a_sandbox(ready=False),))
    assert msgspec.to_builtins(the_status(POD, failed, stopped).state) == {"terminated": LOST}


def test_a_pod_that_has_not_ended_is_not_settled() -> None:
    running_on = a_memory(status=PodStatus(phase="Running", qos_class="BestEffort"))
    assert the_status(POD, running_on, nothing()).state.waiting
