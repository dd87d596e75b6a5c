"""A container's variables (lifecycle 7.2)."""

from __future__ import annotations

from typing import Any

import pytest

from services.podworker.core.config_objects import ConfigError, ConfigObject
from services.podworker.core.container_config import container_config, has_private_command
from services.podworker.core.downward import Addresses
from services.podworker.core.environment import EnvInputs, Environment, FileKey, environment
from shared.kube.names import LABEL_PRIVATE_COMMAND
from shared.kube.references import ConfigKind, ConfigRef
from tests.support.builders import NODE_IP, POD_IP, a_container, a_node, a_pod, golden_pod

NODE = a_node(
    allocatable_cpu_milli=1500, allocatable_memory_bytes=4 << 30, allocatable_storage_bytes=9 << 30, address=NODE_IP
)


def an_object(kind: ConfigKind, name: str, binary: dict[str, bytes] | None = None, **data: str) -> ConfigObject:
    values = {key: text.encode() for key, text in data.items()}
    return ConfigObject(kind=kind, namespace="default", name=name, data=values, binary=binary or {})


MAP = an_object("ConfigMap", "m", {"blob": b"\0"}, k="v", other="w")
SECRET = an_object("Secret", "s", token="s3cret", k="hidden")
OBJECTS = {ConfigRef("ConfigMap", "m"): MAP, ConfigRef("Secret", "s"): SECRET, ConfigRef("ConfigMap", "gone"): None}
INPUTS = EnvInputs(objects=OBJECTS, addresses=Addresses(host_ip=NODE_IP, pod_ips=(POD_IP, "fd00::2")))


def of(*env: dict[str, Any], inputs: EnvInputs = INPUTS, **container: Any) -> Environment:
    pod = a_pod(a_container(env=list(env), **container), nodeName="node1")
    return environment(pod, pod.spec.containers[0], NODE, inputs)


def value_from(**source: Any) -> dict[str, str]:
    return of({"name": "X", "valueFrom": source}).variables


def test_a_value_sees_only_what_is_defined_above_it() -> None:
    """E03"""
    found = of(
        {"name": "B", "value": "$(A)"},
        {"name": "A", "value": "x"},
        {"name": "C", "value": "$(A)"},
        {"name": "A", "value": "$(A)y"},
    )
    assert found.variables == {"B": "$(A)", "A": "xy", "C": "x"}


def test_a_variable_without_a_value_is_empty() -> None:
    assert of({"name": "A"}).variables == {"A": ""}


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("metadata.name", "p-node1"),
        ("metadata.namespace", "default"),
        ("metadata.uid", "0123456789abcdef0123456789abcdef"),
        ("metadata.labels['x/y']", ""),
        ("metadata.annotations['note']", ""),
        ("spec.nodeName", "node1"),
        ("spec.serviceAccountName", ""),
        ("status.hostIP", NODE_IP),
        ("status.hostIPs", NODE_IP),
        ("status.podIP", POD_IP),
        ("status.podIPs", f"{POD_IP},fd00::2"),
    ],
)
def test_all_eleven_fields_can_be_read(field: str, expected: str) -> None:
    """E04"""
    assert value_from(fieldRef={"fieldPath": field}) == {"X": expected}


def test_labels_and_annotations_are_read_by_their_keys() -> None:
    """E04; a11 has both, a missing label is empty."""
    pod = golden_pod("a11")
    found = environment(pod, pod.spec.containers[0], NODE, EnvInputs()).variables
    assert (found["L"], found["AN"], found["NOL"]) == ("z", "a b", "")


@pytest.mark.parametrize(
    ("resource", "divisor", "expected"),
    [
        ("requests.cpu", "0", "1"),
        ("requests.cpu", "1", "1"),
        ("requests.cpu", "1m", "250"),
        ("limits.memory", "1Mi", "64"),
        ("limits.memory", "1M", "68"),
        ("limits.cpu", "1m", "1500"),
        ("limits.cpu", "1", "2"),
        ("limits.ephemeral-storage", "1Gi", "9"),
        ("requests.memory", "1", "0"),
    ],
)
def test_a_resource_is_divided_and_rounded_up(resource: str, divisor: str, expected: str) -> None:
    """E06: a limit that isn't set is what the node can give, a request that isn't is 0."""
    resources = {"requests": {"cpu": "250m"}, "limits": {"memory": "64Mi"}}
    source = {"resourceFieldRef": {"resource": resource, "divisor": divisor}}
    assert of({"name": "X", "valueFrom": source}, resources=resources).variables == {"X": expected}


def test_another_containers_resource_can_be_named() -> None:
    ref = {"resource": "limits.memory", "containerName": "d", "divisor": "1Mi"}
    env = [{"name": "X", "valueFrom": {"resourceFieldRef": ref}}]
    pod = a_pod(a_container(env=env), a_container("d", resources={"limits": {"memory": "8Mi"}}))
    assert environment(pod, pod.spec.containers[0], NODE, INPUTS).variables == {"X": "8"}


def test_keys_of_objects_are_values() -> None:
    """E07"""
    assert value_from(configMapKeyRef={"name": "m", "key": "k"}) == {"X": "v"}
    assert value_from(secretKeyRef={"name": "s", "key": "token"}) == {"X": "s3cret"}


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ({"configMapKeyRef": {"name": "gone", "key": "k"}}, 'configmap "gone" not found'),
        ({"secretKeyRef": {"name": "gone", "key": "k"}}, 'secret "gone" not found'),
        ({"configMapKeyRef": {"name": "m", "key": "q"}}, "couldn't find key q in ConfigMap default/m"),
        ({"secretKeyRef": {"name": "s", "key": "q"}}, "couldn't find key q in Secret default/s"),
        ({"configMapKeyRef": {"name": "m", "key": "blob"}}, "couldn't find key blob in ConfigMap default/m"),
    ],
)
def test_what_is_missing_is_named_unless_it_is_optional(source: dict[str, Any], told: str) -> None:
    """E07: binary data is no text. A Secret's values are in no message."""
    with pytest.raises(ConfigError) as error:
        value_from(**source)
    assert str(error.value) == told
    ((kind, ref),) = source.items()
    assert value_from(**{kind: {**ref, "optional": True}}) == {}


def test_of_several_sources_the_last_wins_and_env_over_all() -> None:
    """E08"""
    sources = [{"prefix": "P_", "configMapRef": {"name": "m"}}, {"prefix": "P_", "secretRef": {"name": "s"}}]
    found = of({"name": "P_other", "value": "env"}, {"name": "D", "value": "$(P_k)"}, envFrom=sources)
    assert found.variables == {"P_k": "hidden", "P_other": "env", "P_token": "s3cret", "D": "hidden"}


def test_a_missing_source_of_all_keys_is_named_unless_it_is_optional() -> None:
    with pytest.raises(ConfigError, match='configmap "gone" not found'):
        of(envFrom=[{"configMapRef": {"name": "gone"}}])
    assert of(envFrom=[{"configMapRef": {"name": "gone", "optional": True}}]).variables == {}


def from_file(text: str | None, **ref: Any) -> dict[str, str]:
    files = {} if text is None else {FileKey("v", "d/env"): text}
    source = {"fileKeyRef": {"volumeName": "v", "path": "d/env", "key": "K", **ref}}
    return of({"name": "X", "valueFrom": source}, inputs=EnvInputs(files=files)).variables


def test_a_file_that_an_init_container_wrote_gives_its_key() -> None:
    """E09"""
    assert from_file("K='v'\n") == {"X": "v"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("K=v\n", "couldn't parse file d/env of volume v: line 1: the value must be in single quotes"),
        ("L='v'\n", "couldn't find key K in file d/env of volume v"),
        ("K=''\n", "empty value of key K in file d/env of volume v"),
        (None, "couldn't read file d/env of volume v: no such file"),
    ],
)
def test_a_file_without_a_value_is_told(text: str | None, told: str) -> None:
    """E09"""
    with pytest.raises(ConfigError) as error:
        from_file(text)
    assert str(error.value) == told


def test_an_optional_key_may_lack_its_value_but_not_its_file() -> None:
    assert from_file("K=''\n", optional=True) == from_file("", optional=True) == {}
    with pytest.raises(ConfigError, match="no such file"):
        from_file(None, optional=True)


def test_variables_that_hold_a_secret_are_known_whatever_they_were_put_into() -> None:
    found = of(
        {"name": "T", "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}},
        {"name": "URL", "value": "http://u:$(T)@h"},
        {"name": "ESCAPED", "value": "$$(T)"},
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
        envFrom=[{"prefix": "S_", "secretRef": {"name": "s"}}],
    )
    assert found.private == {"T", "URL", "S_k", "S_token"}
    assert found.spelt_out_in(["echo $(URL)"])
    assert not found.spelt_out_in(["echo $T $(ESCAPED) $(A) $$(T)"])


def test_a_secret_that_is_defined_anew_by_something_public_is_none() -> None:
    secret = {"secretKeyRef": {"name": "s", "key": "token"}}
    assert of({"name": "T", "valueFrom": secret}, {"name": "T", "value": "plain"}).private == frozenset()


def test_nothing_that_holds_values_shows_them() -> None:
    assert "s3cret" not in f"{SECRET!r} {INPUTS!r} {of(envFrom=[{'secretRef': {'name': 's'}}])!r}"


def test_a_command_with_a_secret_in_it_is_marked() -> None:
    """Or the engine's words about a failed start would carry it into events and status."""
    env = [{"name": "T", "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}}]
    for command, is_private in ((["$(T)"], True), (["sh", "-c", "echo $T"], False)):
        pod = a_pod(a_container(env=env, command=command))
        container = pod.spec.containers[0]
        given = environment(pod, container, NODE, INPUTS)
        assert has_private_command(container, given) is is_private


def test_a_pod_without_secrets_has_no_such_label() -> None:
    pod = a_pod(a_container())
    config = container_config(pod, pod.spec.containers[0], NODE, 0, sandbox_id="s", source="file")
    assert LABEL_PRIVATE_COMMAND not in config.labels
