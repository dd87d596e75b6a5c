"""The KubeletConfiguration file (kubelet.config.k8s.io/v1beta1): the fields that have an effect here."""

from __future__ import annotations

import re
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
    """Defaults are the newest Kubernetes', but for two: cgroupDriver comes from the engine, and swap only warns.

    Each docstring says: key in the file: effect.
    """

    address: str = "0.0.0.0"  # noqa: S104 - the kubelet's default; TLS and credentials guard it
    """address: IP address that the HTTPS API listens on."""
    port: int = 10250
    """port: TCP port of the HTTPS API, unless PODBUS_PORT or --port says another."""
    read_only_port: int = 0
    """readOnlyPort: TCP port of /pods, /stats, /metrics and /healthz without TLS and credentials, on the same address;
    0 = off."""
    debugging_handlers: bool = True
    """enableDebuggingHandlers: whether logs, exec, attach, port-forward and the like are served at all."""
    streaming_idle_seconds: float = 14400.0
    """streamingConnectionIdleTimeout: an exec, attach or port-forward without a byte in either direction ends after so
    long."""
    system_log_handler: bool = True
    """enableSystemLogHandler: whether /logs/ serves the files below /var/log."""
    debug_flags_handler: bool = True
    """enableDebugFlagsHandler: whether PUT /debug/flags/v may change how much the API logs."""
    healthz_bind_address: str = "127.0.0.1"
    """healthzBindAddress: IP address of /healthz without TLS and credentials."""
    healthz_port: int = 10248
    """healthzPort: TCP port of /healthz without TLS and credentials; 0 = off."""
    static_pod_path: str = ""
    """staticPodPath: directory or file of manifests, unless PODBUS_MANIFESTS or --manifests says another."""
    file_check_seconds: float = 20.0
    """fileCheckFrequency: the manifest directory is listed this often besides inotify; 10ms to 24h."""
    static_pod_url: str = ""
    """staticPodURL: http or https URL of manifests, asked besides the manifest directory; "" = none."""
    static_pod_url_header: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """staticPodURLHeader: headers sent to staticPodURL, each with a list of values; never shown."""
    http_check_seconds: float = 20.0
    """httpCheckFrequency: staticPodURL is asked this often; 10ms to 24h."""
    sync_seconds: float = 60.0
    """syncFrequency: a pod that nothing happens to is looked at this often, times 1.0 to 1.5; 10ms to 24h."""
    tls_cert_file: str = ""
    """tlsCertFile: the API's certificate; "" = made by podbus in <data>/pki."""
    tls_private_key_file: str = ""
    """tlsPrivateKeyFile: the key that belongs to tlsCertFile."""
    client_ca_file: str = ""
    """authentication.x509.clientCAFile: who signs clients' certificates; "" = podbus' own CA."""
    tls_min_version: str = "VersionTLS12"
    """tlsMinVersion: the oldest TLS that the API speaks: VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13."""
    tls_cipher_suites: tuple[str, ...] = ()
    """tlsCipherSuites: Go's names of the suites for TLS 1.2; none = ECDHE with AES-GCM or ChaCha20. TLS 1.3 has its
    own."""
    anonymous: bool = False
    """authentication.anonymous.enabled: who shows no credentials is system:anonymous; what it may, the policy or the
    API server says."""
    token_webhook: bool = True
    """authentication.webhook.enabled: with a kubeconfig the API server is asked about tokens that aren't the node's."""
    token_webhook_seconds: float = 120.0
    """authentication.webhook.cacheTTL: its answers count for so long."""
    authorization_mode: str = "Webhook"
    """authorization.mode: Webhook = roles, policy and, with a kubeconfig, the API server decide; AlwaysAllow = whoever
    is known may do everything."""
    authorized_seconds: float = 300.0
    """authorization.webhook.cacheAuthorizedTTL: the API server's yes counts for so long."""
    unauthorized_seconds: float = 30.0
    """authorization.webhook.cacheUnauthorizedTTL: its no."""
    max_pods: int = 110
    """maxPods: so many pods are admitted; one more is refused."""
    pods_per_core: int = 0
    """podsPerCore: the same per core, if that is less; 0 = no limit by cores."""
    cgroup_driver: str = ""
    """cgroupDriver: cgroupfs or systemd; "" = the engine's; one that differs from the engine's is refused."""
    cgroup_root: str = "/"
    """cgroupRoot: the control group that kubepods is made below."""
    system_reserved: dict[str, str] = field(default_factory=dict)
    """systemReserved: cpu, memory, ephemeral-storage, pid that pods don't get; nothing enforces it on the system."""
    kube_reserved: dict[str, str] = field(default_factory=dict)
    """kubeReserved: the same for podbus and the engine."""
    eviction_hard: dict[str, str] = field(
        default_factory=lambda: {
            "memory.available": "100Mi",
            "nodefs.available": "10%",
            "nodefs.inodesFree": "5%",
            "imagefs.available": "15%",
        }
    )
    """evictionHard: quantity or percentage per signal; counts for the node's allocatable and conditions only: no pod is
    evicted yet."""
    node_status_seconds: float = 10.0
    """nodeStatusUpdateFrequency: the node's status is computed anew this often; 10ms to 24h."""
    node_report_seconds: float = 300.0
    """nodeStatusReportFrequency: an unchanged status of the node is sent to the API server this often; the same as
    nodeStatusUpdateFrequency when only that is there; 10ms to 24h."""
    node_lease_duration: int = 40
    """nodeLeaseDurationSeconds: duration in seconds of the node's Lease, which is renewed four times in it."""
    node_max_images: int = 50
    """nodeStatusMaxImages: so many images are told in the node's status, the largest; -1 = all."""
    register_node: bool = True
    """registerNode: whether the Node is made at the API server; its status is told anyway."""
    register_with_taints: tuple[dict[str, str], ...] = ()
    """registerWithTaints: taints of a Node that is made, not of one that is there."""
    provider_id: str = ""
    """providerID: of a Node that is made."""
    max_restart_period_seconds: float = 300.0
    """crashLoopBackOff.maxContainerRestartPeriod: the longest delay between restarts; 1s to 300s."""
    max_parallel_pulls: int = 1
    """maxParallelImagePulls: images pulled at a time; more than 1 needs serializeImagePulls: false, which without it
    means no bound."""
    pull_verification: str = "NeverVerifyPreloadedImages"
    """imagePullCredentialsVerificationPolicy: whether an image that was pulled with a Secret is given to pods without
    it: NeverVerify, NeverVerifyPreloadedImages or AlwaysVerify."""
    image_gc_high_percent: int = 85
    """imageGCHighThresholdPercent: images are collected when the engine's disk is this full; 100 = never."""
    image_gc_low_percent: int = 80
    """imageGCLowThresholdPercent: then so many go, the longest unused first, that it's this full."""
    image_min_age_seconds: float = 120.0
    """imageMinimumGCAge: an image pulled or used this short a while ago stays."""
    image_max_age_seconds: float = 0.0
    """imageMaximumGCAge: an image unused for this long goes, however full the disk is; 0 = none does."""
    pod_pids_limit: int = -1
    """podPidsLimit: so many processes may a pod have; -1 = as many as the node."""
    log_max_bytes: int = 10 << 20
    """containerLogMaxSize: a container's log is rotated at this size."""
    log_max_files: int = 5
    """containerLogMaxFiles: so many files of it are kept, 2 or more."""
    cluster_dns: tuple[str, ...] = ()
    """clusterDNS: name servers of pods with dnsPolicy ClusterFirst; none = they get the host's."""
    cluster_domain: str = ""
    """clusterDomain: search domain of those pods."""
    allowed_unsafe_sysctls: tuple[str, ...] = ()
    """allowedUnsafeSysctls: names, or beginnings with a `*` after them, of sysctls that a pod may set besides the safe
    ones."""
    feature_gates: dict[str, bool] = field(default_factory=dict)
    """featureGates: by name; none changes what podbus does, but they are told, and an unknown one is refused."""
    seccomp_default: bool = False
    """seccompDefault: containers without a seccomp profile get the engine's default one, not none."""
    resolv_conf: str = "/etc/resolv.conf"
    """resolvConf: the file that pods with dnsPolicy Default get their name servers from."""


def config_document(config: KubeletConfig) -> dict[str, Any]:
    """The effective configuration as a KubeletConfiguration v1beta1 document (for /configz): the fields that
    have an effect, durations and quantities as Kubernetes writes them."""
    pulls = config.max_parallel_pulls
    return {
        "kind": KIND,
        "apiVersion": API_VERSION,
        "address": config.address,
        "port": config.port,
        "readOnlyPort": config.read_only_port,
        "enableDebuggingHandlers": config.debugging_handlers,
        "enableSystemLogHandler": config.system_log_handler,
        "enableDebugFlagsHandler": config.debug_flags_handler,
        "enableProfilingHandler": False,
        "healthzBindAddress": config.healthz_bind_address,
        "healthzPort": config.healthz_port,
        "staticPodPath": config.static_pod_path,
        "fileCheckFrequency": format_seconds(config.file_check_seconds),
        "staticPodURL": without_credentials(config.static_pod_url),
        "staticPodURLHeader": {name: ["<masked>"] for name in config.static_pod_url_header},
        "httpCheckFrequency": format_seconds(config.http_check_seconds),
        "streamingConnectionIdleTimeout": format_seconds(config.streaming_idle_seconds),
        "syncFrequency": format_seconds(config.sync_seconds),
        "tlsCertFile": config.tls_cert_file,
        "tlsPrivateKeyFile": config.tls_private_key_file,
        "authentication": {
            "x509": {"clientCAFile": config.client_ca_file},
            "webhook": {"enabled": config.token_webhook, "cacheTTL": format_seconds(config.token_webhook_seconds)},
            "anonymous": {"enabled": config.anonymous},
        },
        "authorization": {
            "mode": config.authorization_mode,
            "webhook": {
                "cacheAuthorizedTTL": format_seconds(config.authorized_seconds),
                "cacheUnauthorizedTTL": format_seconds(config.unauthorized_seconds),
            },
        },
        "tlsCipherSuites": list(config.tls_cipher_suites),
        "tlsMinVersion": config.tls_min_version,
        "maxPods": config.max_pods,
        "podsPerCore": config.pods_per_core,
        "cgroupDriver": config.cgroup_driver,
        "cgroupRoot": config.cgroup_root,
        "systemReserved": dict(config.system_reserved),
        "kubeReserved": dict(config.kube_reserved),
        "evictionHard": dict(config.eviction_hard),
        "nodeStatusUpdateFrequency": format_seconds(config.node_status_seconds),
        "nodeStatusReportFrequency": format_seconds(config.node_report_seconds),
        "nodeLeaseDurationSeconds": config.node_lease_duration,
        "nodeStatusMaxImages": config.node_max_images,
        "registerNode": config.register_node,
        "registerWithTaints": list(config.register_with_taints),
        "providerID": config.provider_id,
        "crashLoopBackOff": {"maxContainerRestartPeriod": format_seconds(config.max_restart_period_seconds)},
        "serializeImagePulls": pulls == 1,
        **({} if pulls in (1, UNBOUNDED_PULLS) else {"maxParallelImagePulls": pulls}),
        "imagePullCredentialsVerificationPolicy": config.pull_verification,
        "imageGCHighThresholdPercent": config.image_gc_high_percent,
        "imageGCLowThresholdPercent": config.image_gc_low_percent,
        "imageMinimumGCAge": format_seconds(config.image_min_age_seconds),
        "imageMaximumGCAge": format_seconds(config.image_max_age_seconds),
        "podPidsLimit": config.pod_pids_limit,
        "containerLogMaxSize": str(Quantity.from_value(config.log_max_bytes, QuantityFormat.BINARY_SI)),
        "containerLogMaxFiles": config.log_max_files,
        "clusterDNS": list(config.cluster_dns),
        "clusterDomain": config.cluster_domain,
        "allowedUnsafeSysctls": list(config.allowed_unsafe_sysctls),
        "featureGates": dict(config.feature_gates),
        "seccompDefault": config.seccomp_default,
        "resolvConf": config.resolv_conf,
        "failSwapOn": False,
    }


def without_credentials(url: str) -> str:
    """The URL as it may be shown: without `user:password@`."""
    return re.sub(r"^([a-z]+://)[^/?#]*@", r"\1", url)
