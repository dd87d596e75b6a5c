"""The words of events (node.md 6; the newest kubelet's)."""

from __future__ import annotations

import pytest

from services.podworker.core import events_text
from services.podworker.core.actions import compute_pod_actions
from services.podworker.core.events_text import PodEvent
from services.podworker.core.generate import generate_status, remember_status
from tests.support.builders import NODE_IP, NOW, UID, a_memory, a_pod, a_runtime, exited

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
        (events_text.pull_backed_off("c", "x:1"), 'Normal BackOff Back-off pulling image "x:1"'),
        (events_text.start_failed("c", "ErrImagePull"), "Warning Failed Error: ErrImagePull"),
        (events_text.created("c"), "Normal Created Container created"),
        (events_text.started("c"), "Normal Started Container started"),
        (events_text.killing("c"), "Normal Killing Stopping container c"),
        (
            events_text.restart_backed_off("c", "p_ns(u)"),
            "Warning BackOff Back-off restarting failed container c in pod p_ns(u)",
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
            events_text.missing_cluster_dns("ClusterFirst"),
            "Warning MissingClusterDNS kubelet does not have ClusterDNS IP configured and cannot create Pod "
            'using "ClusterFirst" policy. Falling back to "Default" policy.',
        ),
    ],
)
def test_events_are_worded_as_the_newest_kubelets(event: PodEvent, expected: str) -> None:
    assert f"{event.type} {event.reason} {event.message}" == expected


def test_a_containers_event_tells_its_field_and_a_pods_does_not() -> None:
    assert events_text.started("c").field_path == "spec.containers{c}"
    assert events_text.sandbox_changed().field_path == ""


def test_a_killed_child_is_told_once() -> None:
    pod = a_pod(restartPolicy="Never")
    runtime = a_runtime(exited(C, 3, oom_killed=True))
    plan = compute_pod_actions(pod, a_memory(), runtime, now=NOW)
    assert [e.reason for e in plan.events] == ["ChildOOMKilled"]
    status = generate_status(pod, plan.memory, runtime, node_ip=NODE_IP, now=NOW)
    memory = remember_status(plan.memory, status, now=NOW)
    assert not compute_pod_actions(pod, memory, runtime, now=NOW).events


def test_an_oom_killed_container_needs_no_event_of_its_own() -> None:
    runtime = a_runtime(exited(C, 137, oom_killed=True))
    assert not compute_pod_actions(a_pod(restartPolicy="Never"), a_memory(), runtime, now=NOW).events


def test_a_pod_is_named_with_its_uid() -> None:
    assert events_text.full_name("ns", "p", UID) == f"p_ns({UID})"
