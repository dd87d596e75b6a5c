"""Fields that Kubernetes knows and this version of podbus doesn't run yet: refused by name, never ignored.

An allow list, so that a field that nobody thought of is refused too. A field at its empty value ({}, [],
"", false, 0) asks for nothing and passes.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from services.source.core.field_errors import FieldErrors, child_key
from services.source.core.unsupported_volumes import refuse_unsupported_mounts, refuse_unsupported_volumes
from services.source.core.validate_resources import HUGE_PAGES

JsonObject = dict[str, Any]

MESSAGE = "not supported by this version of podbus"

_SPEC_RUN = frozenset(
    (
        "activeDeadlineSeconds",
        "containers",
        "dnsConfig",
        "dnsPolicy",
        "enableServiceLinks",
        "hostAliases",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "hostname",
        "imagePullSecrets",
        "hostnameOverride",
        "initContainers",
        "overhead",
        "readinessGates",
        "resources",
        "restartPolicy",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "subdomain",
        "terminationGracePeriodSeconds",
        "volumes",
    )
)
#: Read by schedulers and admission only: nothing to run on the node.
_SPEC_ELSEWHERE = frozenset(
    (
        "affinity",
        "automountServiceAccountToken",
        "nodeName",
        "nodeSelector",
        "os",
        "preemptionPolicy",
        "priority",
        "priorityClassName",
        "schedulerName",
        "tolerations",
        "topologySpreadConstraints",
    )
)
#: Validation says more about these.
_SPEC_FORBIDDEN = frozenset(
    ("ephemeralContainers", "resourceClaims", "schedulingGates", "serviceAccount", "serviceAccountName")
)
_SPEC = _SPEC_RUN | _SPEC_ELSEWHERE | _SPEC_FORBIDDEN
_SECURITY_OF_BOTH = frozenset(("appArmorProfile", "runAsGroup", "runAsNonRoot", "runAsUser", "seccompProfile"))
_POD_SECURITY = _SECURITY_OF_BOTH | {
    "fsGroup",
    "fsGroupChangePolicy",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "sysctls",
}
#: procMount: validation lets only Default pass without a user namespace.
_CONTAINER_SECURITY = _SECURITY_OF_BOTH | {
    "allowPrivilegeEscalation",
    "capabilities",
    "privileged",
    "procMount",
    "readOnlyRootFilesystem",
}
_CONTAINER = frozenset(
    (
        "args",
        "command",
        "env",
        "envFrom",
        "image",
        "imagePullPolicy",
        "lifecycle",
        "livenessProbe",
        "name",
        "ports",
        "readinessProbe",
        "resizePolicy",
        "resources",
        "restartPolicy",
        "restartPolicyRules",
        "securityContext",
        "startupProbe",
        "stdin",
        "stdinOnce",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "tty",
        "volumeMounts",
        "workingDir",
    )
)
_RESOURCES = frozenset(("cpu", "memory", "ephemeral-storage"))


def refuse_unsupported(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    """`spec` conforms to v1.PodSpec and has no defaults yet."""
    for field, value in spec.items():
        place = f"{path}.{field}"
        if field == "hostUsers":
            if value is False:
                errors.add(place, MESSAGE, hint="Docker Engine has no user namespace per pod")
        elif field == "securityContext":
            _refuse_others(value, _POD_SECURITY, place, errors)
        elif field not in _SPEC and not _is_empty(value):
            errors.add(place, MESSAGE)
    refuse_unsupported_volumes(spec.get("volumes") or [], f"{path}.volumes", MESSAGE, errors)
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            _refuse_in_container(container, f"{path}.{kind}[{index}]", errors)


def _refuse_in_container(container: JsonObject, path: str, errors: FieldErrors) -> None:
    _refuse_others(container, _CONTAINER, path, errors)
    _refuse_others(container.get("securityContext") or {}, _CONTAINER_SECURITY, f"{path}.securityContext", errors)
    refuse_unsupported_mounts(container.get("volumeMounts") or [], f"{path}.volumeMounts", MESSAGE, errors)
    resources = container.get("resources") or {}
    if resources.get("claims"):
        errors.add(f"{path}.resources.claims", MESSAGE)
    for side in ("requests", "limits"):
        for name in resources.get(side) or {}:
            if name not in _RESOURCES and not name.startswith(HUGE_PAGES) and "/" not in name:
                errors.add(child_key(f"{path}.resources.{side}", name), MESSAGE)


def _refuse_others(given: JsonObject, known: Set[str], path: str, errors: FieldErrors) -> None:
    for field, value in given.items():
        if field not in known and not _is_empty(value):
            errors.add(f"{path}.{field}", MESSAGE)


def _is_empty(value: Any) -> bool:
    return not value
