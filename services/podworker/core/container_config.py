"""Pod -> what the engine is asked for: runtime-neutral configurations of the sandbox and of each container.

Pure: paths are computed here, made by the adapters. Sources: lifecycle 7 and 8, and recordings of a real
kubelet in tests/golden.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from services.podworker.core.dns import pod_dns
from services.podworker.core.environment import EnvInputs, Environment, environment
from services.podworker.core.expansion import expand_all
from services.podworker.core.hook_labels import handler_label
from services.podworker.core.host_names import kernel_hostname
from services.podworker.core.hosts_file import HostsFile, pod_hosts_file
from services.podworker.core.images import with_default_tag
from services.podworker.core.namespaces import container_namespaces, sandbox_namespaces
from services.podworker.core.node_facts import (
    DNSConfig,
    NodeFacts,
    container_log_path,
    hosts_path,
    pod_log_directory,
    termination_log_path,
)
from services.podworker.core.pod_limits import PodLimits, pod_limits
from services.podworker.core.pod_resources import bounded
from services.podworker.core.resources import (
    CPU_PERIOD_MICROSECONDS,
    MIN_CPU_SHARES,
    SANDBOX_OOM_SCORE_ADJ,
    cgroup_parent,
    clamped_oom,
    cpu_quota,
    cpu_shares,
    memory_limit,
    oom_score_adj,
)
from services.podworker.core.security_context import (
    ContainerSecurity,
    container_security,
    container_user,
    sandbox_user,
    supplementary_groups,
)
from services.podworker.core.sysctls import normal_sysctl
from shared.kube import names
from shared.kube.pod import Container, ContainerPort, Pod, is_sidecar

SHM_BYTES = 64 * 1024 * 1024
HOSTS_TARGET = "/etc/hosts"
WITHHELD = "the engine's words are withheld: the command holds a Secret's value"


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A bind of a path of the host, which must be there already."""

    source: str
    target: str
    read_only: bool = False
    propagation: str = "rprivate"
    """rprivate, rslave, rshared."""


class ContainerInputs(msgspec.Struct, frozen=True):
    """What was asked for and prepared for one start of one container."""

    environment: Environment
    mounts: tuple[Mount, ...] = ()
    devices: tuple[str, ...] = ()


class PortMapping(msgspec.Struct, frozen=True, kw_only=True):
    """A published port; only ports with a hostPort are."""

    container_port: int
    host_port: int
    host_ip: str = ""
    protocol: str = "TCP"


class SandboxConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The container that holds the pod's network and IPC namespaces."""

    name: str
    """The engine's name: `k8s_POD_<pod>_<namespace>_<uid>_<attempt>`."""
    uid: str
    namespace: str
    pod: str
    attempt: int
    image: str
    labels: dict[str, str]
    hostname: str
    cgroup_parent: str
    oom_score_adj: int
    cpu_shares: int = MIN_CPU_SHARES
    ports: tuple[PortMapping, ...] = ()
    dns: DNSConfig = DNSConfig()
    network_mode: str = "default"
    """"default" (the engine's bridge), "host", or the name of a network."""
    ipc_mode: str = "shareable"
    pid_mode: str = ""
    uts_mode: str = ""
    user: str = ""
    """"" = the image's."""
    groups: tuple[str, ...] = ()
    """Supplementary ones."""
    security_opts: tuple[str, ...] = ("no-new-privileges",)
    shm_bytes: int = SHM_BYTES
    log_directory: str
    """Of the pod; made 0755 before the first container."""
    limits: PodLimits = PodLimits()
    """Of the pod's own cgroup."""
    sysctls: dict[str, str] = {}
    """Of the pod's network and IPC namespaces; admission has looked at them."""
    log_max_bytes: int
    log_max_files: int


class ContainerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of one container of the pod's spec."""

    name: str
    """The engine's name: `k8s_<container>_<pod>_<namespace>_<uid>_<attempt>`."""
    container: str
    """The name in the spec."""
    uid: str
    namespace: str
    pod: str
    attempt: int
    sandbox_id: str
    image: str
    """The reference with its tag."""
    command: tuple[str, ...] = ()
    """The entry point; empty = the image's."""
    args: tuple[str, ...] = ()
    """Empty = the image's, unless there is a command."""
    env: tuple[str, ...] = ()
    """`NAME=value`."""
    working_dir: str = ""
    """"" = the image's."""
    labels: dict[str, str]
    user: str
    """`user[:group]`, never empty."""
    groups: tuple[str, ...] = ()
    """Supplementary ones."""
    tty: bool = False
    stdin: bool = False
    stdin_once: bool = False
    devices: tuple[str, ...] = ()
    """Paths, and ids as `driver:id`."""
    cpu_shares: int
    cpu_period: int = CPU_PERIOD_MICROSECONDS
    """Microseconds."""
    cpu_quota: int = 0
    """Microseconds per period; 0 = unlimited."""
    memory: int = 0
    """Bytes, for memory and for memory with swap; 0 = unlimited."""
    oom_score_adj: int
    cgroup_parent: str
    pod_limits: PodLimits = PodLimits()
    """Of the pod's own cgroup, which may be older than the definition: resources change without a new sandbox."""
    network_mode: str
    ipc_mode: str
    pid_mode: str = ""
    uts_mode: str = ""
    mounts: tuple[Mount, ...] = ()
    security: ContainerSecurity = ContainerSecurity()
    shm_bytes: int = SHM_BYTES
    stop_signal: str = ""
    """"" = the image's, else SIGTERM."""
    log_path: str
    """Absolute; becomes a link to the engine's log file."""
    log_max_bytes: int
    log_max_files: int
    termination_log: str
    """The host's file behind terminationMessagePath: to be made empty, mode 0666."""
    hosts_file: str
    """The host's file behind /etc/hosts."""
    hosts: HostsFile = HostsFile()
    """What is in it, but for the pod's addresses."""


class ContainerUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """Other resources for one that runs."""

    cpu_shares: int
    cpu_period: int = CPU_PERIOD_MICROSECONDS
    cpu_quota: int = 0
    memory: int = 0
    cgroup_parent: str
    pod_limits: PodLimits


def container_hash(container: Container, source: str) -> str:
    """A fingerprint of the definition, kept in a label: when it differs, the running container is replaced.

    API pods: name and image only, as kubelet 1.36. File and URL pods (with a fixed uid): any field but
    resources. The canonical form leaves out every field that has its default (and an empty security context), so that
    a field added by a later version changes no hash; a test pins it.
    """
    if source == "api":
        fields: object = {"image": container.image, "name": container.name}
    else:
        given = msgspec.to_builtins(container).items()
        fields = {k: v for k, v in given if k not in ("resources", "resizePolicy") and (v or k != "securityContext")}
    return blake2b(msgspec.json.encode(fields, order="sorted"), digest_size=8).hexdigest()


def sandbox_config(pod: Pod, node: NodeFacts, attempt: int) -> SandboxConfig:
    """The sandbox of a pod whose body has its UID."""
    meta = pod.metadata
    name = names.ContainerName(names.SANDBOX_CONTAINER, meta.name, meta.namespace, meta.uid, attempt)
    spaces = sandbox_namespaces(pod, node)
    return SandboxConfig(
        name=str(name),
        uid=meta.uid,
        namespace=meta.namespace,
        pod=meta.name,
        attempt=attempt,
        image=node.sandbox_image,
        labels=_sandbox_labels(pod, node),
        hostname="" if pod.spec.host_network else kernel_hostname(pod, node),
        cgroup_parent=cgroup_parent(pod, node),
        oom_score_adj=clamped_oom(SANDBOX_OOM_SCORE_ADJ, node),
        groups=supplementary_groups(pod),
        ports=tuple(_mapping(port) for c in pod.spec.containers for port in c.ports if port.host_port),
        dns=pod_dns(pod, node),
        network_mode=spaces.network,
        ipc_mode=spaces.ipc,
        pid_mode=spaces.pid,
        uts_mode=spaces.uts,
        user=sandbox_user(pod),
        log_directory=pod_log_directory(node, meta.namespace, meta.name, meta.uid),
        limits=pod_limits(pod, node.pod_pids_limit),
        sysctls={normal_sysctl(one.name): one.value for one in pod.spec.security_context.sysctls},
        log_max_bytes=node.log_max_bytes,
        log_max_files=node.log_max_files,
    )


def container_config(
    pod: Pod,
    container: Container,
    node: NodeFacts,
    attempt: int,
    *,
    sandbox_id: str,
    source: str,
    image_user: str = "",
    inputs: ContainerInputs | None = None,
) -> ContainerConfig:
    """One attempt of a container. `source` decides the hash; `image_user` is the image's own USER; `inputs` None =
    the pod refers to nothing that must be asked for. Raises ConfigError."""
    meta, sized = pod.metadata, bounded(pod, container)
    given = inputs or ContainerInputs(environment(pod, container, node, EnvInputs()))
    variables = given.environment.variables
    spaces = container_namespaces(pod, sandbox_id)
    termination_log = termination_log_path(node, meta.uid, container.name, attempt)
    hosts = hosts_path(node, meta.uid)
    log_path = container_log_path(node, meta.namespace, meta.name, meta.uid, container.name, attempt)
    name = names.ContainerName(container.name, meta.name, meta.namespace, meta.uid, attempt)
    return ContainerConfig(
        name=str(name),
        container=container.name,
        uid=meta.uid,
        namespace=meta.namespace,
        pod=meta.name,
        attempt=attempt,
        sandbox_id=sandbox_id,
        image=with_default_tag(container.image),
        command=expand_all(container.command, variables),
        args=expand_all(container.args, variables),
        env=tuple(f"{key}={text}" for key, text in variables.items()),
        working_dir=container.working_dir,
        labels={
            **_container_labels(pod, container, node, attempt, sandbox_id, log_path, source),
            **_privacy_labels(container, given.environment),
        },
        user=container_user(pod, container, image_user),
        groups=supplementary_groups(pod),
        tty=container.tty,
        stdin=container.stdin,
        stdin_once=container.stdin_once,
        devices=given.devices,
        cpu_shares=cpu_shares(sized),
        cpu_quota=cpu_quota(sized),
        memory=memory_limit(sized),
        oom_score_adj=oom_score_adj(pod, container, node),
        cgroup_parent=cgroup_parent(pod, node),
        pod_limits=pod_limits(pod, node.pod_pids_limit),
        network_mode=spaces.network,
        ipc_mode=spaces.ipc,
        pid_mode=spaces.pid,
        uts_mode=spaces.uts,
        security=container_security(pod, container, node),
        mounts=_mounts(container, termination_log, hosts, given.mounts),
        stop_signal=container.lifecycle.stop_signal if container.lifecycle is not None else "",
        log_path=log_path,
        log_max_bytes=node.log_max_bytes,
        log_max_files=node.log_max_files,
        termination_log=termination_log,
        hosts_file=hosts,
        hosts=pod_hosts_file(pod, node),
    )


def _privacy_labels(container: Container, given: Environment) -> dict[str, str]:
    """What must not be told of the container; names only."""
    labels = {names.LABEL_PRIVATE_COMMAND: "true"} if has_private_command(container, given) else {}
    if given.private:
        labels[names.LABEL_PRIVATE_VARIABLES] = msgspec.json.encode(sorted(given.private)).decode()
    return labels


def has_private_command(container: Container, given: Environment) -> bool:
    """Whether `$(NAME)` writes a Secret's value into the command, which the engine quotes when it can't start it."""
    return given.spelt_out_in([*container.command, *container.args])


def _mounts(container: Container, termination_log: str, hosts: str, volumes: tuple[Mount, ...]) -> tuple[Mount, ...]:
    mounts = list(volumes)
    if container.termination_message_path:
        mounts.append(Mount(source=termination_log, target=container.termination_message_path))
    if all(mount.target != HOSTS_TARGET for mount in volumes):
        mounts.append(Mount(source=hosts, target=HOSTS_TARGET))
    return tuple(mounts)


def _mapping(port: ContainerPort) -> PortMapping:
    return PortMapping(
        container_port=port.container_port,
        host_port=port.host_port,
        host_ip=port.host_ip,
        protocol=port.protocol,
    )


def _identity(pod: Pod, node: NodeFacts) -> dict[str, str]:
    return {
        names.LABEL_POD_NAME: pod.metadata.name,
        names.LABEL_POD_NAMESPACE: pod.metadata.namespace,
        names.LABEL_POD_UID: pod.metadata.uid,
        names.ANNOTATION_GRACE: str(pod.spec.termination_grace_period_seconds),
        names.LABEL_INSTANCE: node.instance,
    }


def _sandbox_labels(pod: Pod, node: NodeFacts) -> dict[str, str]:
    """The pod's own labels and annotations first, so that they can't hide ours."""
    return {
        **pod.metadata.labels,
        **{f"annotation.{key}": text for key, text in pod.metadata.annotations.items()},
        **_identity(pod, node),
        names.LABEL_CONTAINER_NAME: names.SANDBOX_CONTAINER,
        names.LABEL_DOCKER_TYPE: names.TYPE_SANDBOX,
    }


def _container_labels(
    pod: Pod, container: Container, node: NodeFacts, attempt: int, sandbox_id: str, log_path: str, source: str
) -> dict[str, str]:
    labels = {
        **_identity(pod, node),
        names.LABEL_CONTAINER_NAME: container.name,
        names.LABEL_DOCKER_TYPE: names.TYPE_CONTAINER,
        names.LABEL_SANDBOX_ID: sandbox_id,
        names.LABEL_LOG_PATH: log_path,
        names.ANNOTATION_HASH: container_hash(container, source),
        names.ANNOTATION_RESTART_COUNT: str(attempt),
        names.ANNOTATION_TERMINATION_PATH: container.termination_message_path,
        names.ANNOTATION_TERMINATION_POLICY: container.termination_message_policy,
    }
    if container.ports:
        labels[names.ANNOTATION_PORTS] = msgspec.json.encode(container.ports).decode()
    if container.lifecycle is not None and container.lifecycle.pre_stop is not None:
        labels[names.ANNOTATION_PRE_STOP] = handler_label(container.lifecycle.pre_stop)
    sidecar = next((i for i, c in enumerate(pod.spec.init_containers) if c.name == container.name), None)
    if sidecar is not None and is_sidecar(container):
        labels[names.LABEL_SIDECAR] = str(sidecar)
    return labels
