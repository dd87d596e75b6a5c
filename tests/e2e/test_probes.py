"""Probes on real containers, side by side on one node, and their verdicts over the end of a worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node, is_ready

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

Pod = dict[str, Any]
FAST = {"periodSeconds": 1}
SLEEP = ["sleep", "3600"]


def sh(script: str) -> dict[str, Any]:
    return {"exec": {"command": ["sh", "-c", script]}}


def a_sidecar(name: str, script: str, **fields: Any) -> dict[str, Any]:
    command = ["sh", "-c", f"{script}; sleep 3600"]
    return {"name": name, "image": "busybox:1.36", "command": command, "restartPolicy": "Always", **fields}


def manifest(name: str, script: str, spec: dict[str, Any] | None = None, /, **container: Any) -> str:
    """A pod of one container; `spec` = more of the pod's own fields."""
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 2,
            **(spec or {}),
            "containers": [
                {"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", f"{script}; sleep 3600"], **container}
            ],
        },
    }
    return yaml.safe_dump(body)


HTTPD = "mkdir /w; echo yes > /w/ok; httpd -f -p 80 -h /w"
PODS = {
    # P01
    "flips": manifest("flips", "sleep 2; touch /tmp/ok", readinessProbe={**sh("cat /tmp/ok"), **FAST}),
    # P02
    "dies": manifest("dies", "true", livenessProbe={**sh("echo why; exit 1"), **FAST, "failureThreshold": 3}),
    # P04
    "web": manifest(
        "web",
        HTTPD,
        readinessProbe={"httpGet": {"path": "/ok", "port": "h"}, **FAST},
        ports=[{"name": "h", "containerPort": 80}],
    ),
    "lost": manifest("lost", HTTPD, readinessProbe={"httpGet": {"path": "/no", "port": 80}, **FAST}),
    # P08
    "open": manifest("open", HTTPD, readinessProbe={"tcpSocket": {"port": 80}, **FAST}),
    "closed": manifest("closed", "true", readinessProbe={"tcpSocket": {"port": 81}, **FAST}),
    # P10
    "slow": manifest(
        "slow",
        "sleep 4; touch /tmp/up",
        startupProbe={**sh("cat /tmp/up"), **FAST, "failureThreshold": 20},
        livenessProbe={**sh("test -e /tmp/up"), **FAST, "failureThreshold": 1},
    ),
    # P11
    "never": manifest("never", "true", startupProbe={**sh("exit 1"), **FAST, "failureThreshold": 2}),
    # P13
    "late": manifest("late", "true", readinessProbe={**sh("true"), **FAST, "initialDelaySeconds": 5}),
    # P16
    "words": manifest(
        "words",
        "true",
        readinessProbe={**sh("test \"$(A)\" = literal && test '$(B)' = '$$(B)'"), **FAST},
        env=[
            {"name": "A", "value": "literal"},
            {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
    ),
    # I07, I08
    "beside": manifest(
        "beside",
        "true",
        {
            "initContainers": [
                a_sidecar(
                    "s1", "sleep 3; touch /tmp/up", startupProbe={**sh("cat /tmp/up"), **FAST, "failureThreshold": 20}
                ),
                a_sidecar("s2", "true", readinessProbe={**sh("exit 1"), **FAST}),
            ]
        },
    ),
}
CASES = ("04-readiness-holds-ready", "05-exec-probe-timeout", "15-agent-restart-offline")
SHORTER = {
    "sleep 15;": "sleep 5;",
    "sleep 3; test": "sleep 1; test",
    "periodSeconds: 10": "periodSeconds: 2",
    "periodSeconds: 5": "periodSeconds: 1",
    'command: ["test", "-f", "/tmp/healthy"]': 'command: ["sh", "-c", "echo >> /tmp/asked; test -f /tmp/healthy"]',
}
"""The same situations in less time, and a readiness probe that leaves a mark."""


def shortened(case: str) -> str:
    text = (Path(__file__).parent.parent / "cases" / f"{case}.yaml").read_text()
    for long, short in SHORTER.items():
        text = text.replace(long, short)
    return text


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """One node for all cases."""
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory))
        try:
            made.start()
            for name, text in PODS.items():
                made.apply(f"{name}.yaml", text)
            for case in CASES:
                made.apply(f"{case}.yaml", shortened(case))
            yield made
        finally:
            made.close()


def status_of(pod: Pod) -> dict[str, Any]:
    (status,) = pod["status"]["containerStatuses"]
    found: dict[str, Any] = status
    return found


def events_of(node: Node, name: str) -> list[dict[str, Any]]:
    return [e for e in node.json("/podbus/events")["events"] if e["involved"]["name"] == f"{name}-{node.name}"]


def messages(node: Node, name: str, reason: str) -> list[str]:
    return [e["message"] for e in events_of(node, name) if e["reason"] == reason]


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def ready_after(pod: Pod) -> float:
    """Seconds from the container's start to its readiness, both in whole seconds."""
    (ready,) = [c for c in pod["status"]["conditions"] if c["type"] == "Ready"]
    return moment(ready["lastTransitionTime"]) - moment(status_of(pod)["state"]["running"]["startedAt"])


def shown_ready(node: Node, name: str) -> Pod:
    eventually(lambda: is_ready(node.pod(name)), within=60)
    return node.pod(name)


@pytest.mark.parametrize("name", ["web", "open", "words"])
def test_what_answers_becomes_ready(node: Node, name: str) -> None:
    """P04, P08, P16"""
    assert status_of(shown_ready(node, name))["restartCount"] == 0


def test_readiness_waits_for_what_the_container_does(node: Node) -> None:
    """P01"""
    pod = shown_ready(node, "flips")
    assert ready_after(pod) >= 1
    assert status_of(pod)["restartCount"] == 0


def test_readiness_waits_for_the_initial_delay(node: Node) -> None:
    """P13"""
    assert ready_after(shown_ready(node, "late")) >= 4


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("hung-probe", 'Readiness probe failed: command timed out: "sleep 300" timed out after 1s'),
        ("lost", "Readiness probe failed: HTTP probe failed with statuscode: 404"),
        ("closed", ":81: connect: connection refused"),
    ],
)
def test_what_fails_is_told_and_stays_unready(node: Node, name: str, told: str) -> None:
    """P03, P04, P08"""
    eventually(lambda: any(told in m for m in messages(node, name, "Unhealthy")), within=60)
    status = status_of(node.pod(name))
    assert (status["ready"], status["started"], status["restartCount"]) == (False, True, 0)
    conditions = {c["type"]: c for c in node.pod(name)["status"]["conditions"]}
    assert conditions["Ready"]["message"] == f"containers with unready status: [{status['name']}]"


def test_a_probe_that_hangs_leaves_no_process_behind(node: Node) -> None:
    """Case 05: at most two at any time."""

    def times() -> int:
        return sum(e["count"] for e in events_of(node, "hung-probe") if e["reason"] == "Unhealthy")

    eventually(lambda: times() >= 4, within=60)
    container = status_of(node.pod("hung-probe"))["containerID"].removeprefix("docker://")
    assert node.docker("top", container).count("sleep 300") <= 2


def test_a_container_that_fails_its_liveness_probe_is_restarted(node: Node) -> None:
    """P02"""
    eventually(lambda: status_of(node.pod("dies"))["restartCount"] >= 1, within=60)
    assert "Container c failed liveness probe, will be restarted" in messages(node, "dies", "Killing")
    assert "Liveness probe failed: why\n" in messages(node, "dies", "Unhealthy")


def test_a_container_that_never_starts_up_is_restarted(node: Node) -> None:
    """P11"""
    eventually(lambda: status_of(node.pod("never"))["restartCount"] >= 1, within=60)
    assert "Container c failed startup probe, will be restarted" in messages(node, "never", "Killing")


def test_liveness_is_not_asked_before_startup(node: Node) -> None:
    """P10"""
    pod = shown_ready(node, "slow")
    assert ready_after(pod) >= 3
    assert status_of(pod)["restartCount"] == 0
    assert not [m for m in messages(node, "slow", "Unhealthy") if m.startswith("Liveness")]
    assert [m for m in messages(node, "slow", "Unhealthy") if m.startswith("Startup")]


def test_a_sidecar_holds_the_others_until_it_has_started_and_ready_until_it_is_ready(node: Node) -> None:
    """I07, I08"""
    eventually(lambda: status_of(node.pod("beside"))["ready"], within=60)
    pod = node.pod("beside")
    s1, s2 = pod["status"]["initContainerStatuses"]
    first, second = (moment(s["state"]["running"]["startedAt"]) for s in (s1, s2))
    assert second - first >= 2
    assert (s1["started"], s1["ready"], s2["started"], s2["ready"]) == (True, True, True, False)
    (ready,) = [c for c in pod["status"]["conditions"] if c["type"] == "Ready"]
    assert (ready["status"], ready["message"]) == ("False", "containers with unready status: [s2]")
    (path,) = {e["involved"]["fieldPath"] for e in events_of(node, "beside") if e["message"].startswith("Readiness")}
    assert path == "spec.initContainers{s2}"


def test_a_pod_is_ready_once_its_database_is(node: Node) -> None:
    """Case 04."""
    eventually(lambda: node.pod("app-and-db")["status"]["phase"] == "Running", within=60)
    ready = shown_ready(node, "app-and-db")
    statuses = {s["name"]: s for s in ready["status"]["containerStatuses"]}
    (condition,) = [c for c in ready["status"]["conditions"] if c["type"] == "Ready"]
    started = moment(statuses["db"]["state"]["running"]["startedAt"])
    assert moment(condition["lastTransitionTime"]) - started >= 4
    assert {name: s["restartCount"] for name, s in statuses.items()} == {"db": 0, "app": 0}
    assert "Readiness probe failed: Get" in messages(node, "app-and-db", "Unhealthy")[0]


def test_an_agent_that_comes_back_finds_its_pods_as_they_were(node: Node) -> None:
    """Case 15: a worker killed and restarted, then the whole agent; the last test of this node."""
    shown_ready(node, "steady")
    before = what_must_stay(node)
    for end_and_come_back in (kill_worker, restart_agent):
        asked = times_asked(node)
        end_and_come_back(node)
        eventually(lambda so_far=asked: times_asked(node) >= so_far + 2, within=30)  # type: ignore[misc]
        assert what_must_stay(node) == before
    docker_id = before["containerID"].removeprefix("docker://")
    node.docker("kill", docker_id)
    eventually(lambda: status_of(node.pod("steady"))["containerID"] != before["containerID"], within=45)
    shown_ready(node, "steady")
    assert not messages(node, "steady", "Pulling")


def what_must_stay(node: Node) -> dict[str, Any]:
    pod = node.pod("steady")
    status = status_of(pod)
    (ready,) = [c for c in pod["status"]["conditions"] if c["type"] == "Ready"]
    container = status["containerID"].removeprefix("docker://")
    return {
        "containerID": status["containerID"],
        "restartCount": status["restartCount"],
        "startedAt": status["state"]["running"]["startedAt"],
        "ready": (ready["status"], ready["lastTransitionTime"]),
        "startup probes": node.docker("logs", container).count("probe"),
    }


def times_asked(node: Node) -> int:
    container = status_of(node.pod("steady"))["containerID"].removeprefix("docker://")
    return int(node.docker("exec", container, "sh", "-c", "wc -l < /tmp/asked"))


def kill_worker(node: Node) -> None:
    for pid in node.pids("podworker"):
        os.kill(pid, signal.SIGKILL)


def restart_agent(node: Node) -> None:
    node.stop()
    node.start()
