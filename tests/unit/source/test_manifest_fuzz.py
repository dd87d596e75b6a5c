"""Manifests changed at random, from their bytes to the plan: nothing raises, no pod that breaks a rule gets through,
and every refusal names a field."""

# ruff: noqa: E501 - the manifest and the words read best unbroken

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.podworker.core.actions import compute_pod_actions
from services.podworker.core.config_objects import ConfigError
from services.podworker.core.container_config import container_config, sandbox_config
from services.podworker.core.demand import demand_of
from services.podworker.core.generate import generate_status
from services.podworker.core.model import PodMemory
from services.podworker.core.state import nothing_of
from services.podworker.core.volumes import volume_plan
from services.source.core.field_table import TYPES
from services.source.core.manifest import read_manifests
from shared.kube.pod import decode_pod
from tests.support.builders import GOLDEN, NODE_IP, NOW, UID, a_node
from tests.support.manifest_rules import broken_rules

CASES = Path(__file__).parents[2] / "cases"
FULL: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "full", "labels": {"a": "b"}, "annotations": {"n": "x"}},
    "spec": {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 5,
        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}},
        "overhead": {"cpu": "10m"},
        "imagePullSecrets": [{"name": "s"}],
        "securityContext": {"fsGroup": 5, "runAsUser": 7, "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]},
        "initContainers": [
            {"name": "side", "image": "x:1", "restartPolicy": "Always", "startupProbe": {"tcpSocket": {"port": 80}}},
            {"name": "init", "image": "x:1", "volumeMounts": [{"name": "e", "mountPath": "/e"}]},
        ],
        "containers": [
            {
                "name": "c",
                "image": "busybox:1.36",
                "command": ["sleep", "$(A)"],
                "env": [{"name": "A", "value": "10"}, {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "ports": [{"containerPort": 80, "hostPort": 8080, "name": "http"}],
                "resources": {"limits": {"cpu": "500m", "memory": "64Mi", "ephemeral-storage": "1Gi"}},
                "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
                "livenessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 3},
                "readinessProbe": {"exec": {"command": ["true"]}, "successThreshold": 2},
                "lifecycle": {"preStop": {"sleep": {"seconds": 2}}, "postStart": {"exec": {"command": ["true"]}}},
                "volumeMounts": [{"name": "e", "mountPath": "/e", "subPath": "a"}, {"name": "d", "mountPath": "/d"}],
                "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}, "runAsNonRoot": True, "runAsUser": 1},
                "restartPolicy": "OnFailure",
                "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [3]}}],
            },
            {"name": "other", "image": "x@sha256:" + "a" * 64},
        ],
        "volumes": [
            {"name": "e", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            {"name": "d", "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {"name": "h", "hostPath": {"path": "/tmp", "type": "Directory"}},
        ],
        "dnsConfig": {"nameservers": ["1.1.1.1"], "searches": ["a.b"]},
        "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a"]}],
    },
}  # fmt: skip
SEEDS = [
    FULL,
    *(
        document
        for path in sorted([*(GOLDEN / "cases").glob("*.yaml"), *CASES.glob("*.yaml")])
        for document in yaml.safe_load_all(path.read_text())
        if document and document.get("kind") == "Pod"
    ),
]
NAMES = sorted({name for fields in TYPES.values() for name in fields})
WORDS = (
    *("", " ", "0", "-1", "1e3", "a/b", "..", "/", "/a/../b", "\0", "\n", "a" * 300, "A", "-a", "a.b", "$(A)", "ä", "c", "e"),
    *("Always", "OnFailure", "Never", "None", "Default", "Bidirectional", "TCP", "RestartContainer", "Memory"),
    *("1Gi", "-1Gi", "1m", "9" * 40, "1.5Mi", "1kk", "latest", "x:1", "UPPER/x", "10.0.0.1", "metadata.name", "hugepages-2Mi"),
)  # fmt: skip
leaves = (
    st.sampled_from(WORDS)
    | st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.sampled_from((-1, 0, 1, 2, 65535, 65536, 2**31 - 1, 2**31, 2**63, 0.5))
    | st.text(max_size=6)
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=4,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (object or list, key) below a value."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found.append((value, key))
        found += places(inner)
    return found


@st.composite
def manifests(draw: st.DrawFn) -> dict[str, Any]:
    """A good manifest after one to four changes below its head."""
    pod: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 4))):
        inside = [*places(pod["metadata"]), *places(pod["spec"])]
        if not inside:
            break
        holder, key = draw(st.sampled_from(inside))
        match draw(st.sampled_from(("put", "drop", "double", "add", "copy"))):
            case "put":
                holder[key] = draw(values)
            case "drop":
                del holder[key]
            case "double" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case "add" if isinstance(holder[key], dict):
                holder[key][draw(st.sampled_from(NAMES))] = draw(values)
            case _:
                other, name = draw(st.sampled_from(inside))
                holder[key] = copy.deepcopy(other[name])
    return pod


def check(manifest: dict[str, Any]) -> None:
    found = read_manifests("f.yaml", json.dumps(manifest).encode())
    errors = [problem for problem in found.problems if problem.is_error]
    assert bool(found.manifests) is not bool(errors)
    for problem in errors:
        assert problem.field or "more problems" in problem.message, problem.text()
        assert problem.message
    for accepted in found.manifests:
        body = accepted.body
        assert broken_rules(body) == []
        again = read_manifests("f.yaml", json.dumps(body).encode())
        assert [one.text() for one in again.problems if one.is_error] == []
        assert again.manifests[0].body == body
        run(json.dumps({**body, "metadata": {**body["metadata"], "uid": UID}}).encode())


def run(body: bytes) -> None:
    """What its owner would make of it."""
    pod, node = decode_pod(body), a_node()
    memory = PodMemory(uid=UID, namespace=pod.metadata.namespace, name=pod.metadata.name, source="file", admitted=True)
    demand = demand_of(pod)
    assert demand.cpu_milli >= 0 and demand.memory_bytes >= 0
    plan = compute_pod_actions(pod, memory, nothing_of(memory), now=NOW)
    assert plan.actions or plan.reasons
    status = generate_status(pod, plan.memory, nothing_of(memory), node_ip=NODE_IP, now=NOW)
    assert msgspec.json.encode(status)
    assert sandbox_config(pod, node, 0).uid == UID
    volume_plan(pod, node, {})
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        try:
            config = container_config(pod, container, node, 0, sandbox_id="s", source="file")
        except ConfigError:
            continue
        assert config.cpu_shares >= 2 and config.memory >= 0


@settings(deadline=None, max_examples=200, suppress_health_check=list(HealthCheck))
@given(manifests())
def test_a_changed_manifest_is_taken_or_refused_for_a_field(manifest: dict[str, Any]) -> None:
    check(manifest)


@pytest.mark.long
@settings(deadline=None, max_examples=10_000, suppress_health_check=list(HealthCheck))
@given(manifests())
def test_ten_thousand_changed_manifests_are(manifest: dict[str, Any]) -> None:
    check(manifest)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: str(seed["metadata"]["name"]))
def test_the_manifests_that_are_changed_are_read_without_an_exception(seed: dict[str, Any]) -> None:
    check(seed)


def test_the_fullest_of_them_is_taken() -> None:
    assert [problem.text() for problem in read_manifests("f", json.dumps(FULL).encode()).problems] == []
