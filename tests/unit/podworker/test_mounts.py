"""A container's mounts (lifecycle 7.3)."""

from __future__ import annotations

from typing import Any

import pytest

from services.podworker.adapters.docker_translate import container_payload
from services.podworker.core.config_objects import ConfigError, ConfigObject, Objects
from services.podworker.core.container_config import ContainerInputs, Mount, container_config
from services.podworker.core.environment import Environment
from services.podworker.core.mounts import MountRequest, mount_requests
from shared.kube.references import ConfigRef
from tests.support.builders import UID, a_container, a_node, a_pod

POD = f"/data/pods/{UID}"
MAP = ConfigObject(kind="ConfigMap", namespace="default", name="m", data={"setting.ini": b""})
OBJECTS: Objects = {ConfigRef("ConfigMap", "m"): MAP}


def request(
    mount: dict[str, Any], volume: dict[str, Any] | None = None, variables: dict[str, str] | None = None
) -> MountRequest:
    container = a_container(volumeMounts=[{"name": "v", "mountPath": "/v", **mount}])
    pod = a_pod(container, volumes=[{"name": "v", **(volume or {"emptyDir": {}})}])
    (found,) = mount_requests(pod, pod.spec.containers[0], a_node(), variables or {}, OBJECTS)
    return found


def test_a_mount_binds_the_volumes_root() -> None:
    root = f"{POD}/volumes/kubernetes.io~empty-dir/v"
    assert request({}) == MountRequest(volume="v", root=root, target="/v")
    assert request({}, {"hostPath": {"path": "/srv"}}).root == "/srv"


def test_a_relative_target_counts_from_the_root() -> None:
    assert request({"mountPath": "v"}).target == "/v"


@pytest.mark.parametrize(
    ("volume", "read_only"),
    [
        ({"emptyDir": {}}, False),
        ({"hostPath": {"path": "/srv"}}, False),
        ({"configMap": {"name": "m"}}, True),
        ({"secret": {"secretName": "s"}}, True),
        ({"downwardAPI": {}}, True),
        ({"projected": {}}, True),
    ],
)
def test_files_that_podbus_keeps_are_read_only_to_containers(volume: dict[str, Any], read_only: bool) -> None:
    assert request({}, volume).read_only is read_only
    assert request({"readOnly": True}, volume).read_only


@pytest.mark.parametrize(
    ("asked", "propagation"),
    [
        ({}, "rprivate"),
        ({"mountPropagation": "None"}, "rprivate"),
        ({"mountPropagation": "HostToContainer"}, "rslave"),
        ({"mountPropagation": "Bidirectional"}, "rshared"),
    ],
)
def test_propagation_is_the_engines_word_for_it(asked: dict[str, str], propagation: str) -> None:
    assert request(asked).propagation == propagation


def test_a_sub_path_is_bound_in_the_pods_directory() -> None:
    found = request({"subPath": "a//b/"})
    assert (found.sub_path, found.bind_path) == ("a/b", f"{POD}/volume-subpaths/v/c/0")
    assert found.may_create
    assert request({"subPath": "."}).sub_path == ""


def test_an_expression_is_expanded_with_the_containers_variables() -> None:
    """a26"""
    assert request({"subPathExpr": "$(POD)/x"}, variables={"POD": "web"}).sub_path == "web/x"
    assert request({"subPathExpr": "$$(POD)"}, variables={"POD": "web"}).sub_path == "$(POD)"


@pytest.mark.parametrize(
    ("expression", "variables", "told"),
    [
        ("$(NOPE)", {}, "missing value for NOPE"),
        ("x$(EMPTY)", {"EMPTY": ""}, "missing value for EMPTY"),
        ("$(A)", {"A": "/etc"}, "error SubPath `/etc` must not be an absolute path"),
        ("$(A)", {"A": "x/../.."}, "unable to provision SubPath `x/../..`: must not contain '..'"),
    ],
)
def test_an_expression_that_leads_nowhere_is_told(expression: str, variables: dict[str, str], told: str) -> None:
    """a26, V09"""
    with pytest.raises(ConfigError) as error:
        request({"subPathExpr": expression}, variables=variables)
    assert str(error.value) == told


def test_a_key_that_is_not_there_is_told_with_those_that_are() -> None:
    """Case 06: no empty directory is made in silence."""
    found = request({"subPath": "settings.ini"}, {"configMap": {"name": "m"}})
    assert not found.may_create
    assert found.missing == 'volume "v": ConfigMap "m" has no key "settings.ini" for subPath (its keys: setting.ini)'


def test_recursive_read_only_is_told_where_it_must_be_and_done_without_where_it_may() -> None:
    assert request({"readOnly": True, "recursiveReadOnly": "IfPossible"}).read_only
    with pytest.raises(ConfigError, match="recursive read-only"):
        request({"readOnly": True, "recursiveReadOnly": "Enabled"})


def test_a_mount_of_its_own_wins_over_the_generated_hosts_file() -> None:
    pod = a_pod(a_container())
    own = Mount(source="/srv/hosts", target="/etc/hosts")
    inputs = ContainerInputs(Environment({}), (own,))
    config = container_config(pod, pod.spec.containers[0], a_node(), 0, sandbox_id="s", source="file", inputs=inputs)
    assert [mount for mount in config.mounts if mount.target == "/etc/hosts"] == [own]


def test_the_engine_is_asked_for_propagation_only_where_it_is_not_its_own_default() -> None:
    """V12"""
    pod = a_pod(a_container())
    mounts = tuple(
        Mount(source="/s", target=f"/{kind}", propagation=kind) for kind in ("rprivate", "rslave", "rshared")
    )
    inputs = ContainerInputs(Environment({}), mounts)
    config = container_config(pod, pod.spec.containers[0], a_node(), 0, sandbox_id="s", source="file", inputs=inputs)
    asked = {
        mount["Target"]: mount.get("BindOptions") for mount in container_payload(config, 0)["HostConfig"]["Mounts"]
    }
    assert asked["/rprivate"] is None
    assert asked["/rslave"] == {"Propagation": "rslave"}
    assert asked["/rshared"] == {"Propagation": "rshared"}
