"""The fields of the v1 API objects that a manifest may hold, with their types (Kubernetes 1.37).

One compact table: a line without indent names a type, the indented lines under it list its fields as
`name:type`; no type = string. `[]x` is a list, `{}x` a map from strings. `object` is opaque: parts that
podbus always refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_TABLE = """
Affinity
  nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAntiAffinity
AppArmorProfile
  localhostProfile type
Capabilities
  add:[]string drop:[]string
ClusterTrustBundleProjection
  labelSelector:LabelSelector name optional:bool path signerName user:int64
ConfigMap
  apiVersion binaryData:{}bytes data:{}string immutable:bool kind metadata:ObjectMeta
ConfigMapEnvSource
  name optional:bool
ConfigMapKeySelector
  key name optional:bool
ConfigMapProjection
  items:[]KeyToPath name optional:bool
ConfigMapVolumeSource
  defaultMode:int32 defaultUser:int64 items:[]KeyToPath name optional:bool
Container
  args:[]string command:[]string env:[]EnvVar envFrom:[]EnvFromSource image imagePullPolicy
  lifecycle:Lifecycle livenessProbe:Probe name ports:[]ContainerPort readinessProbe:Probe
  resizePolicy:[]ContainerResizePolicy resources:ResourceRequirements restartPolicy
  restartPolicyRules:[]ContainerRestartRule securityContext:SecurityContext startupProbe:Probe
  stdin:bool stdinOnce:bool terminationMessagePath terminationMessagePolicy tty:bool
  volumeDevices:[]VolumeDevice volumeMounts:[]VolumeMount workingDir
ContainerPort
  containerPort:int32 hostIP hostPort:int32 name protocol
ContainerResizePolicy
  resourceName restartPolicy
ContainerRestartRule
  action exitCodes:ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes
  operator values:[]int32
DownwardAPIProjection
  items:[]DownwardAPIVolumeFile
DownwardAPIVolumeFile
  fieldRef:ObjectFieldSelector mode:int32 path resourceFieldRef:ResourceFieldSelector user:int64
DownwardAPIVolumeSource
  defaultMode:int32 defaultUser:int64 items:[]DownwardAPIVolumeFile
EmptyDirVolumeSource
  medium mode:int32 sizeLimit:quantity
EnvFromSource
  configMapRef:ConfigMapEnvSource prefix secretRef:SecretEnvSource
EnvVar
  name value valueFrom:EnvVarSource
EnvVarSource
  configMapKeyRef:ConfigMapKeySelector fieldRef:ObjectFieldSelector fileKeyRef:FileKeySelector
  resourceFieldRef:ResourceFieldSelector secretKeyRef:SecretKeySelector
EphemeralVolumeSource
  volumeClaimTemplate:object
EvictionResponder
  name priority:int32
ExecAction
  command:[]string
FileKeySelector
  key optional:bool path volumeName
GRPCAction
  mode port:int32 service
HTTPGetAction
  host httpHeaders:[]HTTPHeader path port:intstr protocol scheme
HTTPHeader
  name value
HostAlias
  hostnames:[]string ip
HostPathVolumeSource
  path type
ImageVolumeSource
  pullPolicy reference
KeyToPath
  key mode:int32 path user:int64
LabelSelector
  matchExpressions:[]LabelSelectorRequirement matchLabels:{}string
LabelSelectorRequirement
  key operator values:[]string
Lifecycle
  postStart:LifecycleHandler preStop:LifecycleHandler stopSignal
LifecycleHandler
  exec:ExecAction httpGet:HTTPGetAction sleep:SleepAction tcpSocket:TCPSocketAction
ListMeta
  continue remainingItemCount:int64 resourceVersion selfLink shardInfo:object
LocalObjectReference
  name
NFSVolumeSource
  path readOnly:bool server
NodeAffinity
  preferredDuringSchedulingIgnoredDuringExecution:[]PreferredSchedulingTerm
  requiredDuringSchedulingIgnoredDuringExecution:NodeSelector
NodeSelector
  nodeSelectorTerms:[]NodeSelectorTerm
NodeSelectorRequirement
  key operator values:[]string
NodeSelectorTerm
  matchExpressions:[]NodeSelectorRequirement matchFields:[]NodeSelectorRequirement
ObjectFieldSelector
  apiVersion fieldPath
ObjectMeta
  annotations:{}string creationTimestamp:time deletionGracePeriodSeconds:int64 deletionTimestamp:time
  finalizers:[]string generateName generation:int64 labels:{}string managedFields:[]object name
  namespace ownerReferences:[]OwnerReference resourceVersion selfLink uid
OwnerReference
  apiVersion blockOwnerDeletion:bool controller:bool kind name uid
PersistentVolumeClaimVolumeSource
  claimName readOnly:bool
Pod
  apiVersion kind metadata:ObjectMeta spec:PodSpec status:object
PodAffinity
  preferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
  requiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm
PodAffinityTerm
  labelSelector:LabelSelector matchLabelKeys:[]string mismatchLabelKeys:[]string
  namespaceSelector:LabelSelector namespaces:[]string topologyKey
PodAntiAffinity
  preferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
  requiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm
PodCertificateProjection
  certificateChainPath credentialBundlePath keyPath keyType maxExpirationSeconds:int32 signerName
  user:int64 userAnnotations:{}string
PodDNSConfig
  nameservers:[]string options:[]PodDNSConfigOption searches:[]string
PodDNSConfigOption
  name value
PodList
  apiVersion items:[]Pod kind metadata:ListMeta
PodOS
  name
PodReadinessGate
  conditionType
PodResourceClaim
  name resourceClaimName resourceClaimTemplateName
PodSchedulingGate
  name
PodSchedulingGroup
  podGroupName
PodSecurityContext
  appArmorProfile:AppArmorProfile fsGroup:int64 fsGroupChangePolicy runAsGroup:int64 runAsNonRoot:bool
  runAsUser:int64 seLinuxChangePolicy seLinuxOptions:SELinuxOptions seccompProfile:SeccompProfile
  supplementalGroups:[]int64 supplementalGroupsPolicy sysctls:[]Sysctl windowsOptions:object
PodSpec
  activeDeadlineSeconds:int64 affinity:Affinity automountServiceAccountToken:bool
  containers:[]Container dnsConfig:PodDNSConfig dnsPolicy enableServiceLinks:bool
  ephemeralContainers:[]EphemeralContainer evictionResponders:[]EvictionResponder
  hostAliases:[]HostAlias hostIPC:bool hostNetwork:bool hostPID:bool hostUsers:bool hostname
  hostnameOverride imagePullSecrets:[]LocalObjectReference initContainers:[]Container nodeName
  nodeSelector:{}string os:PodOS overhead:{}quantity preemptionPolicy priority:int32 priorityClassName
  readinessGates:[]PodReadinessGate resourceClaims:[]PodResourceClaim resources:ResourceRequirements
  restartPolicy runtimeClassName schedulerName schedulingGates:[]PodSchedulingGate
  schedulingGroup:PodSchedulingGroup securityContext:PodSecurityContext serviceAccount
  serviceAccountName setHostnameAsFQDN:bool shareProcessNamespace:bool subdomain
  terminationGracePeriodSeconds:int64 tolerations:[]Toleration
  topologySpreadConstraints:[]TopologySpreadConstraint volumes:[]Volume
PreferredSchedulingTerm
  preference:NodeSelectorTerm weight:int32
Probe
  exec:ExecAction failureThreshold:int32 grpc:GRPCAction httpGet:HTTPGetAction
  initialDelaySeconds:int32 periodSeconds:int32 successThreshold:int32 tcpSocket:TCPSocketAction
  terminationGracePeriodSeconds:int64 timeoutSeconds:int32
ProjectedVolumeSource
  defaultMode:int32 defaultUser:int64 sources:[]VolumeProjection
ResourceClaim
  name request
ResourceFieldSelector
  containerName divisor:quantity resource
ResourceRequirements
  claims:[]ResourceClaim limits:{}quantity requests:{}quantity
SELinuxOptions
  level role type user
SeccompProfile
  localhostProfile type
Secret
  apiVersion data:{}bytes immutable:bool kind metadata:ObjectMeta stringData:{}string type
SecretEnvSource
  name optional:bool
SecretKeySelector
  key name optional:bool
SecretProjection
  items:[]KeyToPath name optional:bool
SecretVolumeSource
  defaultMode:int32 defaultUser:int64 items:[]KeyToPath optional:bool secretName
SecurityContext
  allowPrivilegeEscalation:bool appArmorProfile:AppArmorProfile capabilities:Capabilities
  privileged:bool procMount readOnlyRootFilesystem:bool runAsGroup:int64 runAsNonRoot:bool
  runAsUser:int64 seLinuxOptions:SELinuxOptions seccompProfile:SeccompProfile windowsOptions:object
ServiceAccountTokenProjection
  audience expirationSeconds:int64 path user:int64
SleepAction
  seconds:int64
Sysctl
  name value
TCPSocketAction
  host port:intstr
Toleration
  effect key operator tolerationSeconds:int64 value
TopologySpreadConstraint
  labelSelector:LabelSelector matchLabelKeys:[]string maxSkew:int32 minDomains:int32
  nodeAffinityPolicy nodeTaintsPolicy topologyKey whenUnsatisfiable
Volume
  awsElasticBlockStore:object azureDisk:object azureFile:object cephfs:object cinder:object
  configMap:ConfigMapVolumeSource csi:object downwardAPI:DownwardAPIVolumeSource
  emptyDir:EmptyDirVolumeSource ephemeral:EphemeralVolumeSource fc:object flexVolume:object
  flocker:object gcePersistentDisk:object gitRepo:object glusterfs:object
  hostPath:HostPathVolumeSource image:ImageVolumeSource iscsi:object name nfs:NFSVolumeSource
  persistentVolumeClaim:PersistentVolumeClaimVolumeSource photonPersistentDisk:object
  portworxVolume:object projected:ProjectedVolumeSource quobyte:object rbd:object scaleIO:object
  secret:SecretVolumeSource storageos:object vsphereVolume:object
VolumeDevice
  devicePath name
VolumeMount
  bindMountOptions:[]string mountPath mountPropagation name readOnly:bool recursiveReadOnly subPath
  subPathExpr
VolumeProjection
  clusterTrustBundle:ClusterTrustBundleProjection configMap:ConfigMapProjection
  downwardAPI:DownwardAPIProjection podCertificate:PodCertificateProjection secret:SecretProjection
  serviceAccountToken:ServiceAccountTokenProjection
WeightedPodAffinityTerm
  podAffinityTerm:PodAffinityTerm weight:int32
"""

SCALARS: Final = frozenset(("string", "bool", "int32", "int64", "quantity", "intstr", "time", "bytes", "object"))


def _parse(table: str) -> dict[str, dict[str, str]]:
    types: dict[str, dict[str, str]] = {}
    fields: dict[str, str] = {}
    for line in table.strip().splitlines():
        if not line.startswith(" "):
            fields = types.setdefault(line, {})
            continue
        for item in line.split():
            name, _, kind = item.partition(":")
            fields[name] = kind or "string"
    types["EphemeralContainer"] = {**types["Container"], "targetContainerName": "string"}
    return types


#: Type name -> field name -> type.
TYPES: Final[Mapping[str, Mapping[str, str]]] = _parse(_TABLE)
