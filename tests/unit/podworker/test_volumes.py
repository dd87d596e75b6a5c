"""What a pod's volumes should hold (lifecycle 7.3)."""

from __future__ import annotations

from typing import Any

import pytest

from services.podworker.core.config_objects import ConfigObject, Objects
from services.podworker.core.downward import go_quoted
from services.podworker.core.volumes import (
    DirectoryVolume,
    FilesVolume,
    HostVolume,
    VolumeFault,
    VolumePlan,
    volume_plan,
)
from shared.kube.references import ConfigRef
from tests.support.builders import UID, a_container, a_node, a_pod, golden_pod

NODE = a_node(allocatable_memory_bytes=4 << 30)
ROOT = f"/data/pods/{UID}/volumes"
MAP = ConfigObject(kind="ConfigMap", namespace="default", name="m", data={"k": b"v", "l": b"w"}, binary={"b": b"\xff"})
SECRET = ConfigObject(kind="Secret", namespace="default", name="s", data={"token": b"s3cret"})
OBJECTS: Objects = {ConfigRef("ConfigMap", "m"): MAP, ConfigRef("Secret", "s"): SECRET}


def plan_of(volume: dict[str, Any], objects: Objects = OBJECTS, **spec: Any) -> VolumePlan:
    mounts = [{"name": "v", "mountPath": "/v"}]
    container = a_container(volumeMounts=mounts, resources=spec.pop("resources", {}))
    return volume_plan(a_pod(container, volumes=[{"name": "v", **volume}], **spec), NODE, objects)


def files_of(volume: dict[str, Any], **spec: Any) -> dict[str, tuple[bytes, int]]:
    (setup,) = plan_of(volume, **spec).setups
    assert isinstance(setup, FilesVolume)
    return {file.path: (file.content, file.mode) for file in setup.files}


def fault_of(volume: dict[str, Any]) -> str:
    plan = plan_of(volume)
    assert plan.setups == ()
    (fault,) = plan.faults
    assert fault.volume == "v"
    return fault.message


def test_an_empty_dir_is_a_directory_below_the_pods() -> None:
    """V01"""
    path = f"{ROOT}/kubernetes.io~empty-dir/v"
    assert plan_of({"emptyDir": {}}).setups == (DirectoryVolume(name="v", path=path),)


@pytest.mark.parametrize(
    ("source", "limit", "size"),
    [
        ({}, None, 4 << 30),
        ({"sizeLimit": "10Mi"}, None, 10 << 20),
        ({"sizeLimit": "10Mi"}, "8Mi", 8 << 20),
        ({"sizeLimit": "1Ti"}, None, 4 << 30),
        ({}, "64Mi", 64 << 20),
    ],
)
def test_one_in_memory_has_the_least_of_all_bounds(source: dict[str, str], limit: str | None, size: int) -> None:
    resources = {"limits": {"memory": limit}} if limit else {}
    (setup,) = plan_of({"emptyDir": {"medium": "Memory", **source}}, resources=resources).setups
    assert isinstance(setup, DirectoryVolume)
    assert (setup.memory, setup.size) == (True, size)


def test_a_host_path_is_the_hosts() -> None:
    setups = plan_of({"hostPath": {"path": "/srv", "type": "Directory"}}, securityContext={"fsGroup": 5}).setups
    assert setups == (HostVolume(name="v", path="/srv", type="Directory"),)


def test_a_config_map_is_a_file_per_key_also_of_binary_data() -> None:
    assert files_of({"configMap": {"name": "m", "defaultMode": 0o600}}) == {
        "b": (b"\xff", 0o600),
        "k": (b"v", 0o600),
        "l": (b"w", 0o600),
    }


def test_items_choose_keys_and_name_paths_and_modes() -> None:
    """V07"""
    items = [{"key": "k", "path": "d/e", "mode": 0o400}, {"key": "l", "path": "l"}]
    assert files_of({"configMap": {"name": "m", "items": items}}) == {"d/e": (b"v", 0o400), "l": (b"w", 0o644)}


def test_a_missing_key_is_told_with_the_keys_there_are_unless_optional() -> None:
    """V07"""
    items = [{"key": "q", "path": "q"}, {"key": "k", "path": "k"}]
    told = fault_of({"configMap": {"name": "m", "items": items}})
    assert told == 'configmap "m" references non-existent config key: q (its keys: b, k, l)'
    assert files_of({"configMap": {"name": "m", "items": items, "optional": True}}) == {"k": (b"v", 0o644)}
    told = fault_of({"secret": {"secretName": "s", "items": [{"key": "q", "path": "q"}]}})
    assert told == 'secret "s" references non-existent secret key: q (its keys: token)'


def test_a_missing_object_is_told_unless_optional() -> None:
    assert fault_of({"configMap": {"name": "gone"}}) == 'configmap "gone" not found'
    assert fault_of({"secret": {"secretName": "gone"}}) == 'secret "gone" not found'
    assert fault_of({"projected": {"sources": [{"secret": {"name": "gone"}}]}}) == 'secret "gone" not found'
    assert files_of({"secret": {"secretName": "gone", "optional": True}}) == {}


@pytest.mark.parametrize(
    ("volume", "in_memory"),
    [
        ({"configMap": {"name": "m"}}, False),
        ({"secret": {"secretName": "s"}}, True),
        ({"downwardAPI": {}}, True),
        ({"projected": {"sources": [{"configMap": {"name": "m"}}]}}, True),
    ],
)
def test_all_but_config_maps_are_in_memory_only(volume: dict[str, Any], in_memory: bool) -> None:
    (setup,) = plan_of(volume).setups
    assert isinstance(setup, FilesVolume)
    assert setup.memory is in_memory


def test_labels_and_annotations_are_sorted_and_quoted_as_go_does() -> None:
    """V05, a23"""
    (setup,) = volume_plan(golden_pod("a23"), NODE, {}).setups
    assert isinstance(setup, FilesVolume)
    files = {file.path: (file.content, file.mode) for file in setup.files}
    assert files["labels"] == (b'a="x"\nb="2"', 0o644)
    # The manifest's key `n` is a boolean in YAML 1.1 and in this test's loader: what counts is the value.
    assert files["ann"][0].endswith(rb'="say \"hi\""')
    assert files["sub/cpu"] == (b"300", 0o400)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [("a", '"a"'), ('"\\', r'"\"\\"'), ("\n\t\0", r'"\n\t\x00"'), ("é\u00a0\u200b", '"é\\u00a0\\u200b"')],
)
def test_quoting_is_gos(text: str, quoted: str) -> None:
    assert go_quoted(text) == quoted


def test_a_projected_volume_merges_its_sources_and_the_later_wins() -> None:
    sources = [
        {"configMap": {"name": "m", "items": [{"key": "k", "path": "x"}, {"key": "l", "path": "l"}]}},
        {"secret": {"name": "s", "items": [{"key": "token", "path": "x", "mode": 0o400}]}},
        {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]
    assert files_of({"projected": {"sources": sources, "defaultMode": 0o440}}) == {
        "x": (b"s3cret", 0o400),
        "l": (b"w", 0o440),
        "name": (b"p-node1", 0o440),
    }


def test_volumes_that_no_container_uses_are_left_out() -> None:
    """kubelet: only what is mounted, or read for variables."""
    env = [{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "read", "path": "e", "key": "A"}}}]
    init = a_container("i", volumeMounts=[{"name": "init", "mountPath": "/i"}])
    names = ("read", "init", "unused")
    pod = a_pod(a_container(env=env), initContainers=[init], volumes=[{"name": n, "emptyDir": {}} for n in names])
    assert [setup.name for setup in volume_plan(pod, NODE, {}).setups] == ["read", "init"]


def test_the_group_is_for_the_pods_own_volumes() -> None:
    """V13"""
    sources: tuple[dict[str, Any], ...] = (
        {"emptyDir": {}},
        {"secret": {"secretName": "s"}},
        {"configMap": {"name": "m"}},
    )
    for volume in sources:
        (setup,) = plan_of(volume, securityContext={"fsGroup": 2000}).setups
        assert not isinstance(setup, HostVolume)
        assert setup.group == 2000


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ({"v": "/a", "w": "/a/b"}, ("b",)),
        ({"v": "/a", "w": "/a/b/c", "x": "/a/b/c/d"}, ("b/c",)),
        ({"v": "/a/", "w": "a/b/"}, ("b",)),
        ({"v": "/a", "w": "/ab", "x": "/"}, ()),
        ({"v": "/a/b", "w": "/a"}, ()),
        ({"v": "/a", "w": "/a/../c"}, ()),
    ],
)
def test_mounts_below_a_read_only_volume_have_their_places_in_it(
    paths: dict[str, str], expected: tuple[str, ...]
) -> None:
    mounts = [{"name": name, "mountPath": path} for name, path in paths.items()]
    volumes = [{"name": name, "secret": {"secretName": "s"}} for name in paths]
    pod = a_pod(a_container(volumeMounts=mounts), volumes=volumes)
    (setup,) = (one for one in volume_plan(pod, NODE, OBJECTS).setups if one.name == "v")
    assert isinstance(setup, FilesVolume)
    assert setup.mount_points == expected


def test_one_fault_leaves_the_other_volumes_alone() -> None:
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("a", "b")]
    volumes = [{"name": "a", "secret": {"secretName": "gone"}}, {"name": "b", "emptyDir": {}}]
    plan = volume_plan(a_pod(a_container(volumeMounts=mounts), volumes=volumes), NODE, OBJECTS)
    assert [setup.name for setup in plan.setups] == ["b"]
    assert plan.faults == (VolumeFault("a", 'secret "gone" not found'),)


def test_no_repr_shows_a_secret() -> None:
    assert "s3cret" not in repr(plan_of({"secret": {"secretName": "s"}}))
