"""A KubeletConfiguration file -> KubeletConfig: every wrong value, unknown key and key without effect at once."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from shared.runtime.config import API_VERSION, KIND, UNBOUNDED_PULLS, KubeletConfig
from shared.runtime.config_names import AS_IT_IS, WITHOUT_EFFECT
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
from shared.runtime.tls_names import TLS_VERSIONS

Path_ = tuple[str, ...]

EVICTION_SIGNALS = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "pid.available",
)
_RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")


def load_config(path: Path) -> tuple[KubeletConfig, list[str], list[str]]:
    """Read the file, YAML or JSON: (config, errors, warnings). Each text names file, line and key; every one
    is told at once. With errors the config is the default one. Never raises."""
    try:
        document, lines = _parse(path.read_bytes())
    except OSError as error:
        return KubeletConfig(), [f"{path}: {error.strerror}"], []
    except Wrong as error:
        return KubeletConfig(), [f"{path}:{error}"], []
    except (ValueError, yaml.YAMLError) as error:
        return KubeletConfig(), [f"{path}: {_one_line(error)}"], []
    reading = _Reading(path, lines)
    config = reading.read(document)
    return (KubeletConfig() if reading.errors else config), reading.errors, reading.warnings


class _Reading:
    def __init__(self, path: Path, lines: Mapping[Path_, int]) -> None:
        self._path = path
        self._lines = lines
        self.errors: list[str] = []
        self.warnings: list[str] = []

    def read(self, document: Any) -> KubeletConfig:
        if not isinstance(document, dict):
            self.errors.append(f"{self._path}: expected an object with apiVersion and kind, got {word(document)}")
            return KubeletConfig()
        for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
            if document.get(key) != wanted:
                found = f"got {json.dumps(document[key], default=str)}" if key in document else "it is missing"
                self._error((key,), f'must be "{wanted}", {found}')
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
        self.errors.sort(key=self._line_of)
        self.warnings.sort(key=self._line_of)
        return KubeletConfig(**found_values) if not self.errors else KubeletConfig()

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

    def _walk(self, value: Mapping[str, Any], place: Path_) -> None:
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
            elif _is_known_without_effect(here):
                if inner is not None and inner not in AS_IT_IS.get(".".join(here), ()):
                    self._warn(here, "has no effect in this version of podbus")
            else:
                names = known | (WITHOUT_EFFECT if not place else set())
                near = difflib.get_close_matches(key, names, 1, 0.6) or _same_letters(key, names)
                hint = f'; did you mean "{near[0]}"?' if near else ""
                self._warn(here, f"unknown field{hint}")

    def _error(self, place: Path_, text: str) -> None:
        self.errors.append(self._told(place, text))

    def _warn(self, place: Path_, text: str) -> None:
        self.warnings.append(self._told(place, text))

    def _line_of(self, told: str) -> int:
        number = told.removeprefix(f"{self._path}:").partition(":")[0]
        return int(number) if number.isdecimal() else 0

    def _told(self, place: Path_, text: str) -> str:
        line = self._lines.get(place)
        return f"{self._path}{f':{line}' if line else ''}: {'.'.join(place)}: {text}"


_PERIOD = duration(0.01, 86400, "from 10ms to 24h")
_FIELDS: dict[Path_, tuple[str, Reader]] = {
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
    ("seccompDefault",): ("seccomp_default", read_flag),
    ("resolvConf",): ("resolv_conf", read_file),
}
_ALL_PATHS = frozenset({*_FIELDS, ("serializeImagePulls",), ("mergeDefaultEvictionSettings",)})


def _is_known_without_effect(place: Path_) -> bool:
    return len(place) == 1 and place[0] in WITHOUT_EFFECT


# -- the file ---------------------------------------------------------------------------------------------------


def _parse(data: bytes) -> tuple[Any, dict[Path_, int]]:
    """The value, and the line of each key. Raises ValueError, yaml.YAMLError, or Wrong with the line."""
    text = data.decode()
    lines: dict[Path_, int] = {}
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text), lines
        except ValueError:
            pass  # YAML's own flow form begins like JSON
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, lines
        _note_lines(node, (), lines)
        return loader.construct_document(node), lines
    finally:
        loader.dispose()


def _note_lines(node: yaml.Node, place: Path_, lines: dict[Path_, int]) -> None:
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        here = (*place, str(key.value))
        line = key.start_mark.line + 1
        if here in lines:
            raise Wrong(f"{line}: {'.'.join(here)}: the key is there twice, first in line {lines[here]}")
        lines[here] = line
        _note_lines(value, here, lines)


def _at(document: Any, place: Path_) -> Any:
    for key in place:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def _same_letters(key: str, names: set[str] | frozenset[str]) -> list[str]:
    return [name for name in names if name.lower() == str(key).lower()]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
