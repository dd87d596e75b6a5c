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
        ("volumes: [{name: v, nfs: {server: s, path: /p}}]", "spec.volumes[0].nfs"),
        ("volumes: [{name: v, image: {reference: x}}]", "spec.volumes[0].image"),
        ("volumes: [{name: v, emptyDir: {mode: 0700}}]", "spec.volumes[0].emptyDir.mode"),
        ("volumes: [{name: v, configMap: {name: m, defaultUser: 1}}]", "spec.volumes[0].configMap.defaultUser"),
        (
            "volumes: [{name: v, secret: {secretName: m, items: [{key: k, path: p, user: 1}]}}]",
            "spec.volumes[0].secret.items[0].user",
        ),
        (
            "volumes: [{name: v, projected: {sources: [{secret: {name: m, items: [{key: k, path: p, user: 1}]}}]}}]",
            "spec.volumes[0].projected.sources[0].secret.items[0].user",
        ),
        ("securityContext: {seLinuxOptions: {level: s0}}", "spec.securityContext.seLinuxOptions"),
        ("securityContext: {seLinuxChangePolicy: Recursive}", "spec.securityContext.seLinuxChangePolicy"),
        ("runtimeClassName: kata", "spec.runtimeClassName"),
        ("hostUsers: false", "spec.hostUsers"),
    ],
)
def test_a_field_of_the_spec_is_refused(spec: str, field: str) -> None:
    assert problems_of(spec) == [f"{field}: {MESSAGE}"]


@pytest.mark.parametrize(
    ("container", "field"),
    [
        ("securityContext: {seLinuxOptions: {level: s0}}", "securityContext.seLinuxOptions"),
    ],
)
def test_a_field_of_a_container_is_refused(container: str, field: str) -> None:
    assert problems_of("", container) == [f"spec.containers[0].{field}: {MESSAGE}"]


def test_init_containers_are_looked_through_as_well() -> None:
    spec = "initContainers: [{name: i, image: x:1, restartPolicy: Always, resources: {claims: [{name: d}]}}]"
    assert f"spec.initContainers[0].resources.claims: {MESSAGE}" in problems_of(spec)


def test_huge_pages_and_recursive_read_only_are_refused_by_their_values() -> None:
    """By value, where another value of the field runs."""
    pages = problems_of("volumes: [{name: v, emptyDir: {medium: HugePages-2Mi}}]")
    assert pages == [f'spec.volumes[0].emptyDir.medium: "HugePages-2Mi" is {MESSAGE}']
    mounts = "volumeMounts: [{name: v, mountPath: /v, readOnly: true, recursiveReadOnly: Enabled}]"
    found = problems_of("volumes: [{name: v}]", mounts)
    assert found == [f'spec.containers[0].volumeMounts[0].recursiveReadOnly: "Enabled" is {MESSAGE}']


def test_the_volumes_of_this_version_are_accepted() -> None:
    volumes = (
        "volumes: [{name: a}, {name: b, emptyDir: {medium: Memory, sizeLimit: 1Mi}}, {name: c, hostPath: {path: /x}},"
        " {name: d, configMap: {name: m, items: [{key: k, path: p, mode: 0400}]}}, {name: e, secret: {secretName: s}},"
        " {name: f, downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}},"
        " {name: g, projected: {sources: [{configMap: {name: m}}]}}]"
    )
    env = "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}], envFrom: [{configMapRef: {name: m}}]"
    assert problems_of(volumes, f"volumeMounts: [{{name: a, mountPath: /a, subPathExpr: $(A)}}], {env}") == []


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


def test_a_windows_pod_is_left_to_admission() -> None:
    assert problems_of("os: {name: windows}") == []


def test_sysctls_are_left_to_admission() -> None:
    assert problems_of("securityContext: {sysctls: [{name: kernel.msgmax, value: '65536'}]}") == []


@pytest.mark.parametrize(
    "spec",
    [
        "hostNetwork: true",
        "hostPID: true",
        "hostIPC: true",
        "shareProcessNamespace: true",
        "securityContext: {runAsUser: 1, runAsGroup: 1, runAsNonRoot: true, supplementalGroups: [1]}",
        "securityContext: {supplementalGroupsPolicy: Strict}",
        "securityContext: {seccompProfile: {type: Localhost, localhostProfile: p.json}}",
        "securityContext: {appArmorProfile: {type: RuntimeDefault}}",
        "hostAliases: [{ip: 1.2.3.4}]",
        "subdomain: s",
        "setHostnameAsFQDN: true",
        "hostnameOverride: h.example",
        'dnsPolicy: "None"\n  dnsConfig: {nameservers: [1.1.1.1]}',
    ],
)
def test_what_a_pod_may_ask_for_is_accepted(spec: str) -> None:
    assert problems_of(spec) == []


def test_a_containers_security_context_is_accepted() -> None:
    context = (
        "securityContext: {runAsUser: 0, runAsNonRoot: false, readOnlyRootFilesystem: true, procMount: Default,"
        " allowPrivilegeEscalation: false, capabilities: {add: [NET_ADMIN], drop: [ALL]}}"
    )
    assert problems_of("", context) == []
    assert problems_of("", "securityContext: {privileged: true}") == []


def test_an_unmasked_proc_needs_a_user_namespace_and_is_refused_with_and_without() -> None:
    unmasked = "securityContext: {procMount: Unmasked}"
    assert any("`hostUsers` must be false" in text for text in problems_of("", unmasked))
    assert f"spec.hostUsers: {MESSAGE}" in problems_of("hostUsers: false", unmasked)


def test_all_unsupported_fields_are_told_together() -> None:
    assert len(problems_of("hostUsers: false", "securityContext: {seLinuxOptions: {level: s0}}")) == 2


def test_the_field_table_knows_its_own_types() -> None:
    """Every type that a field names is a scalar or a type of the table."""
    scalars = {"string", "bool", "int32", "int64", "quantity", "intstr", "time", "bytes", "object"}
    for name, fields in TYPES.items():
        for field, kind in fields.items():
            base = kind.removeprefix("[]").removeprefix("{}")
            assert base in scalars or base in TYPES, f"{name}.{field}: {kind}"
