"""Pods of many kinds for the model engine: what runs for ever, ends, crashes, and what goes before and beside it."""

from __future__ import annotations

from typing import Any

import msgspec

from shared.kube.pod import Pod
from tests.support.builders import a_container

GRACE = 5


def sidecar(name: str) -> dict[str, Any]:
    return a_container(name, command=["serve"], restartPolicy="Always")


def sh(name: str, line: str, **fields: Any) -> dict[str, Any]:
    return a_container(name, command=["sh", "-c", line], **fields)


def serving(name: str = "c", **fields: Any) -> dict[str, Any]:
    return a_container(name, command=["serve"], **fields)


RULE = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
SPECS: tuple[dict[str, Any], ...] = (
    {"containers": [serving()]},
    {"containers": [serving("a"), serving("b")], "initContainers": [a_container("i", command=["sleep", "5"])]},
    {"containers": [serving()], "initContainers": [sidecar("s"), sh("i", "exit 0"), sidecar("t")]},
    {"containers": [serving()], "initContainers": [a_container("i", command=["sleep", "5"])], "restartPolicy": "Never"},
    {"containers": [serving("a"), sh("b", "exit 1", restartPolicy="Never")]},
    {"containers": [sh("c", "sleep 5; exit 1")], "initContainers": [sidecar("s")]},
    {
        "containers": [a_container("c", command=["sleep", "5"])],
        "initContainers": [sidecar("s")],
        "restartPolicy": "Never",
    },
    {"containers": [sh("c", "sleep 5; exit 3")], "restartPolicy": "OnFailure"},
    {"containers": [sh("c", "sleep 5; exit 1")], "initContainers": [sh("i", "exit 7")], "restartPolicy": "Never"},
    {"containers": [serving("a"), sh("b", "sleep 5; exit 42", restartPolicy="Never", restartPolicyRules=[RULE])]},
)


def a_version(name: str, uid: str, spec: dict[str, Any], cpu: str, port: int, script: dict[str, str]) -> Pod:
    containers = [dict(container) for container in spec["containers"]]
    if cpu:
        containers[0]["resources"] = {"requests": {"cpu": cpu}}
    if port:
        containers[0]["ports"] = [{"containerPort": 80, "hostPort": port}]
    body = {
        "metadata": {"name": f"{name}-node1", "namespace": "default", "uid": uid, "annotations": script},
        "spec": {**spec, "containers": containers, "terminationGracePeriodSeconds": GRACE},
    }
    return msgspec.convert(body, Pod)
