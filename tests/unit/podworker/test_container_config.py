"""Pod -> what the engine is asked for, against recordings of a real kubelet and rule by rule."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from services.podworker.core.container_config import (
    ContainerConfig,
    ContainerInputs,
    Mount,
    SandboxConfig,
    container_config,
    container_hash,
    sandbox_config,
)
from services.podworker.core.environment import EnvInputs, environment
from services.podworker.core.node_facts import NodeFacts
from shared.kube.pod import Container, EnvVar, Pod, ResourceRequirements
from tests.support.builders import UID, a_container, a_node, a_pod, golden_pod
from tests.support.golden_form import golden

CASES = [
    "a01",
    "a02",
    "a03",
    "a04",
    "a05",
    "a06",
    "a07",
    "a08",
    "a10",
    "a12",
    "a13",
    "a14",
    "a15",
    "a17",
    "a19",
    "a22",
    "a25",
    "a30",
    "a32",
]
SANDBOX_ID = "f" * 64
# What the recording's images bring, which Docker adds to what it was asked for.
IMAGES: dict[str, dict[str, Any]] = {
    "busybox:1.36": {"Entrypoint": None, "Cmd": ["sh"]},
    "entry:1": {"Entrypoint": ["/bin/echo", "entry"], "Cmd": ["cmd"]},
}


def the_config(pod: Pod, node: NodeFacts | None = None, index: int = 0, **fields: Any) -> ContainerConfig:
    arguments: dict[str, Any] = {"sandbox_id": SANDBOX_ID, "source": "file", **fields}
    return container_config(pod, pod.spec.containers[index], node or a_node(), 0, **arguments)


@pytest.mark.parametrize("case", CASES)
def test_docker_is_asked_for_what_the_kubelet_asked_for(case: str) -> None:
    """E01 is a32."""
    expected = golden(case)["containers"]
    pod = golden_pod(case)
    node = a_node()
    shown = {"POD": _sandbox_form(sandbox_config(pod, node, 0))}
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if container.name in expected:
            mounts = tuple(Mount(source="/v", target=mount.mount_path) for mount in container.volume_mounts)
            inputs = ContainerInputs(environment(pod, container, node, EnvInputs()), mounts)
            config = container_config(pod, container, node, 0, sandbox_id=SANDBOX_ID, source="file", inputs=inputs)
            shown[container.name] = _container_form(config)
    for form in expected.values():
        del form["ExitCode"]
        # The engine's own word for a privileged container.
        form["SecurityOpt"] = [option for option in form["SecurityOpt"] if option != "label=disable"]
        # The recording kubelet asked for 0 throughout; test_resources holds the rule.
        del form["OomScoreAdj"]
    assert shown == expected


def _form(**asked: Any) -> dict[str, Any]:
    unset = "CapAdd CapDrop Privileged ReadonlyRootfs GroupAdd PortBindings Sysctls Dns DnsSearch DnsOptions"
    return {**dict.fromkeys([*unset.split(), "ExtraHosts"]), "PidMode": "", "Env": [], **asked}


def _sandbox_form(config: SandboxConfig) -> dict[str, Any]:
    assert config.image == "podbus/pause:3.10"
    bindings = {
        f"{port.container_port}/{port.protocol.lower()}": [{"HostIp": port.host_ip, "HostPort": str(port.host_port)}]
        for port in config.ports
    }
    return _form(
        PortBindings=bindings or None,
        Sysctls=config.sysctls or None,
        GroupAdd=list(config.groups) or None,
        PidMode=config.pid_mode,
        Entrypoint=["/pause"],
        Cmd=None,
        User=config.user or "65535:65535",
        WorkingDir="",
        Hostname=config.hostname.replace(config.pod, "<pod>"),
        Tty=False,
        OpenStdin=False,
        StdinOnce=False,
        CpuShares=config.cpu_shares,
        CpuQuota=None,
        CpuPeriod=None,
        Memory=None,
        MemorySwap=None,
        SecurityOpt=list(config.security_opts),
        ShmSize=config.shm_bytes,
        NetworkMode=config.network_mode,
        IpcMode=config.ipc_mode,
        CgroupParent=config.cgroup_parent.replace(config.uid, "<uid>"),
        Mounts=[],
        Labels=sorted(label for label in config.labels if label.startswith("io.kubernetes.")),
    )


def _container_form(config: ContainerConfig) -> dict[str, Any]:
    image = IMAGES[config.image]
    image_cmd = None if config.command else image["Cmd"]
    return _form(
        Entrypoint=list(config.command) or image["Entrypoint"],
        Cmd=list(config.args) or image_cmd,
        User=config.user,
        WorkingDir=config.working_dir,
        Hostname="",
        Tty=config.tty,
        OpenStdin=config.stdin,
        StdinOnce=config.stdin_once,
        CpuShares=config.cpu_shares,
        CpuQuota=config.cpu_quota or None,
        CpuPeriod=config.cpu_period,
        Memory=config.memory or None,
        MemorySwap=config.memory or None,
        SecurityOpt=list(config.security.options),
        Privileged=config.security.privileged or None,
        ReadonlyRootfs=config.security.read_only_root or None,
        CapAdd=list(config.security.cap_add) or None,
        CapDrop=list(config.security.cap_drop) or None,
        GroupAdd=list(config.groups) or None,
        PidMode=config.pid_mode.replace(SANDBOX_ID, "<sandbox>"),
        ShmSize=config.shm_bytes,
        NetworkMode=config.network_mode.replace(SANDBOX_ID, "<sandbox>"),
        IpcMode=config.ipc_mode.replace(SANDBOX_ID, "<sandbox>"),
        CgroupParent=config.cgroup_parent.replace(config.uid, "<uid>"),
        Mounts=sorted([m.target, "ro" if m.read_only else "rw"] for m in config.mounts),
        Labels=sorted(label for label in config.labels if label.startswith("io.kubernetes.")),
    )


def test_names_and_labels_are_dockershims_and_carry_the_instance() -> None:
    pod = a_pod(a_container(ports=[{"containerPort": 80}]), terminationGracePeriodSeconds=7)
    config = the_config(pod)
    assert config.name == f"k8s_c_p-node1_default_{UID}_0"
    assert config.labels == {
        "annotation.io.kubernetes.container.hash": container_hash(pod.spec.containers[0], "file"),
        "annotation.io.kubernetes.container.ports": '[{"containerPort":80}]',
        "annotation.io.kubernetes.container.restartCount": "0",
        "annotation.io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
        "annotation.io.kubernetes.container.terminationMessagePolicy": "File",
        "annotation.io.kubernetes.pod.terminationGracePeriod": "7",
        "io.kubernetes.container.logpath": f"/var/log/pods/default_p-node1_{UID}/c/0.log",
        "io.kubernetes.container.name": "c",
        "io.kubernetes.docker.type": "container",
        "io.kubernetes.pod.name": "p-node1",
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": UID,
        "io.kubernetes.sandbox.id": SANDBOX_ID,
        "podbus.instance": "test",
    }


def test_a_pods_own_labels_and_annotations_cannot_hide_ours() -> None:
    pod = msgspec.convert(
        {
            "metadata": {
                "name": "p",
                "uid": UID,
                "labels": {"podbus.instance": "other", "app": "a", "io.kubernetes.pod.uid": "x"},
                "annotations": {"io.kubernetes.pod.terminationGracePeriod": "999", "note": "n"},
            },
            "spec": {"containers": [a_container()]},
        },
        Pod,
    )
    labels = sandbox_config(pod, a_node(), 3).labels
    assert labels["podbus.instance"] == "test"
    assert labels["io.kubernetes.pod.uid"] == UID
    assert labels["annotation.io.kubernetes.pod.terminationGracePeriod"] == "30"
    assert (labels["app"], labels["annotation.note"]) == ("a", "n")


def test_only_ports_with_a_host_port_are_published_on_the_sandbox() -> None:
    ports = [
        {"containerPort": 80},
        {"containerPort": 53, "hostPort": 1053, "protocol": "UDP", "hostIP": "127.0.0.1"},
    ]
    config = sandbox_config(a_pod(a_container(ports=ports)), a_node(), 0)
    assert [(p.container_port, p.host_port, p.host_ip, p.protocol) for p in config.ports] == [
        (53, 1053, "127.0.0.1", "UDP")
    ]


def test_the_sandbox_joins_the_network_that_the_node_names() -> None:
    assert sandbox_config(a_pod(), a_node(network="podnet"), 0).network_mode == "podnet"
    assert sandbox_config(a_pod(), a_node(), 0).network_mode == "default"


def test_files_of_each_attempt_are_its_own() -> None:
    pod = a_pod()
    config = container_config(pod, pod.spec.containers[0], a_node(), 2, sandbox_id=SANDBOX_ID, source="file")
    assert config.termination_log == f"/data/pods/{UID}/containers/c/termination-2"
    assert config.hosts_file == f"/data/pods/{UID}/etc-hosts"
    assert config.log_path == f"/var/log/pods/default_p-node1_{UID}/c/2.log"
    assert [(m.source, m.target, m.read_only) for m in config.mounts] == [
        (config.termination_log, "/dev/termination-log", False),
        (config.hosts_file, "/etc/hosts", False),
    ]


def test_commands_arguments_and_values_are_expanded() -> None:
    env = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)-$(C)"},
        {"name": "C", "value": "$$(A)"},
        {"name": "A", "value": "$(A)2"},
    ]
    config = the_config(a_pod(a_container(env=env, command=["echo", "$(B)"], args=["$(A)", "$(X)"])))
    assert config.env == ("A=12", "B=1-$(C)", "C=$(A)")
    assert (config.command, config.args) == (("echo", "1-$(C)"), ("12", "$(X)"))


def test_an_image_without_a_tag_is_asked_for_as_latest() -> None:
    assert the_config(a_pod(a_container(image="busybox"))).image == "busybox:latest"


PINNED = Container(
    name="c",
    image="busybox:1.36",
    command=["sleep", "1"],
    env=[EnvVar(name="A", value="b")],
    resources=ResourceRequirements(limits={"cpu": "1"}),
)


def test_the_hash_of_a_definition_never_changes_between_versions() -> None:
    """An upgrade of podbus that changes these values restarts every container on the node."""
    assert container_hash(PINNED, "file") == "724c370c9911f6d7"
    assert container_hash(PINNED, "http") == "724c370c9911f6d7"
    assert container_hash(PINNED, "api") == "70b81752d4fdf6c4"


CONTEXTS: list[dict[str, Any]] = [{}, {"securityContext": {}}, {"securityContext": {"runAsUser": 0}}]


def test_an_empty_security_context_is_none_for_the_hash() -> None:
    bare = {"name": "c", "image": "busybox:1.36"}
    without, empty, own = (container_hash(msgspec.convert({**bare, **more}, Container), "file") for more in CONTEXTS)
    assert without == empty != own


def test_resources_change_no_hash_and_other_fields_only_that_of_static_pods() -> None:
    resized = msgspec.structs.replace(PINNED, resources=ResourceRequirements(limits={"cpu": "2"}))
    renamed = msgspec.structs.replace(PINNED, env=[EnvVar(name="A", value="c")])
    upgraded = msgspec.structs.replace(PINNED, image="busybox:1.37")
    assert container_hash(resized, "file") == container_hash(PINNED, "file")
    assert container_hash(renamed, "file") != container_hash(PINNED, "file")
    assert container_hash(renamed, "api") == container_hash(PINNED, "api")
    assert container_hash(upgraded, "api") != container_hash(PINNED, "api")
