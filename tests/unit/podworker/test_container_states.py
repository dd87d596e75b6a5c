"""Container states, reasons and counts (lifecycle 4.3, 4.4)."""

from __future__ import annotations

import msgspec
import pytest

from services.podworker.core.container_states import container_statuses
from services.podworker.core.generate import generate_status, remember_status
from services.podworker.core.model import PodMemory, Rejection, RuntimePod, Stop, Termination, Waiting
from shared.kube.pod import Pod
from shared.kube.status import ContainerStatus, PodIP, PodStatus, StateTerminated
from tests.support.builders import (
    NODE_IP,
    NOW,
    POD_IP,
    a_container,
    a_memory,
    a_pod,
    a_runtime,
    a_sandbox,
    cannot_run,
    exited,
    nothing,
    running,
)

POD = a_pod()
C = POD.spec.containers[0]
WAITING = {"c": Waiting(reason="CrashLoopBackOff", message="back-off", at=NOW)}


def the_status(pod: Pod, memory: PodMemory, runtime: RuntimePod) -> ContainerStatus:
    (status,) = container_statuses(pod, memory, runtime)
    return status


def the_end(runtime: RuntimePod, pod: Pod = POD) -> StateTerminated:
    end = the_status(pod, a_memory(), runtime).state.terminated
    assert end is not None
    return end


def stored(pod: Pod, memory: PodMemory, runtime: RuntimePod) -> PodMemory:
    """The memory after the status was stored."""
    status = generate_status(pod, memory, runtime, node_ip=NODE_IP, now=NOW)
    return remember_status(memory, status, now=NOW)


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


def test_statuses_are_ordered_by_name() -> None:
    pod = a_pod(a_container("b"), a_container("a"))
    assert [s.name for s in container_statuses(pod, a_memory(), nothing())] == ["a", "b"]


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
    assert container_statuses(never, memory, nothing()) == memory.status.container_statuses


def test_at_the_end_no_container_of_an_initialized_pod_seems_to_wait() -> None:
    memory = stored(POD, a_memory(waiting=WAITING), a_runtime(exited(C, 1)))
    ended = msgspec.structs.replace(
        memory, termination=Termination(at=NOW, grace=1, reason="removed"), terminated_at=NOW
    )
    end = the_status(POD, ended, nothing()).state.terminated
    assert end is not None
    assert (end.reason, end.exit_code) == ("ContainerStatusUnknown", 137)
    assert end.message == "The container could not be located when the pod was terminated"


def test_a_container_that_never_came_to_be_waits_to_the_end_of_its_pod() -> None:
    ended = a_memory(termination=Termination(at=NOW, grace=1, reason="removed"), terminated_at=NOW)
    assert the_status(POD, ended, nothing()).state.waiting


# -- the pod's other fields


def generated(memory: PodMemory, runtime: RuntimePod, pod: Pod = POD, node_ip: str = NODE_IP) -> PodStatus:
    return generate_status(pod, memory, runtime, node_ip=node_ip, now=NOW)


def test_addresses_stay_after_the_sandbox_has_gone() -> None:
    memory = stored(POD, a_memory(), a_runtime(running(C)))
    status = generated(memory, a_runtime(exited(C), sandboxes=(a_sandbox(ready=False),)))
    assert (status.host_ip, status.pod_ip, status.pod_ips) == (NODE_IP, POD_IP, [PodIP(ip=POD_IP)])
    ready = status.condition("PodReadyToStartContainers")
    assert ready is not None
    assert ready.status == "False"


def test_one_address_per_family_the_nodes_first() -> None:
    sandbox = a_sandbox(ips=("172.17.0.2", "fd00::2", "172.17.0.3"))
    assert [ip.ip for ip in generated(a_memory(), a_runtime(sandboxes=(sandbox,))).pod_ips] == [
        "172.17.0.2",
        "fd00::2",
    ]
    v6 = generated(a_memory(), a_runtime(sandboxes=(sandbox,)), node_ip="2001:db8::1")
    assert v6.pod_ip == "fd00::2"


def test_a_host_network_pod_has_the_nodes_address() -> None:
    pod = a_pod(hostNetwork=True)
    assert generated(a_memory(), a_runtime(sandboxes=()), pod).pod_ip == NODE_IP


def test_the_start_time_is_that_of_the_first_status() -> None:
    memory = stored(POD, a_memory(), nothing())
    later = generate_status(POD, memory, a_runtime(), node_ip=NODE_IP, now=NOW + 99)
    assert later.start_time == "2027-01-15T08:00:00Z"


def test_a_rejected_pod_has_its_reason_and_no_containers() -> None:
    memory = a_memory(admitted=False, rejection=Rejection(reason="NodePorts", message="no free ports"))
    assert msgspec.to_builtins(generated(memory, nothing())) == {
        "phase": "Failed",
        "message": "Pod was rejected: no free ports",
        "reason": "NodePorts",
        "startTime": "2027-01-15T08:00:00Z",
        "qosClass": "BestEffort",
    }


def test_reason_and_message_stay_while_the_phase_does() -> None:
    evicted = PodStatus(phase="Failed", reason="Evicted", message="m", qos_class="BestEffort")
    status = generated(a_memory(status=evicted), a_runtime(exited(C)))
    assert (status.phase, status.reason, status.message) == ("Failed", "Evicted", "m")


def test_an_ended_static_pod_keeps_its_phase_and_one_of_the_api_gets_a_terminal_one() -> None:
    ending = Termination(at=NOW, grace=1, reason="removed")
    stops = {"c-0": Stop(deadline=NOW, reason="terminating")}
    for source, phase in (("file", "Running"), ("api", "Failed")):
        memory = stored(POD, a_memory(source=source), a_runtime(running(C)))
        memory = msgspec.structs.replace(memory, termination=ending, terminated_at=NOW, stops=stops)
        assert generated(memory, a_runtime(exited(C, 143))).phase == phase


def test_generating_again_changes_nothing() -> None:
    runtime = a_runtime(running(C), exited(C, 1))
    memory = stored(POD, a_memory(), runtime)
    again = generate_status(POD, memory, runtime, node_ip=NODE_IP, now=NOW + 500)
    assert again == memory.status
