"""A KubeletConfiguration file -> KubeletConfig: every wrong value, unknown key and key without effect at once."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shared.runtime.config import API_VERSION, KIND, UNBOUNDED_PULLS, KubeletConfig
from shared.runtime.config_checks import EVICTION_SIGNALS, wrong_values
from shared.runtime.config_files import Layer, Origin, Place, drop_ins, merged, read_layer
from shared.runtime.config_layers import flag_layers, without_replaced
from shared.runtime.config_names import REFUSED, WITHOUT_EFFECT, has_no_effect, refusal
from shared.runtime.config_values import (
    Reader,
    Wrong,
    check_amount,
    check_threshold,
    choice,
    duration,
    mapping,
    read_address,
    read_addresses,
    read_bytes,
    read_ciphers,
    read_driver,
    read_file,
    read_flag,
    read_headers,
    read_sysctls,
    read_taints,
    read_text,
    read_url,
    whole,
    word,
)
from shared.runtime.feature_gates import read_gates
from shared.runtime.tls_names import TLS_VERSIONS

_RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")


def load_config(
    path: Path | None, directory: Path | None = None, flags: Mapping[str, str] | None = None
) -> tuple[KubeletConfig, list[str], list[str]]:
    """Read the file and its drop-ins, YAML or JSON, and lay the flags (without dashes) over them: (config, errors,
    warnings). Each text names file, line and key, or the flag; every one is told at once. With errors the config is
    the default one. Never raises."""
    layers: list[Layer] = []
    errors: list[str] = []
    try:
        files = ([path] if path is not None else []) + (drop_ins(directory) if directory is not None else [])
    except OSError as error:
        return KubeletConfig(), [f"{error.filename or directory}: {error.strerror}"], []
    for file in files:
        try:
            layer = read_layer(file)
        except Wrong as error:
            errors += error.texts
            continue
        faults = _faults_of_head(layer)
        errors += faults
        if not faults:
            layers.append(layer)
    of_flags, unread = flag_layers(flags or {})
    reading = _Reading(layers, of_flags)
    config = reading.read()
    errors += [*unread, *reading.errors]
    return (KubeletConfig() if errors else config), errors, reading.warnings


def _faults_of_head(layer: Layer) -> list[str]:
    """Every file says what it is."""
    document = layer.document
    if not isinstance(document, dict):
        return [f"{layer.name}: expected an object with apiVersion and kind, got {word(document)}"]
    faults = []
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.get(key) != wanted:
            found = f"got {json.dumps(document[key], default=str)}" if key in document else "it is missing"
            origin = Origin(name=layer.name, line=layer.lines.get((key,), 0))
            faults.append(f'{origin}: {key}: must be "{wanted}", {found}')
    return faults


class _Reading:
    def __init__(self, files: Sequence[Layer], flags: Sequence[Layer]) -> None:
        document, origins = merged(files)
        names = [layer.name.removeprefix("--") for layer in flags]
        self._document, of_flags = merged([Layer("", without_replaced(document, names)), *flags])
        self._origins = {
            **origins,
            **{place: replace(one, order=one.order + len(files)) for place, one in of_flags.items()},
        }
        self._errors: list[tuple[Place, str]] = []
        self._warnings: list[tuple[Place, str]] = []

    @property
    def errors(self) -> list[str]:
        return self._told(self._errors)

    @property
    def warnings(self) -> list[str]:
        return self._told(self._warnings)

    def read(self) -> KubeletConfig:
        document = self._document
        self._walk(document, ())
        found_values: dict[str, Any] = {}
        for place, (name, read) in _FIELDS.items():
            value = _at(document, place)
            if value is None or value == "":
                continue
            try:
                result = read(value)
            except Wrong as error:
                for text in error.texts:
                    self._error(place, text)
            else:
                if result is not None:
                    found_values[name] = result
        self._combine(document, found_values)
        for place, text in wrong_values(document):
            self._error(place, text)
        return KubeletConfig(**found_values) if not self._errors else KubeletConfig()

    def _combine(self, document: Mapping[str, Any], found: dict[str, Any]) -> None:
        serial = document.get("serializeImagePulls")
        if serial is not None and not isinstance(serial, bool):
            self._error(("serializeImagePulls",), f"must be true or false, got {word(serial)}")
        elif serial is True and found.get("max_parallel_pulls", 1) > 1:
            self._error(("maxParallelImagePulls",), "cannot be larger than 1 unless serializeImagePulls is false")
        elif serial is False:
            found.setdefault("max_parallel_pulls", UNBOUNDED_PULLS)
        if "node_status_seconds" in found:
            found.setdefault("node_report_seconds", found["node_status_seconds"])
        default = KubeletConfig()
        low = found.get("image_gc_low_percent", default.image_gc_low_percent)
        if found.keys() & {"image_gc_low_percent", "image_gc_high_percent"} and low >= (
            high := found.get("image_gc_high_percent", default.image_gc_high_percent)
        ):
            self._error(("imageGCLowThresholdPercent",), f"must be less than imageGCHighThresholdPercent, {high}")
        if (
            0
            < found.get("image_max_age_seconds", 0)
            <= found.get("image_min_age_seconds", default.image_min_age_seconds)
        ):
            self._error(("imageMaximumGCAge",), "must be greater than imageMinimumGCAge")
        merge = document.get("mergeDefaultEvictionSettings")
        if merge is not None and not isinstance(merge, bool):
            self._error(("mergeDefaultEvictionSettings",), f"must be true or false, got {word(merge)}")
        elif merge is True and "eviction_hard" in found:
            found["eviction_hard"] = {**KubeletConfig().eviction_hard, **found["eviction_hard"]}

    def _walk(self, value: Mapping[str, Any], place: Place) -> None:
        """Warn of keys that are unknown or have no effect, one level at a time."""
        known = {path[len(place)] for path in _ALL_PATHS if path[: len(place)] == place and len(path) > len(place)}
        if not place:
            known |= {"apiVersion", "kind"}
        for key, inner in value.items():
            here = (*place, key)
            if key in known:
                if here in _ALL_PATHS:
                    continue
                if isinstance(inner, dict):
                    self._walk(inner, here)
                elif inner is not None and here not in (("apiVersion",), ("kind",)):
                    self._error(here, f"must be an object, got {word(inner)}")
            elif not place and key in REFUSED:
                if text := refusal(key, inner):
                    self._error(here, text)
            elif not place and key in WITHOUT_EFFECT:
                if has_no_effect(key, inner):
                    self._warn(here, f"has no effect: {WITHOUT_EFFECT[key]}")
            else:
                names = known | (WITHOUT_EFFECT.keys() | REFUSED.keys() if not place else set())
                near = difflib.get_close_matches(key, names, 1, 0.6) or _same_letters(key, names)
                hint = f'; did you mean "{near[0]}"?' if near else ""
                self._warn(here, f"unknown field{hint}")

    def _error(self, place: Place, text: str) -> None:
        self._errors.append((place, text))

    def _warn(self, place: Place, text: str) -> None:
        self._warnings.append((place, text))

    def _told(self, texts: Iterable[tuple[Place, str]]) -> list[str]:
        """As they stand in the files."""
        placed = [(self._origin(place), f"{'.'.join(map(str, place))}: {text}") for place, text in texts]
        placed.sort(key=lambda one: (one[0].order, one[0].line))
        return [f"{origin}: {text}" for origin, text in placed]

    def _origin(self, place: Place) -> Origin:
        while place and place not in self._origins:
            place = place[:-1]
        return self._origins.get(place, Origin())


_PERIOD = duration(0.01, 86400, "from 10ms to 24h")
_FIELDS: dict[Place, tuple[str, Reader]] = {
    ("address",): ("address", read_address),
    ("port",): ("port", whole(1, 65535, zero_is_default=True)),
    ("readOnlyPort",): ("read_only_port", whole(0, 65535)),
    ("enableDebuggingHandlers",): ("debugging_handlers", read_flag),
    ("enableSystemLogHandler",): ("system_log_handler", read_flag),
    ("enableDebugFlagsHandler",): ("debug_flags_handler", read_flag),
    ("healthzBindAddress",): ("healthz_bind_address", read_address),
    ("healthzPort",): ("healthz_port", whole(0, 65535)),
    ("staticPodPath",): ("static_pod_path", read_file),
    ("fileCheckFrequency",): ("file_check_seconds", _PERIOD),
    ("staticPodURL",): ("static_pod_url", read_url),
    ("staticPodURLHeader",): ("static_pod_url_header", read_headers),
    ("httpCheckFrequency",): ("http_check_seconds", _PERIOD),
    ("streamingConnectionIdleTimeout",): ("streaming_idle_seconds", _PERIOD),
    ("syncFrequency",): ("sync_seconds", _PERIOD),
    ("tlsCertFile",): ("tls_cert_file", read_file),
    ("tlsPrivateKeyFile",): ("tls_private_key_file", read_file),
    ("authentication", "x509", "clientCAFile"): ("client_ca_file", read_file),
    ("tlsMinVersion",): ("tls_min_version", choice(*TLS_VERSIONS)),
    ("tlsCipherSuites",): ("tls_cipher_suites", read_ciphers),
    ("authentication", "anonymous", "enabled"): ("anonymous", read_flag),
    ("authentication", "webhook", "enabled"): ("token_webhook", read_flag),
    ("authentication", "webhook", "cacheTTL"): ("token_webhook_seconds", _PERIOD),
    ("authorization", "mode"): ("authorization_mode", choice("Webhook", "AlwaysAllow")),
    ("authorization", "webhook", "cacheAuthorizedTTL"): ("authorized_seconds", _PERIOD),
    ("authorization", "webhook", "cacheUnauthorizedTTL"): ("unauthorized_seconds", _PERIOD),
    ("maxPods",): ("max_pods", whole(1, 1 << 20, zero_is_default=True)),
    ("podsPerCore",): ("pods_per_core", whole(0, 1 << 20)),
    ("cgroupDriver",): ("cgroup_driver", read_driver),
    ("cgroupRoot",): ("cgroup_root", read_file),
    ("systemReserved",): ("system_reserved", mapping(_RESERVABLE, check_amount)),
    ("kubeReserved",): ("kube_reserved", mapping(_RESERVABLE, check_amount)),
    ("evictionHard",): ("eviction_hard", mapping(EVICTION_SIGNALS, check_threshold)),
    ("nodeStatusUpdateFrequency",): ("node_status_seconds", _PERIOD),
    ("nodeStatusReportFrequency",): ("node_report_seconds", _PERIOD),
    ("nodeLeaseDurationSeconds",): ("node_lease_duration", whole(1, 1 << 20, zero_is_default=True)),
    ("nodeStatusMaxImages",): ("node_max_images", whole(-1, 1 << 20)),
    ("registerNode",): ("register_node", read_flag),
    ("registerWithTaints",): ("register_with_taints", read_taints),
    ("providerID",): ("provider_id", read_text),
    ("crashLoopBackOff", "maxContainerRestartPeriod"): (
        "max_restart_period_seconds",
        duration(1, 300, "from 1s to 300s"),
    ),
    ("maxParallelImagePulls",): ("max_parallel_pulls", whole(1, 1000)),
    ("imagePullCredentialsVerificationPolicy",): (
        "pull_verification",
        choice("NeverVerifyPreloadedImages", "NeverVerify", "AlwaysVerify"),
    ),
    ("imageGCHighThresholdPercent",): ("image_gc_high_percent", whole(0, 100)),
    ("imageGCLowThresholdPercent",): ("image_gc_low_percent", whole(0, 100)),
    ("imageMinimumGCAge",): ("image_min_age_seconds", duration(0.01, 10 * 365 * 86400, "from 10ms to ten years")),
    ("imageMaximumGCAge",): ("image_max_age_seconds", duration(0.01, 10 * 365 * 86400, "from 10ms to ten years")),
    ("podPidsLimit",): ("pod_pids_limit", whole(-1, 1 << 22, zero_is_default=True)),
    ("containerLogMaxSize",): ("log_max_bytes", read_bytes),
    ("containerLogMaxFiles",): ("log_max_files", whole(2, 10000)),
    ("clusterDNS",): ("cluster_dns", read_addresses),
    ("clusterDomain",): ("cluster_domain", read_text),
    ("allowedUnsafeSysctls",): ("allowed_unsafe_sysctls", read_sysctls),
    ("featureGates",): ("feature_gates", read_gates),
    ("seccompDefault",): ("seccomp_default", read_flag),
    ("resolvConf",): ("resolv_conf", read_file),
}
EFFECTIVE = frozenset({place[0] for place in _FIELDS} | {"serializeImagePulls", "mergeDefaultEvictionSettings"})
"""Fields that do something here."""
_ALL_PATHS = frozenset({*_FIELDS, ("serializeImagePulls",), ("mergeDefaultEvictionSettings",)})


def _at(document: Any, place: Place) -> Any:
    for key in place:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def _same_letters(key: str, names: set[str] | frozenset[str]) -> list[str]:
    return [name for name in names if name.lower() == str(key).lower()]
