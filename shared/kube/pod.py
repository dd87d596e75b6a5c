"""The part of v1.Pod that podbus acts on, frozen. Fields that aren't here survive in the raw body on the bus."""

from __future__ import annotations

import msgspec


class _Object(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class ObjectMeta(_Object, frozen=True, kw_only=True):
    name: str
    namespace: str = "default"
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ContainerPort(_Object, frozen=True, kw_only=True):
    container_port: int
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"
    name: str = ""


class EnvVar(_Object, frozen=True, kw_only=True):
    name: str
    value: str = ""


class ResourceRequirements(_Object, frozen=True, kw_only=True):
    """Quantities as written ("100m", "64Mi"); shared.kube.quantity reads them."""

    limits: dict[str, str | int | float] = {}
    requests: dict[str, str | int | float] = {}


class Container(_Object, frozen=True, kw_only=True):
    name: str
    image: str = ""
    command: list[str] = []
    args: list[str] = []
    working_dir: str = ""
    ports: list[ContainerPort] = []
    env: list[EnvVar] = []
    resources: ResourceRequirements = ResourceRequirements()
    termination_message_path: str = "/dev/termination-log"
    termination_message_policy: str = "File"
    image_pull_policy: str = "IfNotPresent"
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


class PodSpec(_Object, frozen=True, kw_only=True):
    containers: list[Container]
    init_containers: list[Container] = []
    restart_policy: str = "Always"
    termination_grace_period_seconds: int = 30
    active_deadline_seconds: int | None = None
    dns_policy: str = "ClusterFirst"
    node_name: str = ""
    hostname: str = ""
    host_network: bool = False
    priority_class_name: str = ""


class Pod(_Object, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: PodSpec


_decoder = msgspec.json.Decoder(Pod)


def decode_pod(body: bytes | msgspec.Raw) -> Pod:
    """Raw JSON of a defaulted, validated v1.Pod -> Pod. Raises msgspec.ValidationError when it isn't one."""
    return _decoder.decode(bytes(body))
