"""Fields of KubeletConfiguration v1beta1 (Kubernetes 1.36) that podbus doesn't act on: which are refused, and why, and
which are accepted without an effect. What has one is in config_reader; a test holds that each field is in one class.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_NO_EVICTION = "no pod is evicted yet"
_NO_SHUTDOWN = "a shutdown of the machine isn't waited for yet"
_NO_RENEWAL = "podbus renews no credentials yet"
_ENGINE = "DOCKER_HOST names the engine"
_NO_CPU_MANAGER = "podbus gives no container cores of its own"
_NO_IPTABLES = "Docker Engine makes the rules of iptables"
_OWN_PACE = "podbus keeps its own pace to the API server"
_OWN_GROUPS = "podbus moves no process into a control group"
_NOT_ENFORCED = "what is reserved for the system is subtracted, not enforced"
_OWN_LOG = "PODBUS_LOG_LEVEL says how much is logged"

WITHOUT_EFFECT: dict[str, str] = {
    "allowedRegistrationNodeLabels": "PODBUS_NODE_LABELS takes what the kubelet takes by default",
    "configMapAndSecretChangeDetectionStrategy": "ConfigMaps and Secrets are watched",
    "containerLogMaxWorkers": "each worker rotates the logs of its pods",
    "containerLogMonitorInterval": "logs are looked at every 10 s",
    "containerRuntimeEndpoint": _ENGINE,
    "contentType": "podbus speaks JSON with the API server",
    "cpuManagerReconcilePeriod": _NO_CPU_MANAGER,
    "enableContentionProfiling": "there is no Go profile",
    "enableControllerAttachDetach": "podbus attaches no volumes",
    "enableProfilingHandler": "there is no Go profile",
    "enableSystemLogQuery": "/logs/ serves files; the journal isn't asked",
    "eventBurst": _OWN_PACE,
    "eventRecordQPS": _OWN_PACE,
    "evictionMaxPodGracePeriod": _NO_EVICTION,
    "evictionMinimumReclaim": _NO_EVICTION,
    "evictionPressureTransitionPeriod": _NO_EVICTION,
    "evictionSoft": _NO_EVICTION,
    "evictionSoftGracePeriod": _NO_EVICTION,
    "failCgroupV1": "cgroup v1 only warns",
    "failSwapOn": "swap only warns",
    "flushFrequency": _OWN_LOG,
    "hairpinMode": "Docker Engine sets up the network",
    "imageServiceEndpoint": _ENGINE,
    "iptablesDropBit": _NO_IPTABLES,
    "iptablesMasqueradeBit": _NO_IPTABLES,
    "kernelMemcgNotification": _NO_EVICTION,
    "kubeAPIBurst": _OWN_PACE,
    "kubeAPIQPS": _OWN_PACE,
    "kubeReservedCgroup": _NOT_ENFORCED,
    "kubeletCgroups": _OWN_GROUPS,
    "localStorageCapacityIsolation": "ephemeral storage is always counted",
    "logging": _OWN_LOG,
    "makeIPTablesUtilChains": _NO_IPTABLES,
    "maxOpenFiles": "a service takes as many files as the system allows it",
    "memoryThrottlingFactor": "memory.high is never set",
    "oomScoreAdj": "podbus leaves its own score alone",
    "podCIDR": "addresses come from Docker's network",
    "preloadedImagesVerificationAllowlist": "imagePullCredentialsVerificationPolicy has no allow list here",
    "protectKernelDefaults": "podbus changes no setting of the kernel",
    "registryBurst": "pulls are bounded by maxParallelImagePulls",
    "registryPullQPS": "pulls are bounded by maxParallelImagePulls",
    "rotateCertificates": _NO_RENEWAL,
    "runtimeRequestTimeout": "each request to the engine has a timeout of its own",
    "serverTLSBootstrap": _NO_RENEWAL,
    "showHiddenMetricsForVersion": "podbus hides no metrics",
    "shutdownGracePeriod": _NO_SHUTDOWN,
    "shutdownGracePeriodByPodPriority": _NO_SHUTDOWN,
    "shutdownGracePeriodCriticalPods": _NO_SHUTDOWN,
    "singleProcessOOMKill": "the kernel kills single processes",
    "systemCgroups": _OWN_GROUPS,
    "systemReservedCgroup": _NOT_ENFORCED,
    "tracing": "podbus sends no traces",
    "userNamespaces": "a pod with hostUsers: false is refused",
    "volumePluginDir": "there are no volume plugins",
    "volumeStatsAggPeriod": "volumes are measured at podbus' own pace",
}
"""Field -> what is so instead. Warned of where it's set, unless to nothing or to AS_IT_IS."""

AS_IT_IS: dict[str, tuple[object, ...]] = {
    "configMapAndSecretChangeDetectionStrategy": ("Watch",),
    "enableProfilingHandler": (False,),
    "failCgroupV1": (False,),
    "failSwapOn": (False,),
    "singleProcessOOMKill": (True,),
}
"""Values that say what podbus does anyway: nothing to warn of."""


class Refused(NamedTuple):
    accepted: tuple[object, ...]
    """Values that ask for nothing; so does an empty one where `is_empty_fine`."""
    why: str
    is_empty_fine: bool = True


REFUSED: dict[str, Refused] = {
    "cgroupsPerQOS": Refused((True,), "pods always have their control groups below kubepods", is_empty_fine=False),
    "cpuCFSQuota": Refused((True,), "CPU limits are always enforced", is_empty_fine=False),
    "cpuCFSQuotaPeriod": Refused(("100ms", "0s"), "CPU limits are enforced per 100ms"),
    "cpuManagerPolicy": Refused(("none",), _NO_CPU_MANAGER),
    "cpuManagerPolicyOptions": Refused((), _NO_CPU_MANAGER),
    "enableServer": Refused((True,), "the node is operated by its HTTPS API", is_empty_fine=False),
    "enforceNodeAllocatable": Refused((["pods"], ["none"]), _NOT_ENFORCED),
    "memoryManagerPolicy": Refused(("None",), "podbus binds no memory to NUMA nodes"),
    "memorySwap": Refused(({"swapBehavior": "NoSwap"},), "containers get no swap by their requests"),
    "podLogsDir": Refused(("/var/log/pods", "/var/log/pods/"), "PODBUS_POD_LOGS says where the links to logs are"),
    "qosReserved": Refused((), "podbus reserves no memory for a QoS class"),
    "reservedMemory": Refused((), "podbus binds no memory to NUMA nodes"),
    "reservedSystemCPUs": Refused((), _NO_CPU_MANAGER),
    "runOnce": Refused((), "the kubelet has given it up too"),
    "tlsCurvePreferences": Refused((), "OpenSSL chooses the curves"),
    "topologyManagerPolicy": Refused(("none",), "podbus aligns nothing to NUMA nodes; only none is supported"),
    "topologyManagerPolicyOptions": Refused((), "podbus aligns nothing to NUMA nodes"),
    "topologyManagerScope": Refused(("container",), "podbus aligns nothing to NUMA nodes"),
}
"""Field -> what of it is accepted, and why nothing else: ignored, the node would do other than it was told."""


def is_empty(value: Any) -> bool:
    """Says nothing, as the fields that tools write out with their zero values."""
    if isinstance(value, dict):
        return all(is_empty(inner) for inner in value.values())
    return value is None or value is False or value in ("", "0s", 0) or value == []


def refusal(name: str, value: Any) -> str:
    """Why this value of the field can't be had; "" = it can."""
    refused = REFUSED[name]
    if value is None or value in refused.accepted or (refused.is_empty_fine and is_empty(value)):
        return ""
    return f"is not supported: {refused.why}"


def has_no_effect(name: str, value: Any) -> bool:
    """Whether somebody asks for something that isn't done."""
    return value not in AS_IT_IS.get(name, ()) and not is_empty(value)
