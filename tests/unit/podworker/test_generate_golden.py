"""Docker's states of the recorded cases -> the status that the recorded kubelet gave."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from services.podworker.core.actions import compute_pod_actions
from services.podworker.core.generate import generate_status, remember_status
from services.podworker.core.images import never_pull_message
from services.podworker.core.model import PodMemory, RuntimeContainer, RuntimePod
from services.podworker.core.plan import PullImage, SyncConfig
from services.podworker.core.results import record_pull_failed
from shared.kube.pod import Pod
from tests.support.builders import (
    NODE_IP,
    NODE_NAME,
    NOW,
    a_memory,
    a_runtime,
    a_sandbox,
    cannot_run,
    exited,
    golden_pod,
    running,
)
from tests.support.golden_differences import unlisted
from tests.support.golden_form import golden, normal_status

CANNOT_RUN = (
    "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container "
    'process: exec: "/no/such/thing": stat /no/such/thing: no such file or directory: unknown'
)


def shown_by_docker(case: str, pod: Pod) -> list[RuntimeContainer]:
    """The containers as Docker showed them when the case was recorded, newest first."""
    first, last = pod.spec.containers[0], pod.spec.containers[-1]
    match case:
        case "a01" | "a12" | "a13":
            return [running(container) for container in pod.spec.containers]
        case "a02":
            return [exited(first, termination_message="bye\n")]
        case "a03":
            return [exited(first), exited(last, 3, termination_message="why it failed\n")]
        case "a04":
            return [exited(first, 1, attempt=3), exited(first, 1, attempt=2)]
        case "a05" | "a32":
            return [exited(container) for container in pod.spec.containers]
        case "a06":
            return [running(last)]
        case "a08":
            return [cannot_run(first, error=CANNOT_RUN)]
        case "a09":
            return [running(first), *(exited(container) for container in reversed(pod.spec.init_containers))]
        case "a10":
            return [exited(pod.spec.init_containers[0], 7)]
        case "a24":
            return [exited(first, 137)]
        case "a25":
            return [exited(first, 137, oom_killed=True)]
        case _:
            return []


def settled_memory(case: str, pod: Pod, runtime: RuntimePod) -> PodMemory:
    memory = a_memory(pod)
    if case == "a24":
        memory = a_memory(pod, started_at=NOW - 6)
        memory = compute_pod_actions(pod, memory, a_runtime(running(pod.spec.containers[0])), now=NOW).memory
    if case == "a06":
        pull = PullImage(container="c", reference="localhost/nope:1", policy="Never", reason="")
        memory = record_pull_failed(
            memory,
            pull,
            "ErrImageNeverPull",
            never_pull_message(pull.reference),
            now=NOW,
            config=SyncConfig(),
        )
    return compute_pod_actions(pod, memory, runtime, now=NOW).memory


@pytest.mark.parametrize(
    "case", ["a01", "a02", "a03", "a04", "a05", "a06", "a07", "a08", "a09", "a10", "a12", "a13", "a24", "a25", "a32"]
)
def test_the_status_is_the_kubelets(case: str) -> None:
    pod = golden_pod(case)
    runtime = a_runtime(*shown_by_docker(case, pod))
    memory = settled_memory(case, pod, runtime)
    status = generate_status(pod, memory, runtime, node_ip=NODE_IP, now=NOW)
    form = normal_status(as_json(status), as_json(pod)["metadata"], NODE_NAME)
    assert not unlisted(case, {"pod": golden(case)["pod"]}, {"pod": form})


def test_a_finished_pods_status_stays_after_its_sandbox_stopped() -> None:
    pod = golden_pod("a02")
    before = a_runtime(*shown_by_docker("a02", pod))
    memory = a_memory(pod)
    memory = remember_status(memory, generate_status(pod, memory, before, node_ip=NODE_IP, now=NOW), now=NOW)
    after = a_runtime(*before.containers, sandboxes=(a_sandbox(ready=False),))
    status = generate_status(pod, memory, after, node_ip=NODE_IP, now=NOW + 60)
    form = normal_status(as_json(status), as_json(pod)["metadata"], NODE_NAME)
    assert form == golden("a02")["pod"]


def as_json(struct: msgspec.Struct) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(struct))
    return decoded
