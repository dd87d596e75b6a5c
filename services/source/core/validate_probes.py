"""Validation of probes and of lifecycle hooks."""

from __future__ import annotations

import re
import signal
from typing import Any

from services.source.core.field_errors import FieldErrors
from shared.kube.validation_names import http_header_errors, port_name_errors, port_number_errors

JsonObject = dict[str, Any]

_REAL_TIME = re.compile(r"SIGRT(MIN\+([1-9]|1[0-5])|MAX-([1-9]|1[0-4]))")

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def validate_probes(container: JsonObject, path: str, errors: FieldErrors) -> None:
    """The three probes of one container."""
    for name in PROBES:
        if name in container:
            _validate_probe(container[name], f"{path}.{name}", name, errors)


def validate_lifecycle(lifecycle: JsonObject, path: str, grace_seconds: int, os_name: str, errors: FieldErrors) -> None:
    """postStart, preStop and stopSignal of one container."""
    for name in ("postStart", "preStop"):
        if name in lifecycle:
            _validate_handler(lifecycle[name], f"{path}.{name}", _HOOK_HANDLERS, grace_seconds, errors)
    if lifecycle.get("stopSignal"):
        if not os_name:
            errors.forbidden(f"{path}.stopSignal", "may not be set for containers with empty `spec.os.name`")
        elif not _is_signal(lifecycle["stopSignal"]):
            errors.invalid(f"{path}.stopSignal", lifecycle["stopSignal"], "must be a signal's name: SIGTERM")


def _is_signal(name: str) -> bool:
    """A name of Linux' signals; those of real time are counted from both ends: SIGRTMIN+1, SIGRTMAX-2."""
    return name in signal.Signals.__members__ or _REAL_TIME.fullmatch(name) is not None


def _validate_probe(probe: JsonObject, path: str, name: str, errors: FieldErrors) -> None:
    _validate_handler(probe, path, _PROBE_HANDLERS, 0, errors)
    for field in _COUNTS:
        errors.not_negative(f"{path}.{field}", probe.get(field))
    if name in ("livenessProbe", "startupProbe") and probe.get("successThreshold", 1) != 1:
        errors.invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")
    if "terminationGracePeriodSeconds" in probe:
        grace = probe["terminationGracePeriodSeconds"]
        if name == "readinessProbe":
            errors.invalid(f"{path}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")
        elif grace < 1:
            errors.invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")


def _validate_handler(
    handler: JsonObject, path: str, kinds: tuple[str, ...], grace_seconds: int, errors: FieldErrors
) -> None:
    given = [kind for kind in kinds if kind in handler]
    if not given:
        errors.required(path, "must specify a handler type")
    for extra in given[1:]:
        errors.forbidden(f"{path}.{extra}", "may not specify more than 1 handler type")
    for kind in given:
        action, place = handler[kind], f"{path}.{kind}"
        if kind == "exec":
            if not action.get("command"):
                errors.required(f"{place}.command")
        elif kind == "httpGet":
            _validate_http_get(action, place, errors)
        elif kind == "tcpSocket":
            _validate_port(action, f"{place}.port", errors)
        elif kind == "grpc":
            errors.invalid_all(f"{place}.port", action.get("port", 0), port_number_errors(action.get("port", 0)))
        else:
            seconds = action.get("seconds", 0)
            # kubelet 1.33: zero is allowed.
            if not 0 <= seconds <= max(grace_seconds, 0):
                errors.invalid(
                    f"{place}.seconds",
                    seconds,
                    f"must be non-negative and less than or equal to terminationGracePeriodSeconds ({grace_seconds})",
                )


def _validate_http_get(action: JsonObject, path: str, errors: FieldErrors) -> None:
    if not action.get("path"):
        errors.required(f"{path}.path")
    _validate_port(action, f"{path}.port", errors)
    errors.one_of(f"{path}.scheme", action.get("scheme"), ("HTTP", "HTTPS"))
    for index, header in enumerate(action.get("httpHeaders") or ()):
        name = header.get("name", "")
        errors.invalid_all(f"{path}.httpHeaders[{index}].name", name, http_header_errors(name))


def _validate_port(action: JsonObject, path: str, errors: FieldErrors) -> None:
    port = action.get("port")
    if port is None:
        errors.required(path)
    elif isinstance(port, int):
        errors.invalid_all(path, port, port_number_errors(port))
    else:
        errors.invalid_all(path, port, port_name_errors(str(port)))
