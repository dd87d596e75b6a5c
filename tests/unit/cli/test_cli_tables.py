"""The rows of `podbus get`, rule by rule as kubectl's printer has them."""

from __future__ import annotations

from typing import Any

import pytest

from cli.tables import node_table, pod_row, pod_status, pod_table

NOW = 1764547200.0  # 2025-12-01T00:00:00Z
RUNNING = {"running": {"startedAt": "2025-11-30T23:59:00Z"}}


def container(name: str, state: dict[str, Any], *, ready: bool = False, **more: Any) -> dict[str, Any]:
    return {"name": name, "state": state, "ready": ready, "restartCount": 0, **more}


def a_pod(statuses: list[dict[str, Any]], phase: str = "Running", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "web-n1", "namespace": "default", "creationTimestamp": "2025-11-30T23:58:30Z"},
        "spec": {"containers": [{"name": s["name"]} for s in statuses] or [{"name": "c"}], "nodeName": "n1"},
        "status": {"phase": phase, "containerStatuses": statuses, **status},
    }


def test_a_running_pod_is_told_with_its_ready_containers_and_age() -> None:
    pod = a_pod([container("a", RUNNING, ready=True), container("b", RUNNING)])
    assert pod_row(pod, NOW, is_wide=False) == ["web-n1", "1/2", "Running", "0", "90s"]


def test_restarts_say_how_long_ago_the_last_one_was() -> None:
    last = {"terminated": {"exitCode": 1, "finishedAt": "2025-11-30T23:59:40Z"}}
    pod = a_pod([container("a", RUNNING, ready=True, lastState=last, restartCount=3)])
    assert pod_row(pod, NOW, is_wide=False)[3] == "3 (20s ago)"


def test_restarts_without_an_ended_run_are_a_number() -> None:
    pod = a_pod([container("a", RUNNING, restartCount=2)])
    assert pod_row(pod, NOW, is_wide=False)[3] == "2"


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ({"waiting": {"reason": "CrashLoopBackOff"}}, "CrashLoopBackOff"),
        ({"waiting": {"reason": "ContainerCreating"}}, "ContainerCreating"),
        ({"waiting": {}}, "Pending"),
        ({"terminated": {"exitCode": 3, "reason": "Error"}}, "Error"),
        ({"terminated": {"exitCode": 3}}, "ExitCode:3"),
        ({"terminated": {"exitCode": 0, "signal": 9}}, "Signal:9"),
    ],
)
def test_a_containers_reason_stands_for_the_pod(state: dict[str, Any], text: str) -> None:
    assert pod_status(a_pod([container("a", state)], phase="Pending")) == text


def test_the_first_containers_reason_wins() -> None:
    pod = a_pod(
        [
            container("a", {"waiting": {"reason": "ImagePullBackOff"}}),
            container("b", {"terminated": {"reason": "Error"}}),
        ]
    )
    assert pod_status(pod) == "ImagePullBackOff"


def test_a_completed_container_beside_a_running_one_is_running_only_when_ready() -> None:
    statuses = [container("a", {"terminated": {"reason": "Completed"}}), container("b", RUNNING, ready=True)]
    assert pod_status(a_pod(statuses)) == "NotReady"
    assert pod_status(a_pod(statuses, conditions=[{"type": "Ready", "status": "True"}])) == "Running"


def test_the_pods_own_reason_beats_its_phase() -> None:
    assert pod_status(a_pod([], phase="Failed", reason="Evicted")) == "Evicted"


def test_a_pod_that_was_told_to_end_is_terminating_until_its_phase_is_final() -> None:
    pod = a_pod([container("a", RUNNING, ready=True)])
    pod["metadata"]["deletionTimestamp"] = "2025-12-01T00:00:30Z"
    assert pod_status(pod) == "Terminating"
    pod["status"]["phase"] = "Succeeded"
    assert pod_status(pod) == "Succeeded"


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ({"waiting": {"reason": "PodInitializing"}}, "Init:1/2"),
        ({"running": {}}, "Init:1/2"),
        ({"waiting": {"reason": "CrashLoopBackOff"}}, "Init:CrashLoopBackOff"),
        ({"terminated": {"exitCode": 2, "reason": "Error"}}, "Init:Error"),
        ({"terminated": {"exitCode": 2}}, "Init:ExitCode:2"),
    ],
)
def test_an_init_container_that_holds_the_pod_up_is_told(state: dict[str, Any], text: str) -> None:
    pod = a_pod([container("c", {"waiting": {"reason": "PodInitializing"}})], phase="Pending")
    pod["spec"]["initContainers"] = [{"name": "i"}, {"name": "j"}]
    done = container("i", {"terminated": {"exitCode": 0, "reason": "Completed"}})
    pod["status"]["initContainerStatuses"] = [done, container("j", state, restartCount=4)]
    assert pod_status(pod) == text
    assert pod_row(pod, NOW, is_wide=False)[3] == "4"


def test_a_sidecar_counts_as_a_container() -> None:
    pod = a_pod([container("c", RUNNING, ready=True)])
    pod["spec"]["initContainers"] = [{"name": "s", "restartPolicy": "Always"}]
    pod["status"]["initContainerStatuses"] = [container("s", RUNNING, ready=True, started=True, restartCount=1)]
    assert pod_row(pod, NOW, is_wide=False)[:4] == ["web-n1", "2/2", "Running", "1"]


def test_a_static_pods_age_counts_from_when_it_was_first_seen() -> None:
    pod = a_pod([container("a", RUNNING)])
    pod["metadata"]["creationTimestamp"] = None
    pod["metadata"]["annotations"] = {"kubernetes.io/config.seen": "2025-11-30T23:59:55.5Z"}
    assert pod_row(pod, NOW, is_wide=False)[4] == "4s"


def test_the_wide_table_has_address_node_and_gates() -> None:
    pod = a_pod([container("a", RUNNING, ready=True)], podIPs=[{"ip": "172.17.0.2"}])
    assert pod_table([pod], NOW, is_wide=True, has_namespaces=True) == (
        "NAMESPACE   NAME     READY   STATUS    RESTARTS   AGE   IP           NODE   NOMINATED NODE   READINESS GATES\n"
        "default     web-n1   1/1     Running   0          90s   172.17.0.2   n1     <none>           <none>\n"
    )


def test_a_node_is_told_with_its_condition_and_version() -> None:
    node = {
        "metadata": {"name": "n1", "creationTimestamp": "2025-11-30T00:00:00Z"},
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {
                "kubeletVersion": "v1.36.0",
                "osImage": "Debian",
                "kernelVersion": "6.1",
                "containerRuntimeVersion": "docker://20.10.24",
            },
        },
    }
    assert node_table([node], NOW, is_wide=True) == (
        "NAME   STATUS                     ROLES    AGE   VERSION   INTERNAL-IP   EXTERNAL-IP   OS-IMAGE   "
        "KERNEL-VERSION   CONTAINER-RUNTIME\n"
        "n1     Ready,SchedulingDisabled   <none>   24h   v1.36.0   10.0.0.1      <none>        Debian     "
        "6.1              docker://20.10.24\n"
    )
