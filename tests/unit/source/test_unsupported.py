"""What this version can't run is refused by its path, never ignored."""

from __future__ import annotations

import pytest

from services.source.core.field_table import TYPES
from services.source.core.manifest import read_manifests
from services.source.core.unsupported import MESSAGE


def problems_of(spec: str, container: str = "") -> list[str]:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n"
        f"  containers: [{{name: c, image: x:1, {container}}}]\n" + (f"  {spec}\n" if spec else "")
    )
    result = read_manifests("f", text.encode())
    assert bool(result.manifests) is not any(problem.is_error for problem in result.problems)
    return [f"{problem.field}: {problem.message}" for problem in result.problems]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ("volumes: [{name: v}]", "spec.volumes"),
        ("hostNetwork: true", "spec.hostNetwork"),
        ("hostPID: true", "spec.hostPID"),
        ("hostIPC: true", "spec.hostIPC"),
        ("shareProcessNamespace: true", "spec.shareProcessNamespace"),
        ("securityContext: {runAsUser: 1}", "spec.securityContext"),
        ("hostAliases: [{ip: 1.2.3.4}]", "spec.hostAliases"),
        ("subdomain: s", "spec.subdomain"),
        ("dnsConfig: {nameservers: [1.1.1.1]}", "spec.dnsConfig"),
        ("imagePullSecrets: [{name: s}]", "spec.imagePullSecrets"),
        ("runtimeClassName: kata", "spec.runtimeClassName"),
        ("hostUsers: false", "spec.hostUsers"),
        ("resources: {limits: {cpu: 1}}", "spec.resources"),
    ],
)
def test_a_field_of_the_spec_is_refused(spec: str, field: str) -> None:
    assert problems_of(spec) == [f"{field}: {MESSAGE}"]


@pytest.mark.parametrize(
    ("container", "field"),
    [
        ("envFrom: [{configMapRef: {name: m}}]", "envFrom"),
        ("env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]", "env[0].valueFrom"),
        ("securityContext: {privileged: true}", "securityContext"),
        ("resources: {limits: {ephemeral-storage: 1Gi}}", "resources.limits[ephemeral-storage]"),
    ],
)
def test_a_field_of_a_container_is_refused(container: str, field: str) -> None:
    assert problems_of("", container) == [f"spec.containers[0].{field}: {MESSAGE}"]


def test_init_containers_are_looked_through_as_well() -> None:
    spec = "initContainers: [{name: i, image: x:1, restartPolicy: Always, envFrom: [{configMapRef: {name: m}}]}]"
    assert problems_of(spec) == [f"spec.initContainers[0].envFrom: {MESSAGE}"]


@pytest.mark.parametrize(
    "spec",
    [
        "securityContext: {}",
        "hostNetwork: false",
        "volumes: []",
        "hostUsers: true",
        "os: {name: linux}",
        "automountServiceAccountToken: false",
        "tolerations: [{operator: Exists}]",
        "nodeSelector: {a: b}",
        "priorityClassName: system-node-critical",
        "affinity: {podAffinity: {}}",
        "dnsPolicy: Default",
        "hostname: h",
        "nodeName: other",
    ],
)
def test_what_asks_for_nothing_or_is_a_schedulers_is_accepted(spec: str) -> None:
    assert problems_of(spec) == []


def test_windows_pods_are_refused() -> None:
    assert problems_of("os: {name: windows}") == ["spec.os.name: only linux pods can run here"]


def test_dns_policy_none_is_refused() -> None:
    assert any(text.startswith('spec.dnsPolicy: "None" is ' + MESSAGE) for text in problems_of('dnsPolicy: "None"'))


def test_all_unsupported_fields_are_told_together() -> None:
    assert len(problems_of("hostPID: true", "tty: true, envFrom: [{configMapRef: {name: m}}]")) == 2


def test_the_field_table_knows_its_own_types() -> None:
    """Every type that a field names is a scalar or a type of the table."""
    scalars = {"string", "bool", "int32", "int64", "quantity", "intstr", "time", "bytes", "object"}
    for name, fields in TYPES.items():
        for field, kind in fields.items():
            base = kind.removeprefix("[]").removeprefix("{}")
            assert base in scalars or base in TYPES, f"{name}.{field}: {kind}"
