"""No JSON-like input raises, and what is accepted is stable. Good manifests are mutated at random."""

# ruff: noqa: E501 - a table with one row per rule reads best unbroken

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from services.source.core.field_table import SCALARS, TYPES
from services.source.core.manifest import read_manifests
from services.source.core.merge import Listing, plan_sources
from services.source.core.state import SourceState
from services.source.core.static_pods import canonical_json

GOOD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"a": "b"}, "annotations": {"n": "x"}},
    "spec": {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}],
        "containers": [
            {
                "name": "c",
                "image": "busybox:1.36",
                "command": ["sleep", "10"],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "ports": [{"containerPort": 80, "hostPort": 8080, "name": "http"}],
                "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}, "requests": {"cpu": 0.05}},
                "livenessProbe": {"httpGet": {"port": "http", "httpHeaders": [{"name": "X", "value": "y"}]}},
                "lifecycle": {"preStop": {"sleep": {"seconds": 2}}},
                "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "s"}],
                "securityContext": {"capabilities": {"add": ["X"]}, "runAsUser": 1},
            }
        ],
        "initContainers": [{"name": "i", "image": "x", "restartPolicyRules": [{"action": "Restart"}]}],
        "volumes": [
            {"name": "v", "projected": {"sources": [{"configMap": {"name": "m", "items": [{"key": "k", "path": "p"}]}}]}},
            {"name": "w", "downwardAPI": {"items": [{"path": "x", "resourceFieldRef": {"resource": "limits.cpu"}}]}},
        ],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}},
        "dnsConfig": {"nameservers": ["1.1.1.1"], "searches": ["a.b"], "options": [{"name": "ndots"}]},
        "securityContext": {"sysctls": [{"name": "a.b", "value": "1"}], "supplementalGroups": [1]},
        "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a"]}],
    },
}  # fmt: skip
CONFIGS: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "m"},
        "data": {"k": "v"},
        "binaryData": {"b": "aGk="},
    },
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "aGk="}, "stringData": {"x": "y"}},
    {"apiVersion": "v1", "kind": "PodList", "items": [GOOD, {"metadata": {"name": "x"}}]},
]

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["", "0", "1e3", "a/b", "..", "/", "\0", "a" * 300, "Always", "1Gi", "-1", "\n"])
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)
known_names = st.sampled_from(sorted({name for fields in TYPES.values() for name in fields}))


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found.append((value, key))
        found += places(inner)
    return found


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A good manifest with one to four places replaced, dropped, or given another field."""
    body = copy.deepcopy(draw(st.sampled_from([GOOD, GOOD, GOOD, *CONFIGS])))
    for _ in range(draw(st.integers(1, 4))):
        spots = places(body)
        if not spots:
            break
        owner, key = spots[draw(st.integers(0, len(spots) - 1))]
        action = draw(st.sampled_from(["replace", "replace", "drop", "add"]))
        if action == "replace":
            owner[key] = draw(values)
        elif action == "drop":
            del owner[key]
        elif isinstance(owner, dict):
            owner[draw(known_names)] = draw(values)
        else:
            owner.append(draw(values))
    return body


def check(data: bytes) -> None:
    """The invariants that hold for any bytes."""
    result = read_manifests("f", data)
    assert result.manifests or result.problems or b"PodList" in data
    for problem in result.problems:
        assert problem.message and problem.line >= 0 and problem.document >= 0
        json.dumps(problem.text()).encode()
    for manifest in result.manifests:
        assert manifest.body["kind"] == manifest.key.kind
        # What was accepted is accepted again, as it is.
        (again,) = read_manifests("f", canonical_json(manifest.body)).manifests
        assert again.body == manifest.body
    assert result == read_manifests("f", data)
    plan = plan_sources(SourceState(), Listing("/", {"f": data}), "node", 1.0)
    assert len(plan.pods) + len(plan.configs) <= len(result.manifests)


@settings(max_examples=150)
@given(mutated())
def test_a_mutated_manifest_is_accepted_or_has_problems(body: Any) -> None:
    check(json.dumps(body).encode())


@settings(max_examples=60)
@given(values)
def test_any_json_value_is_accepted_or_has_problems(value: Any) -> None:
    check(json.dumps(value).encode())


@settings(max_examples=60)
@given(st.sampled_from(sorted(TYPES["PodSpec"])) | st.sampled_from(sorted(TYPES["Container"])), values)
def test_any_field_with_any_value_is_judged(name: str, value: Any) -> None:
    body = copy.deepcopy(GOOD)
    for owner in (body["spec"], body["spec"]["containers"][0]):
        owner[name] = value
    check(json.dumps(body).encode())


def test_every_field_of_every_type_survives_its_zero_value() -> None:
    """An empty list, object or string in every known place raises nothing."""
    for kind, fields in TYPES.items():
        for name, field in fields.items():
            base = field.removeprefix("[]").removeprefix("{}")
            zero: Any = [] if field.startswith("[]") else {} if field.startswith("{}") or base not in SCALARS else ""
            inner: Any = [{}, None] if field.startswith("[]") else {"x": None}
            for value in (zero, inner):
                read_manifests("f", json.dumps(_placed(kind, name, value)).encode())


def _placed(kind: str, name: str, value: Any) -> dict[str, Any]:
    """A pod in which `name` has the value wherever an object of the type stands (or in its spec)."""
    body = copy.deepcopy(GOOD)
    targets: dict[str, Any] = {
        "ObjectMeta": body["metadata"],
        "PodSpec": body["spec"],
        "Container": body["spec"]["containers"][0],
        "Probe": body["spec"]["containers"][0]["livenessProbe"],
        "Volume": body["spec"]["volumes"][0],
        "VolumeProjection": body["spec"]["volumes"][0]["projected"]["sources"][0],
    }
    targets.get(kind, body["spec"])[name] = value
    return body
