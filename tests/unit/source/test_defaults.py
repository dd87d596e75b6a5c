"""The API's defaults (lifecycle 1.5)."""

# ruff: noqa: E501 - a table with one row per rule reads best unbroken

from __future__ import annotations

from typing import Any

import pytest

from services.source.core.defaults import apply_pod_defaults, default_pull_policy


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("busybox:1.36", "IfNotPresent"),
        ("localhost:5000/a/b", "Always"),
        ("localhost:5000/a/b:1", "IfNotPresent"),
        ("busybox@sha256:" + "a" * 64, "IfNotPresent"),
        ("busybox:latest@sha256:" + "a" * 64, "Always"),
        ("Bad/UPPER:1", "IfNotPresent"),
        ("Bad/UPPER", "IfNotPresent"),
        ("", "IfNotPresent"),
        ("a b", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert default_pull_policy(image) == policy


def defaulted(spec: dict[str, Any]) -> dict[str, Any]:
    pod = {"spec": spec}
    apply_pod_defaults(pod)
    return pod["spec"]


def container_of(**fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = defaulted({"containers": [{"name": "c", "image": "x:1", **fields}]})["containers"][0]
    return found


def test_a_limit_without_a_request_is_the_request_too() -> None:
    container = container_of(resources={"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}})
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


def test_a_request_without_a_limit_sets_no_limit() -> None:
    assert container_of(resources={"requests": {"cpu": "1"}})["resources"] == {"requests": {"cpu": "1"}}


def test_quantities_are_rounded_up_to_milli() -> None:
    assert container_of(resources={"limits": {"cpu": "100u"}})["resources"]["limits"] == {"cpu": "1m"}


def test_a_port_speaks_tcp() -> None:
    assert container_of(ports=[{"containerPort": 80}])["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


def test_on_the_hosts_network_a_container_port_is_the_host_port() -> None:
    spec = defaulted({"hostNetwork": True, "containers": [{"ports": [{"containerPort": 80}]}]})
    assert spec["containers"][0]["ports"][0]["hostPort"] == 80


def test_a_probe_has_its_four_numbers_and_a_path() -> None:
    assert container_of(livenessProbe={"httpGet": {"port": 80}, "periodSeconds": 3})["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 3,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert container_of(startupProbe={"grpc": {"port": 1}})["startupProbe"]["grpc"]["service"] == ""


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        ({}, {"emptyDir": {}}),
        ({"configMap": {"name": "m"}}, {"configMap": {"name": "m", "defaultMode": 420}}),
        ({"secret": {"secretName": "s", "defaultMode": 256}}, {"secret": {"secretName": "s", "defaultMode": 256}}),
        ({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {"projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}]}},
        ),
    ],
)  # fmt: skip
def test_volumes_have_their_source_and_mode(volume: dict[str, Any], expected: dict[str, Any]) -> None:
    assert defaulted({"volumes": [{"name": "v", **volume}]})["volumes"] == [{"name": "v", **expected}]


def test_a_field_reference_is_of_version_v1() -> None:
    container = container_of(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])
    assert container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"


def test_defaulting_twice_changes_nothing() -> None:
    once = defaulted({"containers": [{"name": "c", "image": "x", "resources": {"limits": {"cpu": "1"}}}]})
    again = defaulted({**once})
    assert again == once


def test_a_sleep_without_seconds_is_one_of_none() -> None:
    hook: dict[str, object] = {"preStop": {"sleep": {}}}
    pod = {"spec": {"containers": [{"name": "c", "image": "x:1", "lifecycle": hook}]}}
    apply_pod_defaults(pod)
    assert hook == {"preStop": {"sleep": {"seconds": 0}}}
