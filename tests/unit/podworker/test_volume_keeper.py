"""What a pod is given, and when: on ports that note what they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from services.podworker.core.config_objects import ConfigObject
from services.podworker.core.container_config import Mount
from services.podworker.core.events_text import PodEvent
from services.podworker.core.model import Termination, Waiting
from services.podworker.core.mounts import MountRequest
from services.podworker.core.volumes import FilesVolume, VolumeFault, VolumeSetup
from services.podworker.handlers.volumes import VolumeKeeper
from services.podworker.ports import ConfigUnavailable, RuntimeRefused
from shared.kube.names import SANDBOX_CONTAINER
from shared.kube.pod import Pod
from shared.kube.references import ConfigKind, ConfigRef
from shared.kube.status import PodStatus
from tests.support.builders import POD_IP, UID, a_container, a_memory, a_node, a_pod, a_runtime, a_sandbox, nothing


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> float:
        return self.seconds

    def boot_seconds(self) -> float:
        return self.seconds

    def boot_id(self) -> str:
        return "boot"


class Node:
    """Volumes and ConfigObjects in memory."""

    def __init__(self) -> None:
        self.objects: dict[ConfigRef, ConfigObject] = {}
        self.away = False
        self.written: dict[str, dict[str, bytes]] = {}
        self.env_files: dict[str, str] = {}
        self.asked: list[str] = []
        self.clock = Clock()
        self.keeper = VolumeKeeper(self, self, a_node(address="192.0.2.9"), self.clock, refresh_seconds=60)

    def put(self, kind: ConfigKind, name: str, **data: str) -> None:
        values = {key: text.encode() for key, text in data.items()}
        self.objects[ConfigRef(kind, name)] = ConfigObject(kind=kind, namespace="default", name=name, data=values)

    async def get(self, uid: str, ref: ConfigRef) -> ConfigObject | None:
        assert uid == UID
        self.asked.append(f"{ref.kind} {ref.name}")
        if self.away:
            raise ConfigUnavailable(f"{ref.name} can't be asked for")
        return self.objects.get(ref)

    async def set_up(self, setups: Sequence[VolumeSetup]) -> list[VolumeFault]:
        for setup in setups:
            self.asked.append(f"set up {setup.name}")
            if isinstance(setup, FilesVolume):
                self.written[setup.path] = {file.path: file.content for file in setup.files}
        return []

    async def are_written(self, paths: Sequence[str]) -> bool:
        return set(paths) <= self.written.keys()

    async def bind(self, container: str, requests: Sequence[MountRequest]) -> list[Mount]:
        return [Mount(source=request.root, target=request.target) for request in requests]

    async def read_file(self, root: str, path: str) -> str | None:
        return self.env_files.get(path)

    async def tear_down(self, uid: str) -> None:
        self.asked.append(f"tear down {uid}")

    @property
    def files(self) -> list[dict[str, bytes]]:
        return list(self.written.values())


@pytest.fixture
def node() -> Node:
    return Node()


def with_volume(volume: dict[str, Any], **container: Any) -> Pod:
    mounts = [{"name": "v", "mountPath": "/v"}]
    return a_pod(a_container(volumeMounts=mounts, **container), volumes=[{"name": "v", **volume}])


def with_map(**container: Any) -> Pod:
    return with_volume({"configMap": {"name": "m"}}, **container)


async def no_addresses() -> tuple[str, ...]:
    raise AssertionError("nobody needs an address")


async def look(node: Node, pod: Pod) -> list[PodEvent]:
    return await node.keeper.look_after(pod, a_memory(pod), a_runtime())


async def test_a_pod_without_volumes_asks_nobody(node: Node) -> None:
    pod = a_pod(a_container(env=[{"name": "A", "value": "1"}]))
    assert await node.keeper.set_up(pod) == ()
    given = await node.keeper.for_container(pod, pod.spec.containers[0], no_addresses)
    assert (given.environment.variables, given.mounts) == ({"A": "1"}, ())
    assert await look(node, pod) == []
    assert node.asked == []


async def test_volumes_are_filled_from_their_objects(node: Node) -> None:
    node.put("ConfigMap", "m", k="v")
    assert await node.keeper.set_up(with_map()) == ()
    assert node.files == [{"k": b"v"}]


async def test_a_source_that_is_away_is_no_missing_object(node: Node) -> None:
    """Nothing is written for it, and what is there stays."""
    node.away = True
    assert await node.keeper.set_up(with_map()) == (VolumeFault("v", "m can't be asked for"),)
    assert node.written == {}
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k", "optional": True}}}]
    pod = a_pod(a_container(env=env))
    with pytest.raises(RuntimeRefused, match="can't be asked for"):
        await node.keeper.for_container(pod, pod.spec.containers[0], no_addresses)


async def test_addresses_are_asked_for_only_by_those_who_need_them(node: Node) -> None:
    async def addresses() -> tuple[str, ...]:
        return (POD_IP,)

    fields = {"P": "status.podIP", "H": "status.hostIP"}
    env = [{"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}} for key, path in fields.items()]
    pod = a_pod(a_container(env=env), a_container("d", env=env[1:]))
    first, second = pod.spec.containers
    assert (await node.keeper.for_container(pod, first, addresses)).environment.variables == {
        "P": POD_IP,
        "H": "192.0.2.9",
    }
    assert (await node.keeper.for_container(pod, second, no_addresses)).environment.variables == {"H": "192.0.2.9"}


async def test_a_missing_object_is_the_containers_trouble(node: Node) -> None:
    pod = a_pod(a_container(envFrom=[{"secretRef": {"name": "s"}}]))
    with pytest.raises(RuntimeRefused) as error:
        await node.keeper.for_container(pod, pod.spec.containers[0], no_addresses)
    assert (error.value.reason, error.value.message) == ("CreateContainerConfigError", 'secret "s" not found')


async def test_a_restart_goes_on_with_the_files_that_are_there(node: Node) -> None:
    """kubelet: a mounted volume that can't be refreshed doesn't hold a container up; one that never was does."""
    pod = with_map()
    faults = await node.keeper.set_up(pod)
    with pytest.raises(RuntimeRefused) as error:
        await node.keeper.still_usable(pod, faults)
    assert error.value.reason == "ContainerCreating"
    node.put("ConfigMap", "m", k="v")
    assert await node.keeper.set_up(pod) == ()
    node.objects.clear()
    await node.keeper.still_usable(pod, await node.keeper.set_up(pod))
    assert node.files == [{"k": b"v"}]


async def test_files_follow_their_objects_now_and_then_and_at_once_when_told(node: Node) -> None:
    pod = with_map()
    node.put("ConfigMap", "m", k="one")
    await node.keeper.set_up(pod)
    node.put("ConfigMap", "m", k="two")
    await look(node, pod)
    assert node.files == [{"k": b"one"}]
    node.keeper.config_changed(UID)
    await look(node, pod)
    assert node.files == [{"k": b"two"}]
    node.put("ConfigMap", "m", k="three")
    node.clock.seconds += 60
    await look(node, pod)
    assert node.files == [{"k": b"three"}]


async def test_a_new_definition_is_a_reason_to_look(node: Node) -> None:
    """Labels of a pod with a fixed uid may change under its downwardAPI volume."""
    pod = with_volume({"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}})
    await node.keeper.set_up(pod)
    edited = replace(pod, metadata=replace(pod.metadata, labels={"a": "b"}))
    await look(node, edited)
    assert node.files == [{"l": b'a="b"'}]


async def test_a_trouble_while_it_runs_is_told_once_until_it_is_another(node: Node) -> None:
    pod = with_map()
    node.put("ConfigMap", "m", k="one")
    await node.keeper.set_up(pod)
    node.objects.clear()
    told = []
    for _ in range(3):
        node.keeper.config_changed(UID)
        told += await look(node, pod)
    assert [event.message for event in told] == ['MountVolume.SetUp failed for volume "v" : configmap "m" not found']
    assert node.files == [{"k": b"one"}]
    node.put("ConfigMap", "m", k="two")
    node.keeper.config_changed(UID)
    assert await look(node, pod) == []
    node.objects.clear()
    node.keeper.config_changed(UID)
    assert len(await look(node, pod)) == 1


async def test_only_a_pod_that_runs_is_kept_up_to_date(node: Node) -> None:
    pod = with_map()
    ending = a_memory(pod, termination=Termination(at=0.0, grace=1, reason="removed"))
    assert await node.keeper.look_after(pod, ending, a_runtime()) == []
    assert await node.keeper.look_after(pod, a_memory(pod), nothing()) == []
    assert await node.keeper.look_after(None, a_memory(), a_runtime()) == []
    assert node.asked == []


async def test_volumes_of_a_pod_that_has_run_to_its_end_go_once(node: Node) -> None:
    pod = with_map()
    memory = a_memory(pod, status=PodStatus(phase="Succeeded", qos_class="BestEffort"))
    ended = a_runtime(sandboxes=(a_sandbox(ready=False),))
    for _ in range(2):
        assert await node.keeper.look_after(pod, memory, ended) == []
    assert node.asked == [f"tear down {UID}"]


def test_what_waits_for_an_object_is_tried_at_once_when_it_changes(node: Node) -> None:
    def waiting(reason: str) -> Waiting:
        return Waiting(reason=reason, message="", at=1.0, retry_at=99.0)

    waits = {
        "c": waiting("CreateContainerConfigError"),
        SANDBOX_CONTAINER: waiting("FailedMount"),
        "d": waiting("CreateContainerError"),
    }
    memory = a_memory(waiting=waits)
    assert node.keeper.with_retries(memory) is memory
    node.keeper.config_changed(UID)
    freed = node.keeper.with_retries(memory)
    assert {name: one.retry_at for name, one in freed.waiting.items()} == {
        "c": None,
        SANDBOX_CONTAINER: None,
        "d": 99.0,
    }
    assert node.keeper.with_retries(memory) is memory


async def test_an_environment_file_is_read_at_each_start(node: Node) -> None:
    """E09"""
    env = [{"name": "K", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "e", "key": "K"}}}]
    pod = a_pod(a_container(env=env), volumes=[{"name": "v", "emptyDir": {}}])
    with pytest.raises(RuntimeRefused, match="no such file"):
        await node.keeper.for_container(pod, pod.spec.containers[0], no_addresses)
    for value in ("one", "two"):
        node.env_files["e"] = f"K='{value}'"
        given = await node.keeper.for_container(pod, pod.spec.containers[0], no_addresses)
        assert given.environment.variables == {"K": value}
