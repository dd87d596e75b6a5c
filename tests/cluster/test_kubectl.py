"""What people do with kubectl, against a real API server, scheduler and controller-manager."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import Cluster
from tests.support.eventually import eventually
from tests.support.joined_node import JoinedNode
from tests.support.nats_server import free_port
from tests.support.node import is_ready

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

SLEEPER = "trap 'exit 0' TERM; sleep 3600 & wait"


def a_pod(name: str, command: str = SLEEPER, *, spec: str = "", container: str = "") -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\n"
        f"spec:\n  terminationGracePeriodSeconds: 2\n{spec}"
        f"  containers:\n  - name: main\n    image: busybox:1.36\n    command: [sh, -c, {command!r}]\n{container}"
    )


def start(cluster: Cluster, name: str, manifest: str) -> Any:
    cluster.apply(manifest)
    return eventually(lambda: ready(cluster, name), within=60)


def ready(cluster: Cluster, name: str) -> Any:
    pod = cluster.pod(name)
    return pod if is_ready(pod) else None


def is_gone(cluster: Cluster, name: str) -> bool:
    return cluster.call("GET", f"/api/v1/namespaces/default/pods/{name}")[0] == 404


def test_the_node_is_ready_and_has_its_lease(cluster: Cluster, node: JoinedNode) -> None:
    assert "Ready" in cluster.kubectl("get", "nodes")
    lease = cluster.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/localhost")
    assert lease["spec"]["holderIdentity"] == "localhost"


def test_a_deployment_is_scheduled_scaled_rolled_out_and_deleted(cluster: Cluster, node: JoinedNode) -> None:
    def replicas(**wanted: int) -> bool:
        status = cluster.get("/apis/apps/v1/namespaces/default/deployments/web")["status"]
        return all(status.get(name, 0) == count for name, count in wanted.items())

    def pods() -> list[Any]:
        return list(cluster.get("/api/v1/namespaces/default/pods?labelSelector=app=web")["items"])

    cluster.kubectl("create", "deployment", "web", "--image=busybox:1.36", "--replicas=10", "--", "sh", "-c", SLEEPER)
    eventually(lambda: replicas(readyReplicas=10), within=90)
    assert len({pod["status"]["podIP"] for pod in pods()}) == 10
    cluster.kubectl("scale", "deployment/web", "--replicas=3")
    eventually(lambda: len(pods()) == 3, within=60)
    before = {pod["metadata"]["name"] for pod in pods()}
    cluster.kubectl("set", "env", "deployment/web", "ROUND=2")
    cluster.kubectl("rollout", "status", "deployment/web", within=90)
    eventually(lambda: len(pods()) == 3 and not before & {pod["metadata"]["name"] for pod in pods()}, within=60)
    cluster.kubectl("delete", "deployment/web")
    eventually(lambda: pods() == [], within=60)


def test_logs_are_followed_and_those_of_the_crashed_instance_are_kept(cluster: Cluster, node: JoinedNode) -> None:
    crash = "if [ -e /kept/once ]; then echo second; sleep 3600; fi; touch /kept/once; echo first; exit 3"
    spec = "  volumes: [{name: kept, emptyDir: {}}]\n"
    cluster.apply(a_pod("logs", crash, spec=spec, container="    volumeMounts: [{name: kept, mountPath: /kept}]\n"))
    eventually(lambda: "second" in cluster.kubectl("logs", "logs", check=False), within=60)
    assert cluster.kubectl("logs", "-p", "logs") == "first\n"
    start(cluster, "chatty", a_pod("chatty", "for i in 1 2 3; do echo line $i; done; sleep 2; echo last"))
    assert cluster.kubectl("logs", "-f", "chatty") == "line 1\nline 2\nline 3\nlast\n"
    assert cluster.kubectl("logs", "--tail=1", "chatty") == "last\n"


def test_commands_are_run_and_attached_to(cluster: Cluster, node: JoinedNode) -> None:
    start(cluster, "shell", a_pod("shell"))
    assert cluster.kubectl("exec", "shell", "--", "sh", "-c", "echo out; echo err >&2") == "out\n"
    assert cluster.kubectl("exec", "-i", "shell", "--", "cat", stdin=b"through") == "through"
    said = cluster.kubectl("exec", "shell", "--", "sh", "-c", "exit 7", check=False)
    assert "exit code 7" in said
    # A terminal of its own, as in `kubectl exec -it`.
    command = cluster.kubectl_command("exec", "-it", "shell", "--", "sh", "-c", "tty; stty size")
    assert "/dev/pts/" in in_terminal(command)
    start(cluster, "echo", a_pod("echo", "while read line; do echo got $line; done", container="    stdin: true\n"))
    process = subprocess.Popen(
        cluster.kubectl_command("attach", "-i", "echo"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"hello\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"got hello\n"
    finally:
        process.kill()
        process.wait()


def test_files_of_64_mib_are_copied_both_ways(cluster: Cluster, node: JoinedNode, tmp_path: Path) -> None:
    start(cluster, "files", a_pod("files"))
    content = os.urandom(1 << 20) * 64
    (tmp_path / "there").write_bytes(content)
    cluster.kubectl("cp", str(tmp_path / "there"), "files:/tmp/there", within=120)
    wanted = hashlib.sha256(content).hexdigest()
    assert cluster.kubectl("exec", "files", "--", "sha256sum", "/tmp/there").split()[0] == wanted
    cluster.kubectl("cp", "files:/tmp/there", str(tmp_path / "back"), within=120)
    assert hashlib.sha256((tmp_path / "back").read_bytes()).hexdigest() == wanted


def test_ports_are_forwarded(cluster: Cluster, node: JoinedNode) -> None:
    start(cluster, "served", a_pod("served", "echo page > /tmp/index.html; exec httpd -f -p 8080 -h /tmp"))
    port = free_port()
    process = subprocess.Popen(
        cluster.kubectl_command("port-forward", "served", f"{port}:8080"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert eventually(lambda: fetched(port), within=30).endswith(b"page\n")
    finally:
        process.kill()
        process.wait()


def fetched(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 5) as link:
        link.sendall(b"GET /index.html HTTP/1.0\r\n\r\n")
        link.settimeout(5)
        answer = b""
        while data := link.recv(65536):
            answer += data
    return answer


def test_describe_tells_what_has_happened(cluster: Cluster, node: JoinedNode) -> None:
    start(cluster, "told", a_pod("told"))

    def events() -> str:
        said = cluster.kubectl("describe", "pod", "told")
        return said[said.index("Events:") :]

    for reason in ("Scheduled", "Pulled", "Created", "Started"):
        eventually(lambda reason=reason: reason in events(), within=30)  # type: ignore[misc]
    assert "kubelet" in events()


def test_files_of_config_maps_and_secrets_follow(cluster: Cluster, node: JoinedNode) -> None:
    cluster.kubectl("create", "configmap", "cm", "--from-literal=key=one")
    cluster.kubectl("create", "secret", "generic", "sec", "--from-literal=key=hidden one")
    mounts = "    volumeMounts: [{name: cm, mountPath: /cm}, {name: sec, mountPath: /sec}]\n"
    volumes = "  volumes: [{name: cm, configMap: {name: cm}}, {name: sec, secret: {secretName: sec}}]\n"
    start(cluster, "config", a_pod("config", spec=volumes, container=mounts))

    def files() -> str:
        return cluster.kubectl("exec", "config", "--", "cat", "/cm/key", "/sec/key")

    assert files() == "onehidden one"
    cluster.kubectl("patch", "configmap", "cm", "-p", '{"data": {"key": "two"}}')
    cluster.kubectl("patch", "secret", "sec", "-p", '{"stringData": {"key": "hidden two"}}')
    eventually(lambda: files() == "twohidden two", within=60)


def test_a_node_is_drained(cluster: Cluster, node: JoinedNode) -> None:
    """Pods of a controller are evicted; nothing new comes while the node is cordoned."""
    cluster.kubectl("create", "deployment", "drained", "--image=busybox:1.36", "--", "sh", "-c", SLEEPER)
    eventually(lambda: "1/1" in cluster.kubectl("get", "deployment", "drained"), within=60)
    selector = "--pod-selector=app=drained"
    cluster.kubectl("drain", "localhost", selector, "--delete-emptydir-data", "--timeout=60s", within=90)
    try:
        left = cluster.get("/api/v1/namespaces/default/pods?labelSelector=app=drained")["items"]
        assert [pod for pod in left if pod["spec"].get("nodeName")] == []
    finally:
        cluster.kubectl("uncordon", "localhost")
    eventually(lambda: "1/1" in cluster.kubectl("get", "deployment", "drained"), within=60)
    cluster.kubectl("delete", "deployment", "drained")


def test_a_forced_delete_stops_the_container(cluster: Cluster, node: JoinedNode) -> None:
    """The object is gone at once; the container ends with the pod's own grace."""
    start(cluster, "forced", a_pod("forced"))
    name = "k8s_main_forced_default_"
    assert any(one.startswith(name) for one in node.containers())
    cluster.kubectl("delete", "pod", "forced", "--grace-period=0", "--force")
    eventually(lambda: is_gone(cluster, "forced"), within=10)
    eventually(lambda: not any(one.startswith(name) for one in node.containers()), within=30)


def test_a_static_pod_is_seen_and_comes_back_when_its_picture_is_deleted(cluster: Cluster, node: JoinedNode) -> None:
    """Case 32: the picture is named by node and hash and owned by the Node; the container isn't touched."""
    node.apply("fixed.yaml", a_pod("fixed"))
    name = "fixed-localhost"
    shown = eventually(lambda: ready(cluster, name), within=60)
    annotations, owner = shown["metadata"]["annotations"], shown["metadata"]["ownerReferences"][0]
    assert annotations["kubernetes.io/config.mirror"] == annotations["kubernetes.io/config.hash"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Node", "localhost", True)
    assert owner["uid"] == cluster.get("/api/v1/nodes/localhost")["metadata"]["uid"]
    container = shown["status"]["containerStatuses"][0]["containerID"]
    cluster.kubectl("delete", "pod", name, "--grace-period=0", "--force")

    def again() -> bool:
        found = ready(cluster, name)
        return found is not None and found["metadata"]["uid"] != shown["metadata"]["uid"]

    eventually(again, within=60)
    assert cluster.pod(name)["status"]["containerStatuses"][0]["containerID"] == container
    node.withdraw("fixed.yaml")
    eventually(lambda: is_gone(cluster, name), within=60)


def in_terminal(command: list[str]) -> str:
    """What a command says that has a terminal for its input and output."""
    here, there = os.openpty()
    process = subprocess.Popen(command, stdin=there, stdout=there, stderr=there, start_new_session=True)
    os.close(there)
    said = b""
    try:
        while data := os.read(here, 65536):
            said += data
    except OSError:
        pass
    finally:
        os.close(here)
        process.wait(30)
    return said.decode(errors="replace")
