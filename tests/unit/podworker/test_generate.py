"""The pod's own fields: phase and its cause, addresses, times (lifecycle 4.4)."""

from __future__ import annotations

import msgspec

from services.podworker.core.actions import compute_pod_actions
from services.podworker.core.generate import generate_status
from services.podworker.core.model import Failure, PodMemory, Rejection, RuntimePod, Stop, Termination
from shared.kube.pod import GivenStatus, Pod
from shared.kube.status import PodIP, PodStatus
from tests.support.builders import (
    NODE_IP,
    NOW,
    POD_IP,
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


def generated(memory: PodMemory, runtime: RuntimePod, pod: Pod = POD, node_ip: str = NODE_IP) -> PodStatus:
    return generate_status(pod, memory, runtime, node_ip=node_ip, now=NOW)


def test_addresses_stay_after_the_sandbox_has_gone() -> None:
    memory = stored(POD, a_memory(), a_runtime(running(C)))
    status = generated(memory, a_runtime(exited(C), sandboxes=(a_sandbox(ready=False),)))
    assert (status.host_ip, status.host_ips) == (NODE_IP, [PodIP(ip=NODE_IP)])
    assert (status.pod_ip, status.pod_ips) == (POD_IP, [PodIP(ip=POD_IP)])
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


def test_a_pod_that_failed_as_a_whole_tells_why_and_goes_on_telling() -> None:
    memory = a_memory(failure=Failure(reason="DeadlineExceeded", message="m"))
    for runtime in (a_runtime(running(C)), a_runtime(exited(C, 137)), nothing()):
        memory = stored(POD, memory, runtime)
        assert memory.status is not None
        assert (memory.status.phase, memory.status.reason, memory.status.message) == ("Failed", "DeadlineExceeded", "m")


def test_a_pod_that_is_over_in_its_source_stays_over_though_its_row_was_lost() -> None:
    """Nothing of it runs: nothing is started (lifecycle 2.1)."""
    given = GivenStatus(phase="Failed", reason="Evicted", message="m")
    pod = msgspec.structs.replace(POD, status=given)
    status = generated(a_memory(source="api"), nothing(), pod)
    assert (status.phase, status.reason, status.message) == ("Failed", "Evicted", "m")
    assert compute_pod_actions(pod, a_memory(source="api"), nothing(), now=NOW).actions == ()
    unfinished = msgspec.structs.replace(POD, status=GivenStatus(phase="Running", reason="R"))
    assert generated(a_memory(source="api"), nothing(), unfinished).phase == "Pending"


def test_a_new_phase_has_no_cause_of_the_old_one() -> None:
    before = PodStatus(phase="Pending", reason="R", message="m", qos_class="BestEffort")
    status = generated(a_memory(status=before), a_runtime(running(C)))
    assert (status.phase, status.reason, status.message) == ("Running", "", "")


def test_the_generation_is_told_where_there_is_one() -> None:
    counted = msgspec.structs.replace(POD, metadata=msgspec.structs.replace(POD.metadata, generation=7))
    assert next(iter(msgspec.to_builtins(generated(a_memory(), nothing(), counted)).items())) == (
        "observedGeneration",
        7,
    )
    assert "observedGeneration" not in msgspec.to_builtins(generated(a_memory(), nothing()))


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
