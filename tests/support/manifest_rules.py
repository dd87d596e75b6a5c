"""Rules of the API that an accepted pod must keep, written down once more and apart from the validation itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from shared.kube.quantity import Quantity

Json = dict[str, Any]

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def broken_rules(pod: Json) -> list[str]:
    """What is wrong with a pod that was accepted; [] = nothing that these rules know."""
    return list(_of_pod(pod))


def _of_pod(pod: Json) -> Iterator[str]:
    meta, spec = pod["metadata"], pod["spec"]
    if not _SUBDOMAIN.fullmatch(meta["name"]) or len(meta["name"]) > 253:
        yield "metadata.name"
    regular, init = spec.get("containers") or [], spec.get("initContainers") or []
    if not regular or spec.get("ephemeralContainers"):
        yield "a pod has regular containers and no ephemeral ones"
    names = [container.get("name", "") for container in (*init, *regular)]
    if len({*names}) < len(names) or not all(_LABEL.fullmatch(name) for name in names):
        yield "container names"
    if spec["restartPolicy"] not in ("Always", "OnFailure", "Never"):
        yield "restartPolicy"
    if spec["dnsPolicy"] not in ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"):
        yield "dnsPolicy"
    if spec["dnsPolicy"] == "None" and not (spec.get("dnsConfig") or {}).get("nameservers"):
        yield "dnsPolicy None without a server"
    if spec["terminationGracePeriodSeconds"] < 0:
        yield "terminationGracePeriodSeconds"
    if (deadline := spec.get("activeDeadlineSeconds")) is not None and not 1 <= deadline < 2**31:
        yield "activeDeadlineSeconds"
    volumes = [volume.get("name", "") for volume in spec.get("volumes") or ()]
    if len({*volumes}) < len(volumes) or not all(_LABEL.fullmatch(name) for name in volumes):
        yield "volume names"
    if any(len(volume) != 2 for volume in spec.get("volumes") or ()):
        yield "a volume has one source"
    for container in init:
        if container.get("restartPolicy") != "Always" and any(
            container.get(field) for field in (*_PROBES, "lifecycle")
        ):
            yield f"plain init container {container['name']} has probes or hooks"
    for container in (*init, *regular):
        yield from _of_container(container, spec, volumes)
    yield from _of_host_ports(spec)


def _of_container(container: Json, spec: Json, volumes: list[str]) -> Iterator[str]:
    name = container["name"]
    if not container.get("image") or container["image"] != container["image"].strip():
        yield f"{name}: image"
    if container["imagePullPolicy"] not in ("Always", "IfNotPresent", "Never"):
        yield f"{name}: imagePullPolicy"
    paths = [mount.get("mountPath", "") for mount in container.get("volumeMounts") or ()]
    if len({*paths}) < len(paths) or not all(paths):
        yield f"{name}: mountPath"
    for mount in container.get("volumeMounts") or ():
        sub = mount.get("subPath", "")
        if mount.get("name") not in volumes or sub.startswith("/") or ".." in sub.split("/"):
            yield f"{name}: volumeMounts"
        if mount.get("mountPropagation") == "Bidirectional" and not (container.get("securityContext") or {}).get(
            "privileged"
        ):
            yield f"{name}: Bidirectional without privileged"
    for port in container.get("ports") or ():
        if not 1 <= port.get("containerPort", 0) <= 65535 or not 0 <= port.get("hostPort", 0) <= 65535:
            yield f"{name}: ports"
        if port["protocol"] not in ("TCP", "UDP", "SCTP"):
            yield f"{name}: protocol"
        if spec.get("hostNetwork") and port["hostPort"] != port["containerPort"]:
            yield f"{name}: hostPort with hostNetwork"
    for variable in container.get("env") or ():
        if not variable.get("name") or "=" in variable["name"] or (variable.get("value") and variable.get("valueFrom")):
            yield f"{name}: env"
    yield from _of_resources(container.get("resources") or {}, name)
    for field in _PROBES:
        if field in container:
            yield from _of_probe(container[field], field, name)
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict) and sum(handler in hook for handler in _HANDLERS) != 1:
            yield f"{name}: a hook has one handler"
    rules = container.get("restartPolicyRules") or ()
    if rules and not container.get("restartPolicy"):
        yield f"{name}: rules without a policy"


def _of_resources(resources: Json, name: str) -> Iterator[str]:
    limits = resources.get("limits") or {}
    for resource, text in (resources.get("requests") or {}).items():
        amount = Quantity.parse(str(text))
        if amount.nano < 0 or (resource in limits and amount > Quantity.parse(str(limits[resource]))):
            yield f"{name}: request of {resource}"
    if any(Quantity.parse(str(text)).nano < 0 for text in limits.values()):
        yield f"{name}: a negative limit"


def _of_probe(probe: Json, kind: str, name: str) -> Iterator[str]:
    if sum(handler in probe for handler in _HANDLERS) != 1:
        yield f"{name}: {kind} has one handler"
    if min(probe[field] for field in ("timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")) < 1:
        yield f"{name}: {kind} numbers"
    if probe.get("initialDelaySeconds", 0) < 0:
        yield f"{name}: {kind} delay"
    if kind != "readinessProbe" and probe["successThreshold"] != 1:
        yield f"{name}: {kind} successThreshold"
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and (kind == "readinessProbe" or grace < 1):
        yield f"{name}: {kind} grace"


def _of_host_ports(spec: Json) -> Iterator[str]:
    taken = [
        (port["protocol"], port.get("hostIP", ""), port["hostPort"])
        for container in spec.get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]
    if len({*taken}) < len(taken):
        yield "host ports are unique"
