"""The part of v1.Pod that podbus acts on, frozen. Fields that aren't here survive in the raw body on the bus."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shared.kube.scheduling import Affinity, PodOS, Toleration
from shared.kube.security import PodSecurityContext, SecurityContext
from shared.kube.volumes import EnvFromSource, EnvVarSource, Volume, VolumeMount


class _Object(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class ObjectMeta(_Object, frozen=True, kw_only=True):
    name: str
    namespace: str = "default"
    uid: str = ""
    generation: int = 0
    """Counts the changes of the spec, for pods of the API; 0 = not counted."""
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
    value_from: EnvVarSource | None = None


Quantities = Mapping[str, str | int | float]
"""By the name of the resource."""


class ResourceRequirements(_Object, frozen=True, kw_only=True):
    """Quantities as written ("100m", "64Mi"); shared.kube.quantity reads them."""

    limits: dict[str, str | int | float] = {}
    requests: dict[str, str | int | float] = {}


class ContainerResizePolicy(_Object, frozen=True, kw_only=True):
    resource_name: str
    restart_policy: str = "NotRequired"
    """NotRequired or RestartContainer."""


class ExecAction(_Object, frozen=True, kw_only=True):
    command: list[str] = []


class HTTPHeader(_Object, frozen=True, kw_only=True):
    name: str
    value: str = ""


class HTTPGetAction(_Object, frozen=True, kw_only=True):
    port: int | str
    """A number, or the name of one of the container's ports."""
    path: str = "/"
    host: str = ""
    """"" = the pod's address."""
    scheme: str = "HTTP"
    http_headers: list[HTTPHeader] = []


class TCPSocketAction(_Object, frozen=True, kw_only=True):
    port: int | str
    host: str = ""


class GRPCAction(_Object, frozen=True, kw_only=True):
    port: int
    service: str = ""


class SleepAction(_Object, frozen=True, kw_only=True):
    seconds: int


class Handler(_Object, frozen=True, kw_only=True):
    """What a hook does: one of the fields is set."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    sleep: SleepAction | None = None


class Probe(_Object, frozen=True, kw_only=True):
    """One of the four handlers is set. Whole seconds."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    grpc: GRPCAction | None = None
    initial_delay_seconds: int = 0
    timeout_seconds: int = 1
    period_seconds: int = 10
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace_period_seconds: int | None = None


class Lifecycle(_Object, frozen=True, kw_only=True):
    post_start: Handler | None = None
    pre_stop: Handler | None = None
    stop_signal: str = ""


class ExitCodes(_Object, frozen=True, kw_only=True):
    operator: str
    """In or NotIn."""
    values: list[int] = []


class ContainerRestartRule(_Object, frozen=True, kw_only=True):
    action: str
    """Restart or RestartAllContainers."""
    exit_codes: ExitCodes | None = None


class Container(_Object, frozen=True, kw_only=True):
    name: str
    image: str = ""
    command: list[str] = []
    args: list[str] = []
    working_dir: str = ""
    ports: list[ContainerPort] = []
    env: list[EnvVar] = []
    env_from: list[EnvFromSource] = []
    resources: ResourceRequirements = ResourceRequirements()
    resize_policy: list[ContainerResizePolicy] = []
    volume_mounts: list[VolumeMount] = []
    termination_message_path: str = "/dev/termination-log"
    termination_message_policy: str = "File"
    image_pull_policy: str = "IfNotPresent"
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    security_context: SecurityContext = SecurityContext()
    restart_policy: str = ""
    """"" = the pod's. Always on an init container makes it a sidecar."""
    restart_policy_rules: list[ContainerRestartRule] = []
    target_container_name: str = ""
    """Of ephemeral containers only."""


class LocalObjectReference(_Object, frozen=True, kw_only=True):
    name: str = ""


class PodReadinessGate(_Object, frozen=True, kw_only=True):
    condition_type: str


class HostAlias(_Object, frozen=True, kw_only=True):
    ip: str
    hostnames: list[str] = []


class PodDNSConfigOption(_Object, frozen=True, kw_only=True):
    name: str
    value: str | None = None


class PodDNSConfig(_Object, frozen=True, kw_only=True):
    nameservers: list[str] = []
    searches: list[str] = []
    options: list[PodDNSConfigOption] = []


class PodSpec(_Object, frozen=True, kw_only=True):
    containers: list[Container]
    init_containers: list[Container] = []
    ephemeral_containers: list[Container] = []
    volumes: list[Volume] = []
    resources: ResourceRequirements = ResourceRequirements()
    """Of the pod as a whole."""
    overhead: dict[str, str | int | float] = {}
    image_pull_secrets: list[LocalObjectReference] = []
    readiness_gates: list[PodReadinessGate] = []
    restart_policy: str = "Always"
    termination_grace_period_seconds: int = 30
    active_deadline_seconds: int | None = None
    dns_policy: str = "ClusterFirst"
    dns_config: PodDNSConfig = PodDNSConfig()
    node_name: str = ""
    service_account_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    hostname_override: str | None = None
    set_hostname_as_fqdn: bool = msgspec.field(default=False, name="setHostnameAsFQDN")
    host_aliases: list[HostAlias] = []
    host_network: bool = False
    host_pid: bool = msgspec.field(default=False, name="hostPID")
    host_ipc: bool = msgspec.field(default=False, name="hostIPC")
    share_process_namespace: bool = False
    priority: int | None = None
    priority_class_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    os: PodOS | None = None
    security_context: PodSecurityContext = PodSecurityContext()


class GivenCondition(_Object, frozen=True, kw_only=True):
    """A condition as the API has it: another controller's, or what the node itself has written before."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int = 0


class GivenStatus(_Object, frozen=True, kw_only=True):
    """What a pod's status in its source means for the node: readiness gates that others answer, and that it is over."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[GivenCondition] = []


class Pod(_Object, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: PodSpec
    status: GivenStatus = GivenStatus()


def is_sidecar(init_container: Container) -> bool:
    """Whether an init container is one that runs beside the regular ones: it is always restarted."""
    return init_container.restart_policy == "Always"


def container_named(pod: Pod, name: str) -> Container | None:
    """The pod's regular, init or ephemeral container of that name."""
    spec = pod.spec
    every = (*spec.containers, *spec.init_containers, *spec.ephemeral_containers)
    return next((container for container in every if container.name == name), None)


_decoder = msgspec.json.Decoder(Pod)


def decode_pod(body: bytes | msgspec.Raw) -> Pod:
    """Raw JSON of a defaulted, validated v1.Pod -> Pod. Raises msgspec.ValidationError when it isn't one."""
    return _decoder.decode(bytes(body))
