"""The API's validation of a pod, also of the parts that this version refuses to run: one row, one rule."""

# ruff: noqa: E501 - a table with one row per rule reads best unbroken

from __future__ import annotations

from typing import Any

import pytest
import yaml

from services.source.core.conform import Conformer
from services.source.core.defaults import apply_pod_defaults
from services.source.core.field_errors import FieldErrors
from services.source.core.validate_spec import validate_pod
from services.source.core.validate_static import validate_static_references


def errors_of(spec: str, container: str = "", meta: str = "") -> list[str]:
    """Errors of a good pod with parts of the spec, its container and its metadata put in (YAML flow text)."""
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", **(yaml.safe_load(f"{{{meta}}}") or {})},
        "spec": {"containers": [{"name": "c", "image": "x", **(yaml.safe_load(f"{{{container}}}") or {})}]},
    }
    pod["spec"].update(yaml.safe_load(f"{{{spec}}}") or {})
    conformer = Conformer("Pod", "", strict=True)
    body = conformer.conform(pod)
    assert conformer.errors.found == []
    apply_pod_defaults(body)
    errors = FieldErrors()
    validate_pod(body, "", errors)
    validate_static_references(body["spec"], "spec", errors)
    return [f"{error.field}: {error.message}" for error in errors.found if not error.warning]


def assert_error(found: list[str], expected: str) -> None:
    """`expected` is how the one error begins; "" = there is none."""
    if not expected:
        assert found == []
    else:
        assert len(found) == 1 and found[0].startswith(expected), found


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ("labels: {a.b/c: d}, annotations: {'X/y': 'any thing'}", ""),
        ("name: ''", "metadata.name: Required value"),
        ("name: a_b", 'metadata.name: Invalid value: "a_b": a lowercase RFC 1123 subdomain'),
        ("namespace: a.b", 'metadata.namespace: Invalid value: "a.b": a lowercase RFC 1123 label'),
        ("labels: {-a: b}", 'metadata.labels: Invalid value: "-a": name part'),
        ("labels: {a: -b}", 'metadata.labels: Invalid value: "-b": a valid label'),
        ("annotations: {'a b': c}", 'metadata.annotations: Invalid value: "a b": name part'),
        (f"annotations: {{a: {'x' * 2**18}}}", "metadata.annotations: Too long: may not be more than 262144 bytes"),
        ("uid: 6a1b-X", ""),
        ("uid: a.b", 'metadata.uid: Invalid value: "a.b"'),
        ("uid: ../x", 'metadata.uid: Invalid value: "../x"'),
        ("deletionGracePeriodSeconds: 3", "metadata.deletionGracePeriodSeconds: Forbidden"),
        ("annotations: {kubernetes.io/config.mirror: x}", "metadata.annotations[kubernetes.io/config.mirror]: Forbidden"),
        ("ownerReferences: [{apiVersion: v1, kind: Node, name: n}]", "metadata.ownerReferences[0].uid: Required value"),
        ("finalizers: [a b]", "metadata.finalizers[0]: Invalid value"),
    ],
)  # fmt: skip
def test_metadata(meta: str, expected: str) -> None:
    assert_error(errors_of("", meta=meta), expected)


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ("name: ''", "spec.containers[0].name: Required value"),
        ("name: A", 'spec.containers[0].name: Invalid value: "A": a lowercase RFC 1123 label'),
        ("image: ''", "spec.containers[0].image: Required value"),
        ("image: ' x'", 'spec.containers[0].image: Invalid value: " x": must not have leading or trailing whitespace'),
        ("imagePullPolicy: Sometimes", 'spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"'),
        ("terminationMessagePolicy: x", 'spec.containers[0].terminationMessagePolicy: Unsupported value: "x"'),
        ("ports: [{containerPort: 80, hostPort: 80, hostIP: 127.0.0.1, protocol: UDP, name: dns}]", ""),
        ("ports: [{hostPort: 80}]", "spec.containers[0].ports[0].containerPort: Required value"),
        ("ports: [{containerPort: 70000}]", "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"),
        ("ports: [{containerPort: 80, hostPort: -1}]", "spec.containers[0].ports[0].hostPort: Invalid value: -1"),
        ("ports: [{containerPort: 80, hostIP: x}]", 'spec.containers[0].ports[0].hostIP: Invalid value: "x": must be a valid IP'),
        ("ports: [{containerPort: 80, protocol: tcp}]", 'spec.containers[0].ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"'),
        ("ports: [{containerPort: 80, name: '80'}]", 'spec.containers[0].ports[0].name: Invalid value: "80": must contain at least one letter'),
        ("ports: [{containerPort: 80, name: a}, {containerPort: 81, name: a}]", 'spec.containers[0].ports[1].name: Duplicate value: "a"'),
        ("ports: [{containerPort: 80, hostPort: 80}, {containerPort: 81, hostPort: 80}]", 'spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"'),
        ("ports: [{containerPort: 80, hostPort: 80}, {containerPort: 80, hostPort: 80, protocol: UDP}]", ""),
        ("ports: [{containerPort: 80, hostPort: 80}, {containerPort: 80, hostPort: 80, hostIP: 1.1.1.1}]", ""),
        ("env: [{name: 'A b.c-d', value: x}, {name: E}]", ""),
        ("env: [{value: x}]", "spec.containers[0].env[0].name: Required value"),
        ("env: [{name: A=B}]", 'spec.containers[0].env[0].name: Invalid value: "A=B"'),
        ("env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]", 'spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'),
        ("env: [{name: A, valueFrom: {}}]", 'spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef`'),
        ("env: [{name: A, valueFrom: {fieldRef: {fieldPath: status.podIP}, configMapKeyRef: {name: m, key: k}}}]", 'spec.containers[0].env[0].valueFrom: Invalid value: "": may not have more than one field specified at a time'),
        ("env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.restartPolicy}}}]", 'spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "spec.restartPolicy"'),
        ("env: [{name: A, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['x/y']\"}}}]", ""),
        ("env: [{name: A, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['x y']\"}}}]", "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value"),
        ("env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.labels}}}]", "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value"),
        ("env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}]", ""),
        ("env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.gpu}}}]", 'spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.gpu"'),
        ("env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 2}}}]", "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value"),
        ("env: [{name: A, valueFrom: {configMapKeyRef: {name: m}}}]", "spec.containers[0].env[0].valueFrom.configMapKeyRef.key: Required value"),
        ("env: [{name: A, valueFrom: {secretKeyRef: {name: m, key: a/b}}}]", 'spec.containers[0].env[0].valueFrom.secretKeyRef.key: Invalid value: "a/b"'),
        ("envFrom: [{prefix: P_, configMapRef: {name: m}}]", ""),
        ("envFrom: [{}]", 'spec.containers[0].envFrom[0]: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'),
        ("envFrom: [{secretRef: {}}]", "spec.containers[0].envFrom[0].secretRef.name: Required value"),
        ("resources: {limits: {cpu: 1, memory: 1Gi, example.com/gpu: 1}}", ""),
        ("resources: {limits: {cpu: -1}, requests: {cpu: -1}}", ""),
        ("resources: {limits: {cpu: 1}, requests: {cpu: 2}}", 'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'),
        ("resources: {requests: {example.com/gpu: 1}}", "spec.containers[0].resources.limits[example.com/gpu]: Required value: Limit must be set for non overcommitable resources"),
        ("resources: {limits: {example.com/gpu: 1500m}}", 'spec.containers[0].resources.limits[example.com/gpu]: Invalid value: "1500m": must be an integer'),
        ("resources: {limits: {hugepages-2Mi: 2Mi}}", "spec.containers[0].resources: Forbidden: HugePages require cpu or memory"),
        ("resources: {claims: [{name: x}]}", 'spec.containers[0].resources.claims[0].name: Not found: "x"'),
        ("resizePolicy: [{resourceName: cpu, restartPolicy: Sometimes}]", 'spec.containers[0].resizePolicy[0].restartPolicy: Unsupported value: "Sometimes"'),
        ("restartPolicy: Sometimes", 'spec.containers[0].restartPolicy: Unsupported value: "Sometimes"'),
        ("restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [3]}}]", "spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used"),
        ("restartPolicy: Never, restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [3]}}]", ""),
        ("restartPolicy: Never, restartPolicyRules: [{action: Restart}]", "spec.containers[0].restartPolicyRules[0].exitCodes: Required value"),
        ("restartPolicy: Never, restartPolicyRules: [{action: Restart, exitCodes: {operator: Is, values: [3]}}]", "spec.containers[0].restartPolicyRules[0].exitCodes.operator: Unsupported value"),
    ],
)  # fmt: skip
def test_containers(container: str, expected: str) -> None:
    if "cpu: -1" in container:
        found = errors_of("", container)
        assert found and all("must be greater than or equal to 0" in text for text in found)
    else:
        assert_error(errors_of("", container), expected)


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ("livenessProbe: {exec: {command: [x]}}", ""),
        ("livenessProbe: {}", "spec.containers[0].livenessProbe: Required value: must specify a handler type"),
        ("readinessProbe: {exec: {command: [x]}, tcpSocket: {port: 1}}", "spec.containers[0].readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"),
        ("livenessProbe: {exec: {}}", "spec.containers[0].livenessProbe.exec.command: Required value"),
        ("livenessProbe: {httpGet: {path: /, port: 0}}", "spec.containers[0].livenessProbe.httpGet.port: Invalid value: 0"),
        ("livenessProbe: {httpGet: {port: http, scheme: FTP}}", 'spec.containers[0].livenessProbe.httpGet.scheme: Unsupported value: "FTP"'),
        ("livenessProbe: {httpGet: {port: http, httpHeaders: [{name: a b}]}}", "spec.containers[0].livenessProbe.httpGet.httpHeaders[0].name: Invalid value"),
        ("livenessProbe: {tcpSocket: {}}", "spec.containers[0].livenessProbe.tcpSocket.port: Required value"),
        ("livenessProbe: {tcpSocket: {port: '80'}}", 'spec.containers[0].livenessProbe.tcpSocket.port: Invalid value: "80"'),
        ("livenessProbe: {grpc: {port: 99999}}", "spec.containers[0].livenessProbe.grpc.port: Invalid value: 99999"),
        ("livenessProbe: {grpc: {port: 1}, successThreshold: 2}", "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1"),
        ("startupProbe: {grpc: {port: 1}, successThreshold: 2}", "spec.containers[0].startupProbe.successThreshold: Invalid value: 2: must be 1"),
        ("readinessProbe: {grpc: {port: 1}, successThreshold: 2}", ""),
        ("livenessProbe: {grpc: {port: 1}, periodSeconds: -1}", "spec.containers[0].livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0"),
        ("readinessProbe: {grpc: {port: 1}, terminationGracePeriodSeconds: 5}", "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes"),
        ("livenessProbe: {grpc: {port: 1}, terminationGracePeriodSeconds: 0}", "spec.containers[0].livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0"),
        ("lifecycle: {preStop: {}}", "spec.containers[0].lifecycle.preStop: Required value: must specify a handler type"),
        ("lifecycle: {preStop: {sleep: {seconds: 0}}}", ""),
        ("lifecycle: {preStop: {sleep: {seconds: 31}}}", "spec.containers[0].lifecycle.preStop.sleep.seconds: Invalid value: 31"),
        ("lifecycle: {postStart: {sleep: {seconds: -1}}}", "spec.containers[0].lifecycle.postStart.sleep.seconds: Invalid value: -1"),
        ("lifecycle: {stopSignal: SIGUSR1}", "spec.containers[0].lifecycle.stopSignal: Forbidden"),
    ],
)  # fmt: skip
def test_probes_and_hooks(container: str, expected: str) -> None:
    assert_error(errors_of("", container), expected)


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ("volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /b, subPath: x/y}]", ""),
        ("env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: ../x, key: K}}}]", 'spec.containers[0].env[0].valueFrom.fileKeyRef.path: Invalid value: "../x"'),
        ("env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: x, key: K}}}]", ""),
        ("env: [{name: A, valueFrom: {fileKeyRef: {volumeName: w, path: x, key: K}}}]", 'spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Not found: "w"'),
        ("env: [{name: A, valueFrom: {fileKeyRef: {volumeName: h, path: x, key: K}}}]", 'spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Invalid value: "h": referenced volume must be of type emptyDir'),
        ("volumeMounts: [{name: w, mountPath: /a}]", 'spec.containers[0].volumeMounts[0].name: Not found: "w"'),
        ("volumeMounts: [{name: v}]", "spec.containers[0].volumeMounts[0].mountPath: Required value"),
        ("volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /a}]", 'spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique'),
        ("volumeMounts: [{name: v, mountPath: /a, subPath: /x}]", 'spec.containers[0].volumeMounts[0].subPath: Invalid value: "/x": must be a relative path'),
        ("volumeMounts: [{name: v, mountPath: /a, subPathExpr: a/../b}]", "spec.containers[0].volumeMounts[0].subPathExpr: Invalid value: \"a/../b\": must not contain '..'"),
        ("volumeMounts: [{name: v, mountPath: /a, subPath: x, subPathExpr: y}]", 'spec.containers[0].volumeMounts[0].subPathExpr: Invalid value: "y": subPathExpr and subPath are mutually exclusive'),
        ("volumeMounts: [{name: v, mountPath: /a, mountPropagation: Bidirectional}]", "spec.containers[0].volumeMounts[0].mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers"),
        ("securityContext: {privileged: true}, volumeMounts: [{name: v, mountPath: /a, mountPropagation: Bidirectional}]", ""),
        ("volumeMounts: [{name: v, mountPath: /a, recursiveReadOnly: Enabled}]", "spec.containers[0].volumeMounts[0].recursiveReadOnly: Forbidden: may only be specified when readOnly is true"),
        ("volumeDevices: [{name: v, devicePath: /dev/x}]", "spec.containers[0].volumeDevices[0].name: Invalid value"),
    ],
)  # fmt: skip
def test_mounts(container: str, expected: str) -> None:
    assert_error(errors_of("volumes: [{name: v}, {name: h, hostPath: {path: /x}}]", container), expected)


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        ("", "spec.volumes[0].name: Required value"),
        ("name: A", 'spec.volumes[0].name: Invalid value: "A"'),
        ("name: v, emptyDir: {}, hostPath: {path: /x}", "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"),
        ("name: v, emptyDir: {medium: Disk}", 'spec.volumes[0].emptyDir.medium: Unsupported value: "Disk"'),
        ("name: v, emptyDir: {sizeLimit: -1}", "spec.volumes[0].emptyDir.sizeLimit: Forbidden"),
        ("name: v, hostPath: {}", "spec.volumes[0].hostPath.path: Required value"),
        ("name: v, hostPath: {path: /a/../b}", "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"),
        ("name: v, hostPath: {path: /a, type: Dir}", 'spec.volumes[0].hostPath.type: Unsupported value: "Dir"'),
        ("name: v, configMap: {}", "spec.volumes[0].configMap.name: Required value"),
        ("name: v, configMap: {name: m, defaultMode: 512}", "spec.volumes[0].configMap.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive"),
        ("name: v, configMap: {name: m, items: [{key: k, path: /a}]}", 'spec.volumes[0].configMap.items[0].path: Invalid value: "/a": must be a relative path'),
        ("name: v, configMap: {name: m, items: [{key: k, path: ..a}]}", "spec.volumes[0].configMap.items[0].path: Invalid value: \"..a\": must not start with '..'"),
        ("name: v, configMap: {name: m, items: [{path: a}]}", "spec.volumes[0].configMap.items[0].key: Required value"),
        ("name: v, secret: {}", "spec.volumes[0].secret.secretName: Required value"),
        ("name: v, downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}", ""),
        ("name: v, downwardAPI: {items: [{path: l, fieldRef: {fieldPath: status.podIP}}]}", "spec.volumes[0].downwardAPI.items[0].fieldRef.fieldPath: Unsupported value"),
        ("name: v, downwardAPI: {items: [{path: l}]}", "spec.volumes[0].downwardAPI.items[0].fieldRef: Required value"),
        ("name: v, downwardAPI: {items: [{path: l, resourceFieldRef: {resource: limits.cpu}}]}", "spec.volumes[0].downwardAPI.items[0].resourceFieldRef.containerName: Required value"),
        ("name: v, projected: {sources: [{configMap: {name: a}}, {secret: {name: b}}]}", ""),
        ("name: v, projected: {sources: [{}]}", "spec.volumes[0].projected.sources[0]: Required value"),
        ("name: v, projected: {sources: [{configMap: {name: a, items: [{key: k, path: p}]}}, {secret: {name: b, items: [{key: k, path: p}]}}]}", 'spec.volumes[0].projected.sources[1].secret.items[0].path: Invalid value: "p": conflicting duplicate paths'),
        ("name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}", "spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: static pods may not reference"),
        ("name: v, nfs: {server: s, path: x}", 'spec.volumes[0].nfs.path: Invalid value: "x": must be an absolute path'),
        ("name: v, image: {}", "spec.volumes[0].image.reference: Required value"),
        ("name: v, persistentVolumeClaim: {claimName: c}", "spec.volumes[0].persistentVolumeClaim: Forbidden: static pods may not reference persistentvolumeclaims"),
        ("name: v, csi: {driver: d}", "spec.volumes[0].csi: Forbidden: static pods may not reference csi volumes"),
    ],
)  # fmt: skip
def test_volumes(volume: str, expected: str) -> None:
    assert_error(errors_of(f"volumes: [{{{volume}}}]"), expected)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("containers: []", "spec.containers: Required value"),
        ("containers: [{name: a, image: x}, {name: a, image: x}]", 'spec.containers[1].name: Duplicate value: "a"'),
        ("initContainers: [{name: c, image: x}]", 'spec.initContainers[0].name: Duplicate value: "c"'),
        ("initContainers: [{name: i, image: x, lifecycle: {preStop: {exec: {command: [x]}}}}]", "spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always"),
        ("initContainers: [{name: i, image: x, readinessProbe: {grpc: {port: 1}}}]", "spec.initContainers[0].readinessProbe: Forbidden"),
        ("initContainers: [{name: i, image: x, restartPolicy: Always, readinessProbe: {grpc: {port: 1}}}]", ""),
        ("ephemeralContainers: [{name: e, image: x}]", "spec.ephemeralContainers: Forbidden: cannot be set on create"),
        ("restartPolicy: Sometimes", 'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"'),
        ("terminationGracePeriodSeconds: -1", "spec.terminationGracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0"),
        ("activeDeadlineSeconds: 0", "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"),
        ("activeDeadlineSeconds: 2147483648", "spec.activeDeadlineSeconds: Invalid value"),
        ("dnsPolicy: Cluster", 'spec.dnsPolicy: Unsupported value: "Cluster"'),
        ("dnsPolicy: None", "spec.dnsConfig: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None"),
        ("dnsPolicy: None, dnsConfig: {nameservers: [9.9.9.9]}", ""),
        ("dnsConfig: {nameservers: [1.1.1.1, 1.1.1.2, 1.1.1.3, 1.1.1.4]}", "spec.dnsConfig.nameservers: Invalid value"),
        ("dnsConfig: {nameservers: [x]}", 'spec.dnsConfig.nameservers[0]: Invalid value: "x": must be a valid IP'),
        ("dnsConfig: {searches: [_a.b., .]}", ""),
        ("dnsConfig: {searches: [a..b]}", 'spec.dnsConfig.searches[0]: Invalid value: "a..b"'),
        ("dnsConfig: {options: [{value: x}]}", "spec.dnsConfig.options[0]: Required value"),
        ("hostname: a.b", 'spec.hostname: Invalid value: "a.b"'),
        ("subdomain: A", 'spec.subdomain: Invalid value: "A"'),
        ("hostnameOverride: a.b", ""),
        ("hostnameOverride: a.b, hostNetwork: true", "spec.hostnameOverride: Forbidden: can not be set when `hostNetwork` is true"),
        (f"hostnameOverride: {'a' * 65}", "spec.hostnameOverride: Too long: may not be more than 64 bytes"),
        ("hostAliases: [{ip: 1.2.3, hostnames: [a]}]", 'spec.hostAliases[0].ip: Invalid value: "1.2.3"'),
        ("hostAliases: [{ip: 1.2.3.4, hostnames: [A_]}]", 'spec.hostAliases[0].hostnames[0]: Invalid value: "A_"'),
        ("hostNetwork: true, containers: [{name: c, image: x, ports: [{containerPort: 80}]}]", ""),
        ("hostNetwork: true, containers: [{name: c, image: x, ports: [{containerPort: 80, hostPort: 81}]}]", "spec.containers[0].ports[0].containerPort: Invalid value: 80: must match `hostPort` when `hostNetwork` is true"),
        ("containers: [{name: a, image: x, ports: [{containerPort: 1, hostPort: 1}]}, {name: b, image: x, ports: [{containerPort: 2, hostPort: 1}]}]", 'spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//1"'),
        ("nodeSelector: {a: b c}", 'spec.nodeSelector: Invalid value: "b c"'),
        ("nodeName: A", 'spec.nodeName: Invalid value: "A"'),
        ("priorityClassName: A", 'spec.priorityClassName: Invalid value: "A"'),
        ("preemptionPolicy: x", 'spec.preemptionPolicy: Unsupported value: "x"'),
        ("tolerations: [{operator: Exists}, {key: a, value: b}]", ""),
        ("tolerations: [{value: b}]", 'spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty'),
        ("tolerations: [{key: a, operator: Exists, value: b}]", "spec.tolerations[0].operator: Invalid value: object: value must be empty"),
        ("tolerations: [{key: a, operator: Is}]", 'spec.tolerations[0].operator: Unsupported value: "Is"'),
        ("tolerations: [{key: a, effect: NoRun}]", 'spec.tolerations[0].effect: Unsupported value: "NoRun"'),
        ("tolerations: [{key: a, effect: NoSchedule, tolerationSeconds: 3}]", "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute'"),
        ("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}", "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value"),
        ("affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {}}]}}", "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100"),
        ("affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{}]}}", "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required value"),
        ("topologySpreadConstraints: [{maxSkew: 0, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]", "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0"),
        ("readinessGates: [{conditionType: a b}]", "spec.readinessGates[0].conditionType: Invalid value"),
        ("schedulingGates: [{name: a}]", "spec.schedulingGates: Forbidden"),
        ("securityContext: {runAsUser: -1}", "spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"),
        ("securityContext: {supplementalGroups: [1, -2]}", "spec.securityContext.supplementalGroups[1]: Invalid value: -2"),
        ("securityContext: {sysctls: [{name: a.b, value: '1'}, {name: a/b, value: '2'}]}", 'spec.securityContext.sysctls[1].name: Duplicate value: "a/b"'),
        ("securityContext: {sysctls: [{name: net.x, value: '1'}]}, hostNetwork: true", "spec.securityContext.sysctls[0].name: Invalid value: \"net.x\": may not be specified when 'hostNetwork' is true"),
        ("securityContext: {seccompProfile: {type: Localhost}}", "spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost"),
        ("securityContext: {seccompProfile: {type: RuntimeDefault, localhostProfile: x}}", "spec.securityContext.seccompProfile.localhostProfile: Invalid value"),
        ("securityContext: {appArmorProfile: {type: Best}}", 'spec.securityContext.appArmorProfile.type: Unsupported value: "Best"'),
        ("securityContext: {fsGroupChangePolicy: x}", 'spec.securityContext.fsGroupChangePolicy: Unsupported value: "x"'),
        ("shareProcessNamespace: true, hostPID: true", "spec.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled"),
        ("serviceAccountName: sa", "spec.serviceAccountName: Forbidden: static pods may not reference serviceaccounts"),
        ("resourceClaims: [{name: r, resourceClaimName: x}]", "spec.resourceClaims: Forbidden: static pods may not reference resourceclaims"),
        ("os: {name: plan9}", 'spec.os.name: Unsupported value: "plan9"'),
        ("resources: {limits: {ephemeral-storage: 1Gi}}", 'spec.resources.limits[ephemeral-storage]: Unsupported value: "ephemeral-storage"'),
        ("overhead: {cpu: -1}", 'spec.overhead[cpu]: Invalid value: "-1"'),
        ("imagePullSecrets: [{}]", "spec.imagePullSecrets[0].name: Required value"),
    ],
)  # fmt: skip
def test_pods(spec: str, expected: str) -> None:
    if "dnsPolicy: None" in spec:
        spec = spec.replace("None", "'None'")
    assert_error(errors_of(spec), expected)


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ("capabilities: {add: [NET_ADMIN], drop: [ALL]}, allowPrivilegeEscalation: false", ""),
        ("privileged: true, allowPrivilegeEscalation: false", "spec.containers[0].securityContext: Invalid value: object: cannot set `allowPrivilegeEscalation` to false and `privileged` to true"),
        ("capabilities: {add: [CAP_SYS_ADMIN]}, allowPrivilegeEscalation: false", "spec.containers[0].securityContext: Invalid value: object: cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"),
        ("procMount: Open", 'spec.containers[0].securityContext.procMount: Unsupported value: "Open"'),
        ("procMount: Unmasked", "spec.containers[0].securityContext.procMount: Invalid value"),
    ],
)  # fmt: skip
def test_container_security(context: str, expected: str) -> None:
    assert_error(errors_of("", f"securityContext: {{{context}}}"), expected)


def test_a_fraction_of_a_byte_is_only_a_warning() -> None:
    """kubelet 1.36 warns: "64m" of memory is 0.064 bytes, surely meant as megabytes."""
    assert errors_of("", "resources: {limits: {memory: 64m}}") == []
