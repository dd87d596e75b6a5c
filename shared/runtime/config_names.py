"""Names of KubeletConfiguration v1beta1 (Kubernetes 1.36) that podbus knows and doesn't act on yet."""

from __future__ import annotations

_NAMES = """
allowedRegistrationNodeLabels cgroupsPerQOS
configMapAndSecretChangeDetectionStrategy containerLogMaxWorkers containerLogMonitorInterval
containerRuntimeEndpoint contentType cpuCFSQuota cpuCFSQuotaPeriod cpuManagerPolicy cpuManagerPolicyOptions
cpuManagerReconcilePeriod enableContentionProfiling enableControllerAttachDetach enableProfilingHandler
enableServer enableSystemLogQuery
enforceNodeAllocatable eventBurst eventRecordQPS evictionMaxPodGracePeriod evictionMinimumReclaim
evictionPressureTransitionPeriod evictionSoft evictionSoftGracePeriod failCgroupV1 failSwapOn featureGates
flushFrequency hairpinMode imageServiceEndpoint
iptablesDropBit iptablesMasqueradeBit kernelMemcgNotification kubeAPIBurst kubeAPIQPS kubeReservedCgroup
kubeletCgroups localStorageCapacityIsolation logging makeIPTablesUtilChains maxOpenFiles memoryManagerPolicy
memorySwap memoryThrottlingFactor
oomScoreAdj podCIDR podLogsDir preloadedImagesVerificationAllowlist protectKernelDefaults
qosReserved registryBurst registryPullQPS
reservedMemory reservedSystemCPUs rotateCertificates runOnce runtimeRequestTimeout
serverTLSBootstrap showHiddenMetricsForVersion shutdownGracePeriod shutdownGracePeriodByPodPriority
shutdownGracePeriodCriticalPods singleProcessOOMKill
systemCgroups systemReservedCgroup tlsCurvePreferences
topologyManagerPolicy topologyManagerPolicyOptions topologyManagerScope tracing userNamespaces
volumePluginDir volumeStatsAggPeriod
"""
WITHOUT_EFFECT = frozenset(_NAMES.split())

AS_IT_IS: dict[str, tuple[object, ...]] = {
    "cgroupsPerQOS": (True,),
    "enableProfilingHandler": (False,),
    "enableServer": (True,),
    "failCgroupV1": (False,),
    "failSwapOn": (False,),
}
"""Values that say what podbus does anyway: nothing to warn of."""
