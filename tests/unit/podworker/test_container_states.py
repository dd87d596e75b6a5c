"""Container states, reasons and counts (lifecycle 4.3, 4.4)."""

from __future__ import annotations

import msgspec
import pytest

from services.podworker.core.container_states import all_statuses
from services.podworker.core.generate import generate_status
from services.podworker.core.model import Failure, PodMemory, RuntimePod, Termination, Waiting
from shared.kube.pod import Pod
from shared.kube.status import ContainerStatus, StateTerminated
from tests.support.builders import (
    NODE_IP,
    NOW,
    a_container,
    a_memory,
    a_pod,
    a_runtime,
    cannot_run,
    exited,
    nothing,
    running,
    stored,
)

POD = a_pod()
C = POD.spec.containers[0]
WAITING = {"c": Waiting(reason="CrashLoopBackOff", message="back-off", at=NOW)}


def the_status(pod: Pod, memory: PodMemory, runtime: RuntimePod) -> ContainerStatus:
    (status,) = all_statuses(pod, memory, runtime).regular
    return status


def the_end(runtime: RuntimePod, pod: Pod = POD) -> StateTerminated:
    end = the_status(pod, a_memory(), runtime).state.terminated
    assert end is not None
    return end


def test_a_running_container_is_ready_and_started() -> None:
    status = the_status(POD, a_memory(), a_runtime(running(C, attempt=2, id="f" * 64)))
    assert msgspec.to_builtins(status) == {
        "name": "c",
        "state": {"running": {"startedAt": "2027-01-15T07:59:12Z"}},
        "lastState": {},
        "ready": True,
        "restartCount": 2,
        "image": "busybox:1.36",
        "imageID": "docker://sha256:1",
        "containerID": f"docker://{'f' * 64}",
        "started": True,
        "resources": {},
    }


def test_a_container_that_was_not_made_yet_is_creating() -> None:
    status = the_status(POD, a_memory(), nothing())
    assert msgspec.to_builtins(status) == {
        "name": "c",
        "state": {"waiting": {"reason": "ContainerCreating"}},
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "image": "busybox:1.36",
        "imageID": "",
        "started": False,
        "resources": {},
    }


def test_with_init_containers_it_is_initializing() -> None:
    pod = a_pod(initContainers=[a_container("i")])
    waiting = the_status(pod, a_memory(), nothing()).state.waiting
    assert waiting is not None
    assert waiting.reason == "PodInitializing"


def test_one_created_and_not_started_waits_without_a_reason() -> None:
    status = the_status(POD, a_memory(), a_runtime(running(C, state="created", started_at=None)))
    assert msgspec.to_builtins(status.state) == {"waiting": {}}


@pytest.mark.parametrize(
    ("code", "oom", "expected"),
    [
        (0, False, "Completed"),
        (1, False, "Error"),
        (137, False, "Error"),
        (137, True, "OOMKilled"),
        (3, True, "Error"),
        (0, True, "Completed"),
    ],
)
def test_oom_killed_is_only_who_was_killed_itself(code: int, oom: bool, expected: str) -> None:
    assert the_end(a_runtime(exited(C, code, oom_killed=oom))).reason == expected


def test_one_that_could_not_run_started_and_finished_when_it_was_created() -> None:
    end = the_end(a_runtime(cannot_run(C, created_at=NOW, error="no such file")))
    assert (end.reason, end.message, end.exit_code) == ("ContainerCannotRun", "no such file", 127)
    assert end.started_at == end.finished_at == "2027-01-15T08:00:00Z"


@pytest.mark.parametrize(
    ("error", "message", "expected"),
    [("", "bye\n", "bye\n"), ("e", "bye", "e: bye"), ("e", "", "e"), ("", "", "")],
)
def test_the_termination_message_follows_dockers_error(error: str, message: str, expected: str) -> None:
    assert the_end(a_runtime(exited(C, 1, error=error, termination_message=message))).message == expected


def test_the_second_newest_instance_is_the_last_state() -> None:
    runtime = a_runtime(running(C, attempt=3), exited(C, 1, attempt=2), exited(C, 2, attempt=1))
    last = the_status(POD, a_memory(), runtime).last_state.terminated
    assert last is not None
    assert last.exit_code == 1


def test_an_older_instance_that_never_ran_is_no_last_state() -> None:
    older = running(C, attempt=1, state="created", started_at=None)
    last = the_status(POD, a_memory(), a_runtime(running(C, attempt=2), older, exited(C, 1))).last_state
    assert last.terminated is not None
    assert last.terminated.exit_code == 1


def test_how_far_a_pull_is_comes_under_the_default_reason() -> None:
    memory = a_memory(waiting={"c": Waiting(reason="ContainerCreating", message="Pulling image: 5 %", at=NOW)})
    for pod, reason in ((POD, "ContainerCreating"), (a_pod(initContainers=[a_container("i")]), "PodInitializing")):
        waiting = the_status(pod, memory, nothing()).state.waiting
        assert waiting is not None
        assert (waiting.reason, waiting.message) == (reason, "Pulling image: 5 %")


def test_a_waiting_reason_moves_the_end_to_the_last_state() -> None:
    status = the_status(POD, a_memory(waiting=WAITING), a_runtime(exited(C, 1)))
    assert status.state.waiting is not None
    assert status.state.waiting.reason == "CrashLoopBackOff"
    assert status.last_state.terminated is not None
    assert status.last_state.terminated.exit_code == 1


def test_a_waiting_reason_shows_only_while_a_start_is_wanted() -> None:
    assert the_status(POD, a_memory(waiting=WAITING), a_runtime(running(C))).state.running
    never = a_pod(restartPolicy="Never")
    assert the_status(never, a_memory(waiting=WAITING), a_runtime(exited(C, 1))).state.terminated
    ending = a_memory(waiting=WAITING, termination=Termination(at=NOW, grace=1, reason="removed"))
    assert the_status(POD, ending, a_runtime(exited(C, 1))).state.terminated


def test_statuses_are_ordered_by_name_and_those_of_init_containers_as_in_the_spec() -> None:
    pod = a_pod(a_container("b"), a_container("a"), initContainers=[a_container("j"), a_container("i")])
    assert [s.name for s in all_statuses(pod, a_memory(), nothing()).init] == ["j", "i"]
    assert [s.name for s in all_statuses(pod, a_memory(), nothing()).regular] == ["a", "b"]


def test_ephemeral_containers_have_statuses_of_their_own() -> None:
    pod = a_pod(ephemeralContainers=[a_container("debug")])
    shown = all_statuses(pod, a_memory(), a_runtime(running(pod.spec.ephemeral_containers[0]), running(C)))
    assert [(s.name, s.state.running is not None) for s in shown.ephemeral] == [("debug", True)]
    assert [s.name for s in shown.regular] == ["c"]


def test_the_last_state_stays_when_its_container_was_removed() -> None:
    runtime = a_runtime(running(C, attempt=1), exited(C, 3))
    memory = stored(POD, a_memory(), runtime)
    status = the_status(POD, memory, a_runtime(running(C, attempt=1)))
    assert status.last_state.terminated is not None
    assert status.last_state.terminated.exit_code == 3


def test_an_instance_is_never_its_own_last_state() -> None:
    """Backed off, its end was the last state; with the pod's end it's the state."""
    memory = stored(POD, a_memory(waiting=WAITING), a_runtime(exited(C, 1)))
    ending = msgspec.structs.replace(memory, termination=Termination(at=NOW, grace=1, reason="removed"))
    status = the_status(POD, ending, a_runtime(exited(C, 1)))
    assert status.state.terminated is not None
    assert msgspec.to_builtins(status.last_state) == {}


def test_in_a_pod_that_has_failed_nothing_waits_for_a_restart() -> None:
    failed = a_memory(waiting=WAITING, failure=Failure(reason="DeadlineExceeded", message=""))
    assert the_status(POD, failed, a_runtime(exited(C, 1))).state.terminated
    waiting = the_status(POD, failed, nothing()).state.waiting
    assert waiting is not None
    assert waiting.reason == "CrashLoopBackOff"


@pytest.mark.parametrize(("others", "share"), [((), 12288), (("d",), 6144), (("d", "e", "f", "g"), 2457)])
def test_each_containers_messages_are_cut_to_its_share_of_the_pods_12_kib(others: tuple[str, ...], share: int) -> None:
    pod = a_pod(a_container("c"), *map(a_container, others[1:]), initContainers=[*map(a_container, others[:1])])
    ends = [exited(C, 1, attempt=n, error="e" * 10000, termination_message="ä" * 3000) for n in (1, 0)]
    status = next(s for s in all_statuses(pod, a_memory(), a_runtime(*ends)).regular if s.name == "c")
    for state in (status.state, status.last_state):
        assert state.terminated is not None
        message = state.terminated.message
        assert share - 1 <= len(message.encode()) <= share
        assert set(message) <= set("e: ä")


def test_the_stop_signal_is_told_where_the_definition_names_one() -> None:
    pod = a_pod(a_container("c", lifecycle={"stopSignal": "SIGUSR1"}))
    status = the_status(pod, a_memory(), a_runtime(running(pod.spec.containers[0])))
    assert msgspec.to_builtins(status)["stopSignal"] == "SIGUSR1"


@pytest.mark.parametrize(
    ("policy", "state", "phase"), [("Always", "waiting", "Running"), ("Never", "terminated", "Failed")]
)
def test_a_command_that_is_not_there(policy: str, state: str, phase: str) -> None:
    """T11: RunContainerError until it's tried again; under Never that was it."""
    pod = a_pod(restartPolicy=policy)
    memory = a_memory(waiting={"c": Waiting(reason="RunContainerError", message="no such file", at=NOW)})
    runtime = a_runtime(cannot_run(C, error="no such file"))
    status = the_status(pod, memory, runtime)
    assert list(msgspec.to_builtins(status.state)) == [state]
    ends = [e for e in (status.state.terminated, status.last_state.terminated) if e is not None]
    assert [(e.reason, e.message, e.exit_code) for e in ends] == [("ContainerCannotRun", "no such file", 127)]
    assert generate_status(pod, memory, runtime, node_ip=NODE_IP, now=NOW).phase == phase


@pytest.mark.parametrize(
    "reason",
    [
        *("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"),
        *("RegistryUnavailable", "SignatureValidationFailed", "CreateContainerConfigError", "CreateContainerError"),
    ],
)
@pytest.mark.parametrize("policy", ["Always", "Never"])
def test_what_never_got_a_container_is_pending_for_ever_whatever_the_policy(reason: str, policy: str) -> None:
    """T02, M06."""
    pod = a_pod(restartPolicy=policy)
    memory = a_memory(waiting={"c": Waiting(reason=reason, message="m", at=NOW)})
    status = generate_status(pod, memory, a_runtime(), node_ip=NODE_IP, now=NOW)
    assert msgspec.to_builtins(status.container_statuses[0].state) == {"waiting": {"reason": reason, "message": "m"}}
    assert status.phase == "Pending"
    conditions = {c.type: (c.status, c.message) for c in status.conditions}
    assert conditions["PodReadyToStartContainers"] == ("True", "")
    assert conditions["Ready"] == ("False", "containers with unready status: [c]")


def test_one_of_two_containers_crashes() -> None:
    """T13."""
    pod = a_pod(a_container("c"), a_container("d"))
    crashed, fine = pod.spec.containers
    status = generate_status(
        pod, a_memory(waiting=WAITING), a_runtime(exited(crashed, 1), running(fine)), node_ip=NODE_IP, now=NOW
    )
    ready = status.condition("Ready")
    assert ready is not None
    assert (status.phase, ready.status, ready.message) == (
        "Running",
        "False",
        "containers with unready status: [c]",
    )
