"""The API's defaults for a pod (kubelet 1.36: SetObjectDefaults_Pod), written into the conformed object."""

from __future__ import annotations

import re
from typing import Any

from shared.kube.quantity import Quantity

JsonObject = dict[str, Any]

DEFAULT_MODE = 0o644
_TOKEN_SECONDS = 3600
_SEPARATED = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    r"(?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9.-]*[a-zA-Z0-9]|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?"
    rf"{_SEPARATED}(?:/{_SEPARATED})*(?::(?P<tag>\w[\w.-]{{0,127}}))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
_VOLUMES_WITH_MODE = ("configMap", "secret", "downwardAPI", "projected")


def apply_pod_defaults(pod: JsonObject) -> None:
    """Set what the manifest left out. Changes `pod`, which must conform to the types of v1.Pod."""
    spec: JsonObject = pod.setdefault("spec", {})
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("securityContext", {})
    if "serviceAccount" in spec and not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            _default_container(container, host_network=spec.get("hostNetwork") is True)
    if "overhead" in spec:
        spec["overhead"] = _rounded(spec["overhead"])
    _default_resources(spec.get("resources"), copy_limits=False)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def default_pull_policy(image: str) -> str:
    """Always for the tag "latest" (also an implied one), else IfNotPresent; so too when the name is no
    reference."""
    match = _REFERENCE.fullmatch(image) if len(image) < 4096 else None
    if match is None:
        return "IfNotPresent"
    tag = match["tag"] or ("" if match["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def _default_container(container: JsonObject, *, host_network: bool) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = default_pull_policy(container.get("image", ""))
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if host_network and not port.get("hostPort") and port.get("containerPort"):
            port["hostPort"] = port["containerPort"]
    for variable in container.get("env") or ():
        _default_field_ref(variable.get("valueFrom") or {})
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            _default_probe(container[name])
    for hook in ("postStart", "preStop"):
        handler = (container.get("lifecycle") or {}).get(hook) or {}
        _default_http_get(handler)
        if handler.get("sleep") is not None:
            # Go's encoder always writes it.
            handler["sleep"].setdefault("seconds", 0)
    # Go's encoder always writes it.
    _default_resources(container.setdefault("resources", {}), copy_limits=True)


def _default_probe(probe: JsonObject) -> None:
    for field, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        if not probe.get(field):
            probe[field] = value
    _default_http_get(probe)
    if "grpc" in probe:
        probe["grpc"].setdefault("service", "")


def _default_http_get(handler: JsonObject) -> None:
    action = handler.get("httpGet")
    if action is not None:
        action["path"] = action.get("path") or "/"
        action["scheme"] = action.get("scheme") or "HTTP"


def _default_field_ref(source: JsonObject) -> None:
    if "fieldRef" in source and not source["fieldRef"].get("apiVersion"):
        source["fieldRef"]["apiVersion"] = "v1"


def _default_resources(resources: JsonObject | None, *, copy_limits: bool) -> None:
    if resources is None:
        return
    for name in ("limits", "requests"):
        if name in resources:
            resources[name] = _rounded(resources[name])
    if copy_limits and resources.get("limits"):
        # A limit without a request is the request too.
        resources["requests"] = {**resources["limits"], **resources.get("requests", {})}


def _rounded(amounts: dict[str, str]) -> dict[str, str]:
    return {name: str(Quantity.parse(text).round_up_to_milli()) for name, text in amounts.items()}


def _default_volume(volume: JsonObject) -> None:
    if not any(field != "name" for field in volume):
        volume["emptyDir"] = {}
    for name in _VOLUMES_WITH_MODE:
        if name in volume:
            volume[name].setdefault("defaultMode", DEFAULT_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    if "image" in volume and not volume["image"].get("pullPolicy"):
        volume["image"]["pullPolicy"] = default_pull_policy(volume["image"].get("reference", ""))
    for item in (volume.get("downwardAPI") or {}).get("items") or ():
        _default_field_ref(item)
    for source in (volume.get("projected") or {}).get("sources") or ():
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            _default_field_ref(item)
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", _TOKEN_SECONDS)
