"""`podbus describe pod` in kubectl's form."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from cli.describe_text import pod_text

NOW = 1764547200.0

POD = {
    "metadata": {
        "name": "web-n1",
        "namespace": "default",
        "labels": {"b": "2", "a": "1"},
        "annotations": {"note": "two\nlines", "kubernetes.io/config.source": "file"},
    },
    "spec": {
        "nodeName": "n1",
        "containers": [
            {
                "name": "httpd",
                "image": "busybox:1.36",
                "command": ["sh", "-c", "one\ntwo"],
                "ports": [{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP", "name": "u"}],
                "resources": {"limits": {"memory": "32Mi"}, "requests": {"memory": "8Mi", "cpu": "10m"}},
                "env": [{"name": "A", "value": "x"}],
            }
        ],
        "tolerations": [{"effect": "NoExecute", "operator": "Exists"}],
    },
    "status": {
        "phase": "Running",
        "hostIP": "10.0.0.1",
        "podIP": "172.17.0.2",
        "podIPs": [{"ip": "172.17.0.2"}],
        "startTime": "2025-11-30T23:59:00Z",
        "qosClass": "Burstable",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {
                "name": "httpd",
                "containerID": "docker://abc",
                "imageID": "docker://sha256:def",
                "ready": True,
                "restartCount": 1,
                "state": {"running": {"startedAt": "2025-11-30T23:59:30Z"}},
                "lastState": {
                    "terminated": {
                        "exitCode": 137,
                        "reason": "OOMKilled",
                        "startedAt": "2025-11-30T23:59:01Z",
                        "finishedAt": "2025-11-30T23:59:20Z",
                    }
                },
            }
        ],
    },
}
BARE: dict[str, Any] = {"containers": [{"name": "c", "image": "x"}]}
EVENTS = [
    {
        "type": "Normal",
        "reason": "Started",
        "message": "Started container httpd",
        "component": "podworker",
        "count": 2,
        "firstSeen": NOW - 60,
        "lastSeen": NOW - 30,
    },
    {
        "type": "Warning",
        "reason": "OOM",
        "message": "a\nb",
        "component": "podworker",
        "count": 1,
        "firstSeen": NOW - 40,
        "lastSeen": NOW - 40,
    },
]
EXPECTED = """\
Name:         web-n1
Namespace:    default
Node:         n1/10.0.0.1
Start Time:   Sun, 30 Nov 2025 23:59:00 +0000
Labels:       a=1
              b=2
Annotations:  kubernetes.io/config.source: file
              note:
                two
                lines
Status:       Running
IP:           172.17.0.2
IPs:
  IP:  172.17.0.2
Containers:
  httpd:
    Container ID:  docker://abc
    Image:         busybox:1.36
    Image ID:      docker://sha256:def
    Ports:         80/TCP, 81/UDP (u)
    Host Ports:    0/TCP, 0/UDP (u)
    Command:
      sh
      -c
      one
      two
    State:          Running
      Started:      Sun, 30 Nov 2025 23:59:30 +0000
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Sun, 30 Nov 2025 23:59:01 +0000
      Finished:     Sun, 30 Nov 2025 23:59:20 +0000
    Ready:          True
    Restart Count:  1
    Limits:
      memory:  32Mi
    Requests:
      cpu:     10m
      memory:  8Mi
    Environment:
      A:     x
    Mounts:  <none>
Conditions:
  Type           Status
  Ready          True\x20
Volumes:         <none>
QoS Class:       Burstable
Node-Selectors:  <none>
Tolerations:     :NoExecute op=Exists
Events:
  Type     Reason   Age                From       Message
  ----     ------   ----               ----       -------
  Warning  OOM      40s                podworker  a b
  Normal   Started  30s (x2 over 60s)  podworker  Started container httpd
"""


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def test_a_pod_is_described_as_kubectl_does() -> None:
    assert pod_text(POD, EVENTS, NOW) == EXPECTED


def test_a_pod_without_events_says_none_and_unreachable_ones_unknown() -> None:
    assert pod_text(POD, [], NOW).rstrip().endswith("<none>")
    assert pod_text(POD, None, NOW).rstrip().endswith("<unknown>")


def test_a_waiting_container_tells_its_message() -> None:
    state = {"waiting": {"reason": "ContainerCreating", "message": 'Pulling image "x": 45 % (12/27 MiB)'}}
    pod = {**POD, "status": {"phase": "Pending", "containerStatuses": [{"name": "httpd", "state": state}]}}
    assert 'Message:      Pulling image "x": 45 % (12/27 MiB)' in pod_text(pod, [], NOW)


CRASHED = {
    "name": "httpd",
    "restartCount": 3,
    "state": {
        "waiting": {
            "reason": "CrashLoopBackOff",
            "message": "back-off 40s restarting failed container=httpd pod=web; next try at 2025-12-01T00:00:07Z",
        }
    },
    "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}},
}


def test_a_back_off_tells_how_long_it_still_lasts() -> None:
    pod = {**POD, "status": {"containerStatuses": [CRASHED]}}
    assert "next try at 2025-12-01T00:00:07Z (in 7s)\n" in pod_text(pod, [], NOW)
    assert "next try at 2025-12-01T00:00:07Z (now)\n" in pod_text(pod, [], NOW + 7)


def test_the_last_log_lines_of_a_crashed_container_stand_with_its_last_state() -> None:
    pod = {**POD, "status": {"containerStatuses": [CRASHED]}}
    text = pod_text(pod, [], NOW, {"httpd": ["starting", "config: missing key PORT"]})
    assert (
        "    Last Log:       starting\n"
        "                    config: missing key PORT\n"
        "    Ready:          False\n"
        "    Restart Count:  3\n"
    ) in text


def described(**spec: Any) -> list[str]:
    """Lines, with one blank for each gap between columns."""
    pod = {**POD, "spec": {**BARE, **spec.pop("spec", {})}, "status": spec.pop("status", {})}
    return [re.sub(r"(?<=\S) +", " ", line).rstrip() for line in pod_text(pod, [], NOW).splitlines()]


def test_init_and_ephemeral_containers_are_described_with_their_states() -> None:
    ended = {"name": "i", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}, "ready": True}
    lines = described(
        spec={"initContainers": [{"name": "i"}], "ephemeralContainers": [{"name": "debug"}]},
        status={
            "initContainerStatuses": [ended],
            "ephemeralContainerStatuses": [{"name": "debug", "state": {"running": {}}}],
        },
    )
    init, regular, ephemeral = (lines.index(f"{title}Containers:") for title in ("Init ", "", "Ephemeral "))
    assert init < regular < ephemeral
    assert "      Reason: Completed" in lines[init:regular]
    assert "    State: Running" in lines[ephemeral:]


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        (
            {"exec": {"command": ["sh", "-c", "x y"]}, "periodSeconds": 2, "failureThreshold": 7},
            "exec [sh -c x y] delay=0s timeout=1s period=2s #success=1 #failure=7",
        ),
        (
            {"httpGet": {"path": "/a?b c", "port": "web", "scheme": "HTTPS"}, "timeoutSeconds": 5},
            "http-get https://:web/a%3Fb%20c delay=0s timeout=5s period=10s #success=1 #failure=3",
        ),
        (
            {"tcpSocket": {"port": 9, "host": "h"}, "successThreshold": 2},
            "tcp-socket h:9 delay=0s timeout=1s period=10s #success=2 #failure=3",
        ),
        (
            {"grpc": {"port": 5, "service": "s"}, "initialDelaySeconds": 4},
            "grpc <pod>:5 s delay=4s timeout=1s period=10s #success=1 #failure=3",
        ),
    ],
)
def test_probes_are_printed_as_kubectl_does(probe: dict[str, Any], expected: str) -> None:
    container = {"name": "c", "image": "x", "livenessProbe": probe}
    assert f"    Liveness: {expected}" in described(spec={"containers": [container]})


def test_variables_tell_where_they_come_from() -> None:
    container = {
        "name": "c",
        "image": "x",
        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "cm"}}, {"secretRef": {"name": "s", "optional": True}}],
        "env": [
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "B", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
        ],
    }
    lines = described(spec={"containers": [container]})
    at = lines.index("    Environment Variables from:")
    assert lines[at + 1 : at + 6] == [
        "      cm ConfigMap with prefix 'P_' Optional: false",
        "      s Secret Optional: true",
        "    Environment:",
        "      A: <set to the key 'k' in secret 's'> Optional: false",
        "      B: (v1:metadata.name)",
    ]


def test_volumes_tell_their_kind_and_what_they_are_made_of() -> None:
    found = described(
        spec={
            "volumes": [
                {"name": "h", "hostPath": {"path": "/srv", "type": "Directory"}},
                {"name": "e", "emptyDir": {}},
                {"name": "c", "configMap": {"name": "cm", "defaultMode": 420}},
                {"name": "p", "projected": {"sources": [{"downwardAPI": {}}, {"secret": {"name": "s"}}]}},
            ]
        }
    )
    at = found.index("Volumes:")
    assert found[at + 1 : at + 17] == [
        "  h:",
        "    Type: HostPath (bare host directory volume)",
        "    Path: /srv",
        "    HostPathType: Directory",
        "  e:",
        "    Type: EmptyDir (a temporary directory that shares a pod's lifetime)",
        "    Medium:",
        "    SizeLimit: <unset>",
        "  c:",
        "    Type: ConfigMap (a volume populated by a ConfigMap)",
        "    Name: cm",
        "    Optional: false",
        "  p:",
        "    Type: Projected (a volume that contains injected data from multiple sources)",
        "    DownwardAPI: true",
        "    SecretName: s",
    ]
