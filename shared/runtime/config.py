"""The KubeletConfiguration file (kubelet.config.k8s.io/v1beta1): the fields that have an effect here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shared.kube.duration import format_seconds
from shared.kube.quantity import Quantity, QuantityFormat

API_VERSION = "kubelet.config.k8s.io/v1beta1"
KIND = "KubeletConfiguration"
UNBOUNDED_PULLS = 1000
"""serializeImagePulls: false without maxParallelImagePulls."""


@dataclass(frozen=True, kw_only=True)
class KubeletConfig:
    """Defaults are the newest Kubernetes', but for design 5's (cgroupDriver from the engine, swap only warns)."""

    address: str = "0.0.0.0"  # noqa: S104 - the kubelet's default; TLS and credentials guard it
    """Address that the HTTPS API listens on."""
    port: int = 10250
    """TCP port of the HTTPS API."""
    healthz_bind_address: str = "127.0.0.1"
    healthz_port: int = 10248
    """TCP port of /healthz without TLS; 0 = off."""
    static_pod_path: str = ""
    """Directory or file of manifests."""
    file_check_seconds: float = 20.0
    """fileCheckFrequency: the manifest directory is listed this often besides inotify."""
    sync_seconds: float = 60.0
    """syncFrequency: a pod that nothing happens to is looked at this often, times 1.0..1.5."""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    """Serving pair; "" = made by podbus in <data>/pki."""
    client_ca_file: str = ""
    """authentication.x509.clientCAFile: "" = podbus' own CA."""
    max_pods: int = 110
    pods_per_core: int = 0
    """0 = no limit by cores."""
    cgroup_driver: str = ""
    """"" = the engine's; a set one that differs is refused."""
    cgroup_root: str = "/"
    system_reserved: dict[str, str] = field(default_factory=dict)
    kube_reserved: dict[str, str] = field(default_factory=dict)
    eviction_hard: dict[str, str] = field(
        default_factory=lambda: {
            "memory.available": "100Mi",
            "nodefs.available": "10%",
            "nodefs.inodesFree": "5%",
            "imagefs.available": "15%",
        }
    )
    """Only for the node's allocatable and conditions now."""
    node_status_seconds: float = 10.0
    """nodeStatusUpdateFrequency."""
    max_restart_period_seconds: float = 300.0
    """crashLoopBackOff.maxContainerRestartPeriod, 1..300 s."""
    max_parallel_pulls: int = 1
    """maxParallelImagePulls; 1 = serializeImagePulls; UNBOUNDED_PULLS when neither bounds them."""
    log_max_bytes: int = 10 << 20
    """containerLogMaxSize."""
    log_max_files: int = 5
    """containerLogMaxFiles."""
    cluster_dns: tuple[str, ...] = ()
    cluster_domain: str = ""
    resolv_conf: str = "/etc/resolv.conf"


def config_document(config: KubeletConfig) -> dict[str, Any]:
    """The effective configuration as a KubeletConfiguration v1beta1 document (for /configz): the fields that
    have an effect, durations and quantities as Kubernetes writes them."""
    pulls = config.max_parallel_pulls
    return {
        "kind": KIND,
        "apiVersion": API_VERSION,
        "address": config.address,
        "port": config.port,
        "readOnlyPort": 0,
        "healthzBindAddress": config.healthz_bind_address,
        "healthzPort": config.healthz_port,
        "staticPodPath": config.static_pod_path,
        "fileCheckFrequency": format_seconds(config.file_check_seconds),
        "syncFrequency": format_seconds(config.sync_seconds),
        "tlsCertFile": config.tls_cert_file,
        "tlsPrivateKeyFile": config.tls_private_key_file,
        "authentication": {
            "x509": {"clientCAFile": config.client_ca_file},
            "anonymous": {"enabled": False},
        },
        "maxPods": config.max_pods,
        "podsPerCore": config.pods_per_core,
        "cgroupDriver": config.cgroup_driver,
        "cgroupRoot": config.cgroup_root,
        "systemReserved": dict(config.system_reserved),
        "kubeReserved": dict(config.kube_reserved),
        "evictionHard": dict(config.eviction_hard),
        "nodeStatusUpdateFrequency": format_seconds(config.node_status_seconds),
        "crashLoopBackOff": {"maxContainerRestartPeriod": format_seconds(config.max_restart_period_seconds)},
        "serializeImagePulls": pulls == 1,
        **({} if pulls in (1, UNBOUNDED_PULLS) else {"maxParallelImagePulls": pulls}),
        "containerLogMaxSize": str(Quantity.from_value(config.log_max_bytes, QuantityFormat.BINARY_SI)),
        "containerLogMaxFiles": config.log_max_files,
        "clusterDNS": list(config.cluster_dns),
        "clusterDomain": config.cluster_domain,
        "resolvConf": config.resolv_conf,
        "failSwapOn": False,
    }
