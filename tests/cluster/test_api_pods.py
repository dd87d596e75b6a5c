"""Pods of the API server in trouble: how they end, wait and are told (W09, W10, T18, E07, E08, V07)."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.cluster.test_kubectl import SLEEPER, a_pod, is_gone, ready, start
from tests.support.cluster import Cluster
from tests.support.eventually import eventually
from tests.support.joined_node import JoinedNode

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

DEAF = "trap '' TERM; sleep 3600"


def pod_of(name: str, grace: int, command: str, spec: str = "", container: str = "") -> str:
    manifest = a_pod(name, command, spec=spec, container=container)
    return manifest.replace("terminationGracePeriodSeconds: 2", f"terminationGracePeriodSeconds: {grace}")


def waiting_reason(cluster: Cluster, name: str) -> str:
    (status,) = cluster.pod(name)["status"].get("containerStatuses") or [{"state": {}}]
    return str(status["state"].get("waiting", {}).get("reason", ""))


def test_a_delete_with_a_shorter_grace_counts(cluster: Cluster, node: JoinedNode) -> None:
    """W09: of sixty seconds four are left."""
    start(cluster, "deaf", pod_of("deaf", 60, DEAF))
    began = time.monotonic()
    cluster.kubectl("delete", "pod", "deaf", "--grace-period=4", "--wait=false")
    eventually(lambda: is_gone(cluster, "deaf"), within=30)
    assert time.monotonic() - began > 3.5


def test_a_forced_delete_leaves_the_container_its_own_grace(cluster: Cluster, node: JoinedNode) -> None:
    """W09, second half."""
    start(cluster, "deaf-2", pod_of("deaf-2", 5, DEAF))
    began = time.monotonic()
    cluster.kubectl("delete", "pod", "deaf-2", "--grace-period=0", "--force")
    eventually(lambda: not any("_deaf-2_" in name for name in node.containers()), within=40)
    assert time.monotonic() - began > 4.5


def test_a_pod_that_waits_for_its_image_is_deleted(cluster: Cluster, node: JoinedNode) -> None:
    """W10: Failed at the end, gone, and no container is left."""
    cluster.apply(a_pod("unpulled").replace("busybox:1.36", "127.0.0.1:9/none:1"))
    eventually(lambda: waiting_reason(cluster, "unpulled") in ("ErrImagePull", "ImagePullBackOff"), within=60)
    cluster.kubectl("delete", "pod", "unpulled", "--wait=false")
    eventually(lambda: is_gone(cluster, "unpulled"), within=60)
    eventually(lambda: not any("_unpulled_" in name for name in node.containers(every=True)), within=60)


def test_a_readiness_gate_waits_for_its_condition(cluster: Cluster, node: JoinedNode) -> None:
    """T18: containers are ready, the pod is when somebody has said so; what others say stays."""
    cluster.apply(a_pod("gated", spec="  readinessGates: [{conditionType: example.com/ready}]\n"))

    def conditions() -> dict[str, tuple[str, str]]:
        told = cluster.pod("gated")["status"].get("conditions", [])
        return {one["type"]: (one["status"], one.get("reason", "")) for one in told}

    eventually(lambda: conditions().get("ContainersReady") == ("True", ""), within=60)
    assert conditions()["Ready"] == ("False", "ReadinessGatesNotReady")
    say(cluster, "gated", {"conditions": [{"type": "example.com/ready", "status": "True"}]})
    eventually(lambda: conditions()["Ready"] == ("True", ""), within=30)
    assert conditions()["example.com/ready"][0] == "True"


def test_what_others_write_into_a_status_is_taken_back(cluster: Cluster, node: JoinedNode) -> None:
    """As a node's controller does while it doesn't hear of the node."""
    start(cluster, "doubted", a_pod("doubted"))
    say(cluster, "doubted", {"conditions": [{"type": "Ready", "status": "False", "reason": "NodeLost"}]})
    eventually(lambda: ready(cluster, "doubted"), within=30)


def say(cluster: Cluster, name: str, status: dict[str, Any]) -> None:
    path = f"/api/v1/namespaces/default/pods/{name}/status"
    code, answer = cluster.call("PATCH", path, {"status": status}, "application/strategic-merge-patch+json")
    assert code == 200, answer


def test_a_config_map_that_comes_later_starts_the_container(cluster: Cluster, node: JoinedNode) -> None:
    """E07."""
    env = "    env: [{name: A, valueFrom: {configMapKeyRef: {name: late, key: k}}}]\n"
    cluster.apply(a_pod("waits", container=env))
    eventually(lambda: waiting_reason(cluster, "waits") == "CreateContainerConfigError", within=60)
    cluster.kubectl("create", "configmap", "late", "--from-literal=k=v")
    eventually(lambda: ready(cluster, "waits"), within=60)
    assert cluster.kubectl("exec", "waits", "--", "sh", "-c", "echo $A") == "v\n"


def test_variables_win_in_the_order_of_the_manifest(cluster: Cluster, node: JoinedNode) -> None:
    """E07 (optional), E08: env over envFrom, the later source over the earlier."""
    cluster.kubectl("create", "configmap", "one", "--from-literal=k=one", "--from-literal=own=one")
    cluster.kubectl("create", "configmap", "two", "--from-literal=k=two", "--from-literal=own=two")
    env = (
        "    envFrom: [{prefix: P_, configMapRef: {name: one}}, {prefix: P_, configMapRef: {name: two}}]\n"
        "    env: [{name: P_own, value: mine}, "
        "{name: ABSENT, valueFrom: {configMapKeyRef: {name: nothing, key: k, optional: true}}}]\n"
    )
    start(cluster, "env", a_pod("env", container=env))
    assert cluster.kubectl("exec", "env", "--", "sh", "-c", "echo $P_k $P_own ${ABSENT-none}") == "two mine none\n"


def test_items_of_a_config_map_have_their_paths_and_modes(cluster: Cluster, node: JoinedNode) -> None:
    """V07."""
    cluster.kubectl("create", "configmap", "items", "--from-literal=k=v")
    volume = "  volumes: [{{name: v, configMap: {{name: items, items: [{{key: {key}, path: d/e, mode: 0400}}]}}}}]\n"
    mount = "    volumeMounts: [{name: v, mountPath: /v}]\n"
    start(cluster, "items", a_pod("items", spec=volume.format(key="k"), container=mount))
    assert cluster.kubectl("exec", "items", "--", "sh", "-c", "cat /v/d/e; stat -L -c %a /v/d/e") == "v400\n"
    cluster.apply(a_pod("no-key", spec=volume.format(key="absent"), container=mount))
    eventually(lambda: "non-existent config key" in cluster.kubectl("describe", "pod", "no-key"), within=60)
    assert waiting_reason(cluster, "no-key") == "ContainerCreating"


def test_a_service_account_token_is_projected_and_good(cluster: Cluster, node: JoinedNode) -> None:
    """The API server takes the token for the pod's account, and it is bound to the pod."""
    start(cluster, "account", a_pod("account"))
    token = cluster.kubectl("exec", "account", "--", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    _, answer = cluster.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert answer["status"]["user"]["username"] == "system:serviceaccount:default:default"
    assert answer["status"]["user"]["extra"]["authentication.kubernetes.io/pod-name"] == ["account"]


def test_the_variables_of_services_are_there(cluster: Cluster, node: JoinedNode) -> None:
    start(cluster, "linked", a_pod("linked"))
    host = cluster.kubectl("exec", "linked", "--", "sh", "-c", "echo $KUBERNETES_SERVICE_HOST").strip()
    assert host == cluster.get("/api/v1/namespaces/default/services/kubernetes")["spec"]["clusterIP"]


def test_a_job_runs_to_its_end(cluster: Cluster, node: JoinedNode) -> None:
    cluster.kubectl("create", "job", "once", "--image=busybox:1.36", "--", "sh", "-c", "echo done")
    eventually(lambda: "1/1" in cluster.kubectl("get", "job", "once"), within=60)
    assert cluster.kubectl("logs", "job/once") == "done\n"
    cluster.kubectl("delete", "job", "once")


def test_a_pod_with_an_unmet_selector_or_a_field_that_cannot_be_run_fails(cluster: Cluster, node: JoinedNode) -> None:
    """Node case 35; bound by hand, so that no scheduler asks."""

    def bound(name: str, spec: str) -> str:
        return a_pod(name, SLEEPER, spec="  nodeName: localhost\n" + spec)

    cluster.apply(bound("elsewhere", '  nodeSelector: {no-such: "label"}\n'))

    def failed(name: str) -> dict[str, Any] | None:
        status: dict[str, Any] = cluster.pod(name)["status"]
        return status if status.get("phase") == "Failed" else None

    assert eventually(lambda: failed("elsewhere"), within=60)["reason"] == "NodeAffinity"
    cluster.apply(bound("windows", "  volumes: [{name: v, nfs: {server: n.example, path: /x}}]\n"))
    status = eventually(lambda: failed("windows"), within=60)
    assert "nfs" in json.dumps(status)
