"""What pods ask for beside cpu and memory: devices, processes, storage, and resources of the pod as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node, NodeMaker, is_ready, sleeper

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

MIB = 2**20


def sized(name: str, resources: str, of_pod: str = "") -> str:
    text = sleeper(name).replace("image: busybox:1.36", f"image: busybox:1.36\n    resources: {resources}")
    return text.replace("spec:\n", f"spec:\n  resources: {of_pod}\n", 1) if of_pod else text


def host_config(node: Node, name: str) -> dict[str, Any]:
    identity = node.pod(name)["status"]["containerStatuses"][0]["containerID"].removeprefix("docker://")
    found: dict[str, Any] = docker_client().inspect_container(identity)["HostConfig"]
    return found


def test_resources_beside_cpu_and_memory_are_given_and_counted(
    a_node: NodeMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that is listed once is one pod's; more storage than the disk has is refused; podPidsLimit is the pod's;
    a pod's own limits hold for its containers."""
    monkeypatch.setenv("PODBUS_DEVICES", "example.com/fuse=/dev/fuse")
    node = a_node(config="podPidsLimit: 64\n")
    node.apply("first.yaml", sized("first", "{limits: {example.com/fuse: 1}}"))
    eventually(lambda: is_ready(node.pod("first")), within=30)
    assert [one["PathOnHost"] for one in host_config(node, "first")["Devices"]] == ["/dev/fuse"]
    node.apply("second.yaml", sized("second", "{limits: {example.com/fuse: 1}}"))
    node.apply("huge.yaml", sized("huge", "{requests: {ephemeral-storage: 1Pi}}"))
    node.apply("whole.yaml", sized("whole", "{}", "{limits: {cpu: 500m, memory: 64Mi}}"))
    for name, resource in (("second", "example.com/fuse"), ("huge", "ephemeral-storage")):
        eventually(lambda name=name: node.pod(name)["status"].get("phase") == "Failed", within=30)  # type: ignore[misc]
        status = node.pod(name)["status"]
        assert status["reason"] == "UnexpectedAdmissionError"
        assert f"(res: {resource}, q: " in status["message"]
    eventually(lambda: is_ready(node.pod("whole")), within=30)
    host = host_config(node, "whole")
    assert (host["Memory"], host["CpuQuota"]) == (64 * MIB, 50_000)
    assert node.pod("whole")["status"]["qosClass"] == "Guaranteed"
    assert node.json("/podbus/node")["status"]["allocatable"]["example.com/fuse"] == "1"
    pids = Path("/sys/fs/cgroup/pids/kubepods") / f"pod{node.pod('whole')['metadata']['uid']}" / "pids.max"
    if pids.exists():
        assert pids.read_text().strip() == "64"

    node.withdraw("first.yaml")
    eventually(lambda: is_ready(node.pod("second")), within=60)
