"""Extended resources: what the operator lists, what a pod is given of it, and what each container has."""

from __future__ import annotations

from typing import Any

import pytest

from services.podworker.adapters.docker_translate import container_payload
from services.podworker.core.container_config import ContainerInputs, container_config
from services.podworker.core.devices import devices_of, free_devices
from services.podworker.core.environment import EnvInputs, environment
from shared.kube.devices import Devices, parse_devices
from shared.kube.pod import Pod
from tests.support.builders import a_container, a_node, a_pod

NAME = "example.com/tty"
DEVICES: Devices = {NAME: ("/dev/a", "/dev/b", "/dev/b", "/dev/c")}


def asking(amount: int, name: str, **fields: Any) -> dict[str, Any]:
    amounts = {NAME: amount} if amount else {}
    return a_container(name, resources={"requests": amounts, "limits": amounts}, **fields)


def test_the_setting_lists_units_and_shares() -> None:
    text = "example.com/fuse=/dev/fuse*3  nvidia.com/gpu=nvidia:0,nvidia:1"
    assert parse_devices(text) == (
        {"example.com/fuse": ("/dev/fuse",) * 3, "nvidia.com/gpu": ("nvidia:0", "nvidia:1")},
        [],
    )


@pytest.mark.parametrize(
    "text",
    [
        "cpu=/dev/a",
        "example.com/a",
        "example.com/a=",
        "example.com/a=a",
        "example.com/a=/etc/x",
        "kubernetes.io/a=/dev/a",
        "example.com/a=/dev/a*0",
        "example.com/a=/dev/a example.com/a=/dev/b",
    ],
)
def test_a_wrong_list_is_told(text: str) -> None:
    assert len(parse_devices(text)[1]) == 1


def test_a_pod_gets_what_no_other_holds_as_often_as_it_may_be_shared() -> None:
    taken = [{NAME: ("/dev/a",)}, {NAME: ("/dev/b",)}]
    assert free_devices({NAME: 2, "cpu": 1}, DEVICES, taken) == {NAME: ("/dev/b", "/dev/c")}
    assert free_devices({NAME: 1}, DEVICES, []) == {NAME: ("/dev/a",)}


def parts(pod: Pod, *held: str) -> dict[str, tuple[str, ...]]:
    every = (*pod.spec.init_containers, *pod.spec.containers)
    return {container.name: devices_of(pod, container, {NAME: held}) for container in every}


def test_containers_that_run_together_share_no_device() -> None:
    init = [asking(1, "side", restartPolicy="Always"), asking(2, "init")]
    pod = a_pod(asking(1, "x"), asking(0, "y"), asking(1, "z"), initContainers=init)
    assert parts(pod, "1", "2", "3") == {"side": ("1",), "init": ("2", "3"), "x": ("2",), "y": (), "z": ("3",)}


def host_config(*units: str) -> dict[str, Any]:
    pod = a_pod()
    container, node = pod.spec.containers[0], a_node()
    inputs = ContainerInputs(environment(pod, container, node, EnvInputs()), devices=units)
    config = container_config(pod, container, node, 0, sandbox_id="s", source="file", inputs=inputs)
    host: dict[str, Any] = container_payload(config, 0)["HostConfig"]
    return host


def test_the_engine_is_asked_for_paths_and_for_ids_of_a_driver() -> None:
    assert "Devices" not in host_config() and "DeviceRequests" not in host_config()
    found = host_config("/dev/fuse", "/dev/fuse", "nvidia:0", "nvidia:1")
    assert found["Devices"] == [{"PathOnHost": "/dev/fuse", "PathInContainer": "/dev/fuse", "CgroupPermissions": "rwm"}]
    assert found["DeviceRequests"] == [{"Driver": "nvidia", "DeviceIDs": ["0", "1"], "Capabilities": [["gpu"]]}]
