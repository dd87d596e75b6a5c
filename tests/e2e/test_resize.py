"""CPU and memory of a running pod with a fixed uid change in place, or by a restart where its policy asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node, NodeMaker, is_ready

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

MIB = 2**20


def pod(name: str, cpu: str, memory: str, *, restart: bool = False, request: str = "") -> str:
    policy = "\n    resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]" if restart else ""
    asked = f"requests: {{cpu: {request}, memory: 8Mi}}, " if request else ""
    return f"""apiVersion: v1
kind: Pod
metadata: {{name: {name}, uid: {name}-0000-4000-8000-000000000001}}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: c
    image: busybox:1.36
    command: ["sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"]
    resources: {{{asked}limits: {{cpu: {cpu}, memory: {memory}}}}}{policy}
"""


def status(node: Node, name: str) -> dict[str, Any]:
    found: dict[str, Any] = node.pod(name)["status"]["containerStatuses"][0]
    return found


def conditions(node: Node, name: str) -> dict[str, Any]:
    found = node.pod(name)["status"]["conditions"]
    return {one["type"]: one for one in found if one["type"].startswith("PodResize")}


def reasons(node: Node, name: str) -> list[str]:
    events = node.json(f"/podbus/events?namespace=default&name={name}-{node.name}")["events"]
    return [event["reason"] for event in events]


def host_config(node: Node, name: str) -> tuple[int, int, int, int]:
    found = docker_client().inspect_container(status(node, name)["containerID"].removeprefix("docker://"))
    host = found["HostConfig"]
    return host["CpuShares"], host["CpuQuota"], host["Memory"], host["MemorySwap"]


def test_resources_of_a_running_pod_change(a_node: NodeMaker) -> None:
    """In place without a restart; by a restart with RestartContainer; what the node doesn't have is a condition."""
    node = a_node()
    for name in ("same", "anew", "never"):
        node.apply(f"{name}.yaml", pod(name, "100m", "32Mi", restart=name == "anew"))
    eventually(lambda: all(is_ready(node.pod(name)) for name in ("same", "anew", "never")), within=60)
    first = {name: status(node, name)["containerID"] for name in ("same", "anew", "never")}
    assert status(node, "same")["resources"] == {
        "limits": {"cpu": "100m", "memory": "32Mi"},
        "requests": {"cpu": "100m", "memory": "32Mi"},
    }

    node.apply("same.yaml", pod("same", "200m", "64Mi"))
    node.apply("anew.yaml", pod("anew", "100m", "64Mi", restart=True))
    node.apply("never.yaml", pod("never", "1000", "32Mi"))
    eventually(lambda: status(node, "same")["resources"]["limits"] == {"cpu": "200m", "memory": "64Mi"}, within=30)
    eventually(lambda: "ResizeCompleted" in reasons(node, "same"), within=15)
    assert host_config(node, "same") == (204, 20_000, 64 * MIB, 64 * MIB)
    assert status(node, "same")["allocatedResources"] == {"cpu": "200m", "memory": "64Mi"}
    assert (status(node, "same")["containerID"], status(node, "same")["restartCount"]) == (first["same"], 0)
    assert conditions(node, "same") == {}
    uid = node.pod("same")["metadata"]["uid"]
    cgroup = Path("/sys/fs/cgroup/memory/kubepods") / f"pod{uid}" / "memory.limit_in_bytes"
    if cgroup.exists():
        assert cgroup.read_text().strip() == str(64 * MIB)

    eventually(lambda: status(node, "anew")["restartCount"] == 1 and is_ready(node.pod("anew")), within=30)
    assert host_config(node, "anew")[2] == 64 * MIB
    eventually(lambda: "PodResizePending" in conditions(node, "never"), within=30)
    pending = conditions(node, "never")["PodResizePending"]
    assert (pending["status"], pending["reason"]) == ("True", "Infeasible")
    assert "Node didn't have enough capacity: cpu, requested: 1000000" in pending["message"]
    assert host_config(node, "never")[:2] == (102, 10_000)
    assert status(node, "never")["containerID"] == first["never"]
    assert status(node, "never")["allocatedResources"]["cpu"] == "100m"

    # shrinking goes in place, too; taking the edit back ends what was pending
    node.apply("same.yaml", pod("same", "50m", "32Mi"))
    node.apply("never.yaml", pod("never", "100m", "32Mi"))
    eventually(lambda: host_config(node, "same") == (51, 5000, 32 * MIB, 32 * MIB), within=30)
    eventually(lambda: conditions(node, "never") == {}, within=30)
    assert status(node, "same")["containerID"] == first["same"]


def test_memory_below_what_is_used_is_an_error_that_the_pod_survives(a_node: NodeMaker) -> None:
    """And it's tried again: a limit that holds what is used ends it."""
    node = a_node()
    full = "x=$(head -c 30000000 /dev/zero | tr '\\\\0' a); echo full; sleep 3600 & wait"
    hog = pod("hog", "500m", "128Mi").replace("sleep 3600 & wait", full)
    node.apply("hog.yaml", hog)
    eventually(lambda: is_ready(node.pod("hog")), within=30)
    first = status(node, "hog")["containerID"]
    eventually(lambda: b"full" in docker_client().logs(first.removeprefix("docker://")), within=30)
    node.apply("hog.yaml", hog.replace("128Mi", "16Mi"))
    eventually(lambda: conditions(node, "hog").get("PodResizeInProgress", {}).get("reason") == "Error", within=30)
    assert "below current usage" in conditions(node, "hog")["PodResizeInProgress"]["message"]
    assert status(node, "hog")["resources"]["limits"]["memory"] == "128Mi"
    assert status(node, "hog")["allocatedResources"]["memory"] == "16Mi"
    node.apply("hog.yaml", hog.replace("128Mi", "96Mi"))
    eventually(lambda: status(node, "hog")["resources"]["limits"]["memory"] == "96Mi", within=60)
    eventually(lambda: conditions(node, "hog") == {}, within=30)
    assert (status(node, "hog")["containerID"], is_ready(node.pod("hog"))) == (first, True)
