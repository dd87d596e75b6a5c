"""Volumes of real containers: many small pods side by side on one node."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml

from services.podworker.adapters.mounting import mounts_below, unmount_below
from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node
from tests.support.small_pods import (
    WAIT,
    Json,
    apply,
    config_map,
    container,
    container_id,
    events,
    mount,
    ready,
    run_in,
    uid_of,
    waiting,
)

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        yield Path(directory)


@pytest.fixture(scope="module")
def node(place: Path) -> Iterator[Node]:
    docker_client().close()
    made = Node(place / "n")
    try:
        made.start()
        yield made
    finally:
        made.close()


# -- emptyDir -----------------------------------------------------------------------------------------------------


def test_an_empty_dir_is_shared_survives_its_containers_and_goes_with_the_pod(node: Node) -> None:
    """V01; one in memory likewise."""
    mounts = [mount("v", "/v"), mount("m", "/m")]
    volumes: list[Json] = [
        {"name": "v", "emptyDir": {}},
        {"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "10Mi"}},
    ]
    writer = container(f"stat -c %a /v > /v/mode; date > /v/$HOSTNAME; echo x > /m/f; {WAIT}", volumeMounts=mounts)
    apply(node, "v01", writer, container(WAIT, "d", volumeMounts=mounts), volumes=volumes)
    ready(node, "v01")
    eventually(lambda: run_in(node, "v01", "cat /v/mode /m/f", "d") == "777\nx\n", within=10)
    line = run_in(node, "v01", "grep ' /m ' /proc/mounts")
    assert re.match(r"tmpfs /m tmpfs rw,relatime,size=10240k", line), line
    before = run_in(node, "v01", "ls -i /v", "d")
    node.docker("kill", container_id(node, "v01", "d"))
    eventually(lambda: node.pod("v01")["status"]["containerStatuses"][1]["restartCount"] == 1, within=30)
    ready(node, "v01")
    assert run_in(node, "v01", "ls -i /v", "d") == before
    uid = uid_of(node, "v01")
    directory = node.data / "pods" / uid
    assert list(mounts_below(directory)) == [str(directory / "volumes" / "kubernetes.io~empty-dir" / "m")]
    node.withdraw("v01.yaml")
    eventually(lambda: not directory.exists(), within=20)
    assert mounts_below(directory) == {}


def test_the_volumes_of_a_pod_that_has_run_to_its_end_are_taken_down(node: Node) -> None:
    """It stays as a record; what it held in memory doesn't."""
    volumes = [{"name": "m", "emptyDir": {"medium": "Memory"}}]
    apply(
        node,
        "done",
        container("echo x > /m/f", volumeMounts=[mount("m", "/m")]),
        volumes=volumes,
        restartPolicy="Never",
    )
    eventually(lambda: node.pod("done")["status"]["phase"] == "Succeeded", within=20)
    eventually(lambda: not mounts_below(node.data / "pods" / uid_of(node, "done")), within=10)
    assert (node.data / "pods" / uid_of(node, "done")).is_dir()


def test_the_group_of_a_pod_owns_its_volumes_and_not_the_hosts(node: Node, place: Path) -> None:
    """V13"""
    (place / "v13").mkdir()
    volumes: list[Json] = [
        {"name": "v", "emptyDir": {}},
        {"name": "m", "emptyDir": {"medium": "Memory"}},
        {"name": "c", "configMap": {"name": "v13", "defaultMode": 0o400}},
        {"name": "h", "hostPath": {"path": str(place / "v13")}},
    ]
    mounts = [mount(str(volume["name"]), f"/{volume['name']}") for volume in volumes]
    context = {"fsGroup": 2000, "fsGroupChangePolicy": "OnRootMismatch", "runAsUser": 1000, "runAsGroup": 3000}
    pod = container(f"touch /v/new /m/new; {WAIT}", volumeMounts=mounts)
    apply(node, "v13", pod, more=(config_map("v13", k="v"),), volumes=volumes, securityContext=context)
    ready(node, "v13")
    script = "id -G; cat /c/k; echo; stat -Lc '%a %u %g' /v /v/new /m /m/new /c/k /h"
    shown = eventually(lambda: run_in(node, "v13", script), within=10).splitlines()
    assert shown[:2] == ["3000 2000", "v"]
    volumes_and_files = ["2777 0 2000", "644 1000 2000", "3777 0 2000", "644 1000 2000", "440 0 2000"]
    assert shown[2:] == [*volumes_and_files, "755 0 0"]


# -- hostPath -----------------------------------------------------------------------------------------------------


def test_a_host_path_of_a_wrong_type_holds_the_pod_until_it_is_right(node: Node, place: Path) -> None:
    """V03"""
    path = place / "v03"
    path.touch()
    volumes = [{"name": "h", "hostPath": {"path": str(path), "type": "Directory"}}]
    apply(node, "v03", container(WAIT, volumeMounts=[mount("h", "/h")]), volumes=volumes)
    told = f'MountVolume.SetUp failed for volume "h" : hostPath type check failed: {path} is not a directory'
    eventually(lambda: told in events(node, "v03", "FailedMount"), within=15)
    assert waiting(node, "v03") == ("ContainerCreating", "")
    path.unlink()
    path.mkdir()
    ready(node, "v03")


def test_host_paths_are_made_where_they_may_and_stay(node: Node, place: Path) -> None:
    """V04"""
    made, file, plain = place / "v04" / "a" / "b", place / "v04" / "f", place / "v04" / "plain"
    (place / "v04").mkdir()
    volumes = [
        {"name": "d", "hostPath": {"path": str(made), "type": "DirectoryOrCreate"}},
        {"name": "f", "hostPath": {"path": str(file), "type": "FileOrCreate"}},
        {"name": "p", "hostPath": {"path": str(plain)}},
    ]
    mounts = [mount("d", "/d"), mount("f", "/f"), mount("p", "/p", readOnly=True)]
    apply(node, "v04", container(f"echo x > /d/x; echo y > /f; {WAIT}", volumeMounts=mounts), volumes=volumes)
    ready(node, "v04")
    eventually(lambda: (made / "x").read_text() == "x\n" and file.read_text() == "y\n", within=10)
    assert (made.stat().st_mode & 0o777, file.stat().st_mode & 0o777, plain.is_dir()) == (0o755, 0o644, True)
    with pytest.raises(subprocess.CalledProcessError, match="exec"):
        run_in(node, "v04", "touch /p/x")
    node.withdraw("v04.yaml")
    eventually(lambda: "v04" not in node.pods(), within=20)
    assert (made / "x").exists() and file.exists() and plain.is_dir()


@contextmanager
def shared_directory(node: Node, path: Path, pod: str) -> Iterator[Path]:
    """A shared mount on the host; the pod that uses it is gone before it is."""
    path.mkdir()
    subprocess.run(["mount", "--bind", path, path], check=True)
    subprocess.run(["mount", "--make-shared", path], check=True)
    try:
        yield path
    finally:
        node.withdraw(f"{pod}.yaml")
        eventually(lambda: pod not in node.pods(), within=20)
        unmount_below(path)


def test_what_the_host_mounts_reaches_who_asks_for_it(node: Node, place: Path) -> None:
    """V12"""
    volumes = [{"name": "h", "hostPath": {"path": str(place / "v12")}}]
    with shared_directory(node, place / "v12", "v12") as shared:
        asks = container(WAIT, volumeMounts=[mount("h", "/h", mountPropagation="HostToContainer")])
        apply(node, "v12", asks, container(WAIT, "none", volumeMounts=[mount("h", "/h")]), volumes=volumes)
        ready(node, "v12")
        (shared / "below").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "none", shared / "below"], check=True)
        (shared / "below" / "f").touch()
        eventually(lambda: run_in(node, "v12", "ls /h/below") == "f\n", within=10)
        assert run_in(node, "v12", "ls /h/below", "none") == ""


def test_what_a_privileged_container_mounts_reaches_the_host(node: Node, place: Path) -> None:
    """V12. An engine that lacks capabilities itself can't start such a container: then the pod says so."""
    trial = ["docker", "run", "--rm", "--privileged", "busybox:1.36", "true"]
    can_run = subprocess.run(trial, capture_output=True).returncode == 0
    volumes = [{"name": "h", "hostPath": {"path": str(place / "v12p")}}]
    with shared_directory(node, place / "v12p", "v12p") as shared:
        both = mount("h", "/h", mountPropagation="Bidirectional")
        script = f"mkdir /h/below && mount -t tmpfs none /h/below && touch /h/below/f; {WAIT}"
        up = container(script, volumeMounts=[both], securityContext={"privileged": True})
        apply(node, "v12p", up, volumes=volumes)
        if can_run:
            eventually(lambda: (shared / "below" / "f").exists(), within=30)
        else:
            eventually(lambda: any("RunContainerError" in str(one) for one in _states(node, "v12p")), within=30)


def _states(node: Node, pod: str) -> list[Json]:
    statuses: list[Json] = node.pod(pod)["status"]["containerStatuses"]
    return [state for one in statuses for state in (one["state"], one["lastState"])]


def test_mounts_travel_to_the_host_from_privileged_containers_only(node: Node, place: Path) -> None:
    """V12"""
    mounts = [mount("h", "/h", mountPropagation="Bidirectional")]
    apply(node, "v12no", container(WAIT, volumeMounts=mounts), volumes=[{"name": "h", "hostPath": {"path": "/srv"}}])

    def refused() -> bool:
        errors = node.json("/podbus/sources")["sources"][0]["errors"]
        return "spec.containers[0].volumeMounts[0].mountPropagation" in [error["field"] for error in errors]

    eventually(refused, within=10)
    assert "v12no" not in node.pods()


# -- files --------------------------------------------------------------------------------------------------------


def test_a_config_map_is_files_and_follows_its_manifest(node: Node) -> None:
    """V07, and the refresh of a mounted file; what is bound by sub path and what is a variable stays."""
    items = [{"key": "k", "path": "d/e", "mode": 0o400}, {"key": "later", "path": "later"}]
    volumes = [
        {"name": "v", "configMap": {"name": "v07", "items": items, "optional": True}},
        {"name": "w", "configMap": {"name": "v07"}},
    ]
    mounts = [mount("v", "/v"), mount("w", "/sub", subPath="k")]
    env = [{"name": "K", "valueFrom": {"configMapKeyRef": {"name": "v07", "key": "k"}}}]
    pod = container(WAIT, volumeMounts=mounts, env=env)
    node.apply("v07-map.yaml", yaml.safe_dump(config_map("v07", k="one")))
    apply(node, "v07", pod, volumes=volumes)
    ready(node, "v07")
    assert run_in(node, "v07", "stat -Lc %a /v/d/e; cat /v/d/e; readlink /v/d; ls /v") == "400\none..data/d\nd\n"
    with pytest.raises(subprocess.CalledProcessError):
        run_in(node, "v07", "echo x > /v/d/e")
    node.apply("v07-map.yaml", yaml.safe_dump(config_map("v07", k="two", later="here")))
    eventually(lambda: run_in(node, "v07", "cat /v/d/e /v/later") == "twohere", within=10)
    assert run_in(node, "v07", "cat /sub; echo $K") == "oneone\n"
    assert node.pod("v07")["status"]["containerStatuses"][0]["restartCount"] == 0


def test_labels_are_a_file_and_volumes_may_be_nested(node: Node) -> None:
    """V05; a mount below a read-only volume needs its place there."""
    items = [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}, "mode": 0o400},
        {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
    ]
    volumes: list[Json] = [
        {"name": "d", "downwardAPI": {"items": items}},
        {"name": "m", "configMap": {"name": "v05"}},
        {"name": "e", "emptyDir": {}},
    ]
    mounts = [mount("d", "/d"), mount("m", "/d/in/map"), mount("e", "/d/in/map/dir")]
    apply(
        node,
        "v05",
        container(f"echo x > /d/in/map/dir/f; {WAIT}", volumeMounts=mounts),
        metadata={"labels": {"b": "2", "a": "x"}},
        more=(config_map("v05", k="v"),),
        volumes=volumes,
    )
    ready(node, "v05")
    script = "cat /d/labels; echo; stat -Lc %a /d/labels /d/name; readlink /d/labels; cat /d/in/map/k"
    assert run_in(node, "v05", script) == 'a="x"\nb="2"\n400\n644\n..data/labels\nv'
    assert run_in(node, "v05", "readlink /d/..data").startswith("..2")
    assert run_in(node, "v05", "cat /d/in/map/dir/f") == "x\n"


def test_a_missing_key_or_object_of_a_volume_is_told_and_awaited(node: Node) -> None:
    """V07"""
    items = [{"key": "nope", "path": "x"}]
    apply(
        node,
        "v07b",
        container(WAIT, volumeMounts=[mount("v", "/v"), mount("s", "/s")]),
        more=(config_map("v07b", k="1"),),
        volumes=[
            {"name": "v", "configMap": {"name": "v07b", "items": items}},
            {"name": "s", "secret": {"secretName": "v07b-gone"}},
        ],
    )
    wanted = {
        'MountVolume.SetUp failed for volume "v" : configmap "v07b" references non-existent config key: nope'
        " (its keys: k)",
        'MountVolume.SetUp failed for volume "s" : secret "v07b-gone" not found',
    }
    eventually(lambda: wanted <= set(events(node, "v07b", "FailedMount")), within=15)
    assert waiting(node, "v07b") == ("ContainerCreating", "")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "v07b-gone"}, "stringData": {"t": "x"}}
    node.apply("v07b-more.yaml", yaml.safe_dump_all([secret]))
    apply(
        node,
        "v07b",
        container(WAIT, volumeMounts=[mount("v", "/v"), mount("s", "/s")]),
        more=(config_map("v07b", nope="1"),),
        volumes=[
            {"name": "v", "configMap": {"name": "v07b", "items": items}},
            {"name": "s", "secret": {"secretName": "v07b-gone"}},
        ],
    )
    ready(node, "v07b")


def test_sub_paths_stay_in_their_volume(node: Node) -> None:
    """V09"""
    volumes = [{"name": "v", "emptyDir": {}}]
    init = container("ln -s /etc /v/out; ln -s ../../.. /v/up; ln -s in /v/link", "i", volumeMounts=[mount("v", "/v")])
    good = container(f"echo x > /m/f; {WAIT}", volumeMounts=[mount("v", "/m", subPath="a/b"), mount("v", "/v")])
    link = container(WAIT, "link", volumeMounts=[mount("v", "/m", subPath="link/made"), mount("v", "/v")])
    out = container(WAIT, "out", volumeMounts=[mount("v", "/m", subPath="out")])
    up = container(WAIT, "up", volumeMounts=[mount("v", "/m", subPath="up/etc")])
    mkdir = container("mkdir /v/in", "j", volumeMounts=[mount("v", "/v")])
    apply(node, "v09", good, link, out, up, initContainers=[init, mkdir], volumes=volumes)
    eventually(lambda: run_in(node, "v09", "cat /v/a/b/f; ls /v/in", "c") == "x\nmade\n", within=20)

    def refused() -> list[str]:
        states = {s["name"]: s["state"] for s in node.pod("v09")["status"]["containerStatuses"]}
        waits = [states[name]["waiting"] for name in ("out", "up")]
        assert all(wait["reason"] == "CreateContainerConfigError" for wait in waits)
        return [wait["message"] for wait in waits]

    first, second = eventually(refused, within=15)
    assert first == 'failed to prepare subPath for volumeMount "v" of container "out": out: it leads out of the volume'
    assert second.endswith("up/etc: it leads out of the volume")


def test_a_sub_path_with_dots_is_refused_with_its_manifest(node: Node) -> None:
    """V09"""
    apply(
        node,
        "v09dots",
        container(WAIT, volumeMounts=[mount("v", "/v", subPath="../x")]),
        volumes=[{"name": "v", "emptyDir": {}}],
    )

    def fields() -> bool:
        errors = node.json("/podbus/sources")["sources"][0]["errors"]
        return "spec.containers[0].volumeMounts[0].subPath" in [error["field"] for error in errors]

    eventually(fields, within=10)
    assert "v09dots" not in node.pods()


def test_a_misspelt_key_is_told_with_the_keys_that_there_are(node: Node) -> None:
    """Case 06"""
    apply(
        node,
        "c06",
        container(
            "cat /etc/app/settings.ini", volumeMounts=[mount("cfg", "/etc/app/settings.ini", subPath="settings.ini")]
        ),
        more=(config_map("app-settings", **{"setting.ini": "colour=blue"}),),
        volumes=[{"name": "cfg", "configMap": {"name": "app-settings"}}],
        restartPolicy="Never",
    )
    told = 'volume "cfg": ConfigMap "app-settings" has no key "settings.ini" for subPath (its keys: setting.ini)'
    eventually(lambda: waiting(node, "c06") == ("CreateContainerConfigError", told), within=15)
    root = node.data / "pods" / uid_of(node, "c06") / "volumes" / "kubernetes.io~configmap" / "cfg"
    assert not (root / "settings.ini").exists()


def test_volumes_outlive_the_worker(node: Node) -> None:
    """The same tmpfs, the same containers."""
    volumes: list[Json] = [
        {"name": "m", "emptyDir": {"medium": "Memory"}},
        {"name": "c", "configMap": {"name": "life"}},
    ]
    mounts = [mount("m", "/m"), mount("c", "/c")]
    node.apply("life-map.yaml", yaml.safe_dump(config_map("life", k="one")))
    apply(node, "life", container(f"echo x > /m/f; {WAIT}", volumeMounts=mounts), volumes=volumes)
    ready(node, "life")
    before = container_id(node, "life")
    (pid,) = node.pids("podworker")
    os.kill(pid, 9)
    eventually(lambda: node.pids("podworker") not in ([], [pid]), within=20)
    node.apply("life-map.yaml", yaml.safe_dump(config_map("life", k="two")))
    eventually(lambda: run_in(node, "life", "cat /c/k") == "two", within=20)
    assert run_in(node, "life", "cat /m/f") == "x\n"
    assert container_id(node, "life") == before
