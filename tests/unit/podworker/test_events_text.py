"""The words of events (node.md 6; the newest kubelet's)."""

from __future__ import annotations

from typing import Any

import pytest

from services.podworker.core import events_text
from services.podworker.core.actions import compute_pod_actions
from services.podworker.core.events_text import PodEvent
from services.podworker.core.generate import generate_status, remember_status
from services.podworker.core.model import RuntimeContainer, Stop
from shared.kube.pod import Pod
from tests.support.builders import NODE_IP, NOW, UID, a_memory, a_pod, a_runtime, exited, running

C = a_pod().spec.containers[0]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (events_text.pulling("c", "x:1"), 'Normal Pulling Pulling image "x:1"'),
        (
            events_text.pulled("c", "x:1", 1.2345, 61.5, 4194304),
            'Normal Pulled Successfully pulled image "x:1" in 1.234s (1m1.5s including waiting). '
            "Image size: 4194304 bytes.",
        ),
        (
            events_text.already_present("c", "x:1"),
            'Normal Pulled Container image "x:1" already present on machine and can be accessed by the pod',
        ),
        (events_text.pull_failed("c", "x:1", "e"), 'Warning Failed Failed to pull image "x:1": e'),
        (
            events_text.pull_backed_off("c", "x:1", 19.2),
            'Normal BackOff Back-off pulling image "x:1"; next try in 20s',
        ),
        (events_text.start_failed("c", "ErrImagePull"), "Warning Failed Error: ErrImagePull"),
        (events_text.created("c"), "Normal Created Container created"),
        (events_text.started("c"), "Normal Started Container started"),
        (events_text.killing("c"), "Normal Killing Stopping container c"),
        (
            events_text.restart_backed_off("c", "p_ns(u)", 9.97),
            "Warning BackOff Back-off restarting failed container c in pod p_ns(u); next try in 10s",
        ),
        (
            events_text.sandbox_changed(),
            "Normal SandboxChanged Pod sandbox changed, it will be killed and re-created.",
        ),
        (
            events_text.sandbox_failed("e"),
            "Warning FailedCreatePodSandBox Failed to create pod sandbox: e",
        ),
        (
            events_text.missing_cluster_dns("p_ns(u)"),
            'Warning MissingClusterDNS pod: "p_ns(u)". kubelet does not have ClusterDNS IP configured and cannot '
            'create Pod using "ClusterFirst" policy. Falling back to "Default" policy.',
        ),
    ],
)
def test_events_are_worded_as_the_newest_kubelets(event: PodEvent, expected: str) -> None:
    assert f"{event.type} {event.reason} {event.message}" == expected


def test_a_containers_event_tells_its_field_and_a_pods_does_not() -> None:
    pod = a_pod(initContainers=[{"name": "i", "image": "x:1"}], ephemeralContainers=[{"name": "e", "image": "x:1"}])
    lists = events_text.container_lists(pod)
    assert events_text.started("c").field_path(lists) == "spec.containers{c}"
    assert events_text.started("i").field_path(lists) == "spec.initContainers{i}"
    assert events_text.started("e").field_path(lists) == "spec.ephemeralContainers{e}"
    assert events_text.sandbox_changed().field_path(lists) == ""


def test_a_killed_child_is_told_once() -> None:
    pod = a_pod(restartPolicy="Never")
    runtime = a_runtime(exited(C, 3, oom_killed=True))
    plan = compute_pod_actions(pod, a_memory(), runtime, now=NOW)
    assert [e.reason for e in plan.events] == ["ChildOOMKilled", "Exited"]
    status = generate_status(pod, plan.memory, runtime, node_ip=NODE_IP, now=NOW)
    memory = remember_status(plan.memory, status, now=NOW)
    assert not compute_pod_actions(pod, memory, runtime, now=NOW).events


def told(pod: Pod, *containers: RuntimeContainer, **memory: Any) -> list[str]:
    """The events of a first look at these."""
    plan = compute_pod_actions(pod, a_memory(**memory), a_runtime(*containers), now=NOW)
    return [f"{event.type} {event.reason} {event.message}" for event in plan.events]


def test_an_oom_killed_container_tells_the_limit_that_it_reached() -> None:
    pod = a_pod(containers=[{"name": "c", "image": "x:1", "resources": {"limits": {"memory": "20Mi"}}}])
    assert told(pod, exited(pod.spec.containers[0], 137, oom_killed=True)) == [
        "Warning Exited Container c exited with code 137 (OOMKilled): it reached its memory limit of 20Mi; "
        "it is started again (restartPolicy Always)"
    ]


@pytest.mark.parametrize(
    ("policy", "code", "expected"),
    [
        ("Always", 3, ["Warning Exited Container c exited with code 3 (Error): it is started again"]),
        ("Never", 3, ["Warning Exited Container c exited with code 3 (Error): it isn't started again"]),
        ("OnFailure", 143, ["Warning Exited Container c exited with code 143 (Error, SIGTERM): it is started again"]),
        ("Always", 0, ["Normal Exited Container c exited with code 0 (Completed): it is started again"]),
        ("Never", 0, []),
        ("OnFailure", 0, []),
    ],
)
def test_an_end_tells_exit_code_cause_and_what_follows(policy: str, code: int, expected: list[str]) -> None:
    """A restart says why; a container that has done its work needs no event."""
    assert told(a_pod(restartPolicy=policy), exited(C, code)) == [
        f"{text} (restartPolicy {policy})" for text in expected
    ]


def test_what_a_container_wrote_is_in_no_event() -> None:
    assert "s3cret" not in str(told(a_pod(), exited(C, 3, termination_message="password s3cret")))


def test_a_stopped_container_tells_no_end_of_its_own() -> None:
    """Event Killing told it."""
    ended = exited(C, 137)
    assert told(a_pod(), ended, stops={ended.id: Stop(deadline=NOW, reason="definition")}) == []


def test_a_container_that_somebody_removed_is_told_once() -> None:
    pod, runtime = a_pod(), a_runtime(running(C))
    status = generate_status(pod, a_memory(), runtime, node_ip=NODE_IP, now=NOW)
    memory = remember_status(a_memory(), status, now=NOW)
    assert "ContainerGone" not in str(compute_pod_actions(pod, memory, runtime, now=NOW).events)
    plan = compute_pod_actions(pod, memory, a_runtime(), now=NOW)
    assert [event.reason for event in plan.events] == ["ContainerGone"]
    status = generate_status(pod, plan.memory, a_runtime(), node_ip=NODE_IP, now=NOW)
    memory = remember_status(plan.memory, status, now=NOW)
    assert not compute_pod_actions(pod, memory, a_runtime(), now=NOW).events


def test_a_failed_init_container_tells_its_end() -> None:
    pod = a_pod(initContainers=[{"name": "i", "image": "x:1"}])
    first = told(pod, exited(pod.spec.init_containers[0], 1))[0]
    assert first.startswith("Warning Exited Container i exited with code 1 (Error): it is started again")


def test_a_pod_is_named_with_its_uid() -> None:
    assert events_text.full_name("ns", "p", UID) == f"p_ns({UID})"
