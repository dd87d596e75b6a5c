"""Flags of `podbus up` for fields of the KubeletConfiguration, named as the kubelet's: a flag wins over every file.

The command's parser imports this: nothing that takes time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Parse = Callable[[str], Any]


def _whole(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(f'must be a whole number, got "{text}"')
    return int(text)


def _truth(text: str) -> bool:
    """As Go's strconv.ParseBool."""
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise ValueError(f'must be true or false, got "{text}"')


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _pairs(sign: str) -> Parse:
    def parse(text: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for part in _names(text):
            name, found_sign, value = part.partition(sign)
            if not found_sign or not name.strip():
                raise ValueError(f'must be NAME{sign}VALUE,..., got "{part}"')
            found[name.strip()] = value.strip()
        return found

    return parse


def _gates(text: str) -> dict[str, bool]:
    return {name: _truth(value) for name, value in _pairs("=")(text).items()}


def _taints(text: str) -> list[dict[str, str]]:
    """KEY[=VALUE]:EFFECT"""
    taints = []
    for part in _names(text):
        rest, colon, effect = part.rpartition(":")
        if not colon:
            raise ValueError(f'must be KEY[=VALUE]:EFFECT,..., got "{part}"')
        key, _, value = rest.partition("=")
        taints.append({"key": key, "value": value, "effect": effect})
    return taints


class ConfigFlag(NamedTuple):
    field: str
    """With points where it's inside an object."""
    form: str
    parse: Parse = str
    """Raises ValueError."""

    @property
    def place(self) -> tuple[str, ...]:
        return tuple(self.field.split("."))


CONFIG_FLAGS: Mapping[str, ConfigFlag] = {
    "address": ConfigFlag("address", "IP"),
    "allowed-unsafe-sysctls": ConfigFlag("allowedUnsafeSysctls", "NAME,...", _names),
    "anonymous-auth": ConfigFlag("authentication.anonymous.enabled", "BOOL", _truth),
    "authentication-token-webhook": ConfigFlag("authentication.webhook.enabled", "BOOL", _truth),
    "authorization-mode": ConfigFlag("authorization.mode", "MODE"),
    "cgroup-driver": ConfigFlag("cgroupDriver", "NAME"),
    "cgroup-root": ConfigFlag("cgroupRoot", "PATH"),
    "client-ca-file": ConfigFlag("authentication.x509.clientCAFile", "PATH"),
    "cluster-dns": ConfigFlag("clusterDNS", "IP,...", _names),
    "cluster-domain": ConfigFlag("clusterDomain", "NAME"),
    "container-log-max-files": ConfigFlag("containerLogMaxFiles", "N", _whole),
    "container-log-max-size": ConfigFlag("containerLogMaxSize", "SIZE"),
    "cpu-manager-policy": ConfigFlag("cpuManagerPolicy", "NAME"),
    "eviction-hard": ConfigFlag("evictionHard", "SIGNAL<VALUE,...", _pairs("<")),
    "fail-swap-on": ConfigFlag("failSwapOn", "BOOL", _truth),
    "feature-gates": ConfigFlag("featureGates", "NAME=BOOL,...", _gates),
    "file-check-frequency": ConfigFlag("fileCheckFrequency", "TIME"),
    "healthz-bind-address": ConfigFlag("healthzBindAddress", "IP"),
    "healthz-port": ConfigFlag("healthzPort", "N", _whole),
    "http-check-frequency": ConfigFlag("httpCheckFrequency", "TIME"),
    "image-gc-high-threshold": ConfigFlag("imageGCHighThresholdPercent", "N", _whole),
    "image-gc-low-threshold": ConfigFlag("imageGCLowThresholdPercent", "N", _whole),
    "kube-reserved": ConfigFlag("kubeReserved", "NAME=AMOUNT,...", _pairs("=")),
    "manifest-url": ConfigFlag("staticPodURL", "URL"),
    "max-pods": ConfigFlag("maxPods", "N", _whole),
    "minimum-image-ttl-duration": ConfigFlag("imageMinimumGCAge", "TIME"),
    "node-status-max-images": ConfigFlag("nodeStatusMaxImages", "N", _whole),
    "node-status-update-frequency": ConfigFlag("nodeStatusUpdateFrequency", "TIME"),
    "pod-max-pids": ConfigFlag("podPidsLimit", "N", _whole),
    "pods-per-core": ConfigFlag("podsPerCore", "N", _whole),
    "provider-id": ConfigFlag("providerID", "ID"),
    "read-only-port": ConfigFlag("readOnlyPort", "N", _whole),
    "register-node": ConfigFlag("registerNode", "BOOL", _truth),
    "register-with-taints": ConfigFlag("registerWithTaints", "TAINT,...", _taints),
    "resolv-conf": ConfigFlag("resolvConf", "PATH"),
    "rotate-certificates": ConfigFlag("rotateCertificates", "BOOL", _truth),
    "seccomp-default": ConfigFlag("seccompDefault", "BOOL", _truth),
    "serialize-image-pulls": ConfigFlag("serializeImagePulls", "BOOL", _truth),
    "streaming-connection-idle-timeout": ConfigFlag("streamingConnectionIdleTimeout", "TIME"),
    "sync-frequency": ConfigFlag("syncFrequency", "TIME"),
    "system-reserved": ConfigFlag("systemReserved", "NAME=AMOUNT,...", _pairs("=")),
    "tls-cert-file": ConfigFlag("tlsCertFile", "PATH"),
    "tls-cipher-suites": ConfigFlag("tlsCipherSuites", "NAME,...", _names),
    "tls-min-version": ConfigFlag("tlsMinVersion", "VERSION"),
    "tls-private-key-file": ConfigFlag("tlsPrivateKeyFile", "PATH"),
    "topology-manager-policy": ConfigFlag("topologyManagerPolicy", "NAME"),
}
"""By name, without the dashes. Those that people pass to a kubelet; what isn't here goes into a drop-in."""

MERGED = frozenset({"featureGates"})
"""Where a flag adds to the file's entries; any other map or list of a flag is all there is."""
