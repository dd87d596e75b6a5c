"""Validation of the security contexts of pods and containers."""

from __future__ import annotations

from typing import Any

from services.source.core.field_errors import FieldErrors
from shared.kube.validation_names import SYSCTL_FORMAT, is_sysctl_name

JsonObject = dict[str, Any]

_MAX_ID = 2**31 - 1
_ID_ERROR = f"must be between 0 and {_MAX_ID}, inclusive"
_PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")


def validate_pod_security(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    """spec.securityContext and the host namespaces."""
    context: JsonObject = spec.get("securityContext") or {}
    place = f"{path}.securityContext"
    _validate_common(context, place, errors)
    _validate_id(context, "fsGroup", place, errors)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= group <= _MAX_ID:
            errors.invalid(f"{place}.supplementalGroups[{index}]", group, _ID_ERROR)
    errors.one_of(f"{place}.fsGroupChangePolicy", context.get("fsGroupChangePolicy"), ("OnRootMismatch", "Always"))
    errors.one_of(f"{place}.supplementalGroupsPolicy", context.get("supplementalGroupsPolicy"), ("Merge", "Strict"))
    errors.one_of(f"{place}.seLinuxChangePolicy", context.get("seLinuxChangePolicy"), ("Recursive", "MountOption"))
    _validate_sysctls(context.get("sysctls") or [], spec, f"{place}.sysctls", errors)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        errors.invalid(
            f"{path}.shareProcessNamespace", True, "ShareProcessNamespace and HostPID cannot both be enabled"
        )


def validate_container_security(context: JsonObject, path: str, errors: FieldErrors, *, host_users: bool) -> None:
    """securityContext of one container."""
    _validate_common(context, path, errors)
    errors.one_of(f"{path}.procMount", context.get("procMount"), ("Default", "Unmasked"))
    if context.get("procMount") == "Unmasked" and host_users:
        errors.invalid(f"{path}.procMount", "Unmasked", "`hostUsers` must be false to use `Unmasked`")
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            errors.invalid(path, context, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
        added = (context.get("capabilities") or {}).get("add") or []
        if "CAP_SYS_ADMIN" in added or "SYS_ADMIN" in added:
            errors.invalid(
                path,
                context,
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
            )


def _validate_common(context: JsonObject, path: str, errors: FieldErrors) -> None:
    for field in ("runAsUser", "runAsGroup"):
        _validate_id(context, field, path, errors)
    if "seccompProfile" in context:
        _validate_profile(context["seccompProfile"], f"{path}.seccompProfile", "seccomp", errors)
    if "appArmorProfile" in context:
        _validate_profile(context["appArmorProfile"], f"{path}.appArmorProfile", "AppArmor", errors)


def _validate_id(context: JsonObject, field: str, path: str, errors: FieldErrors) -> None:
    value = context.get(field)
    if value is not None and not 0 <= value <= _MAX_ID:
        errors.invalid(f"{path}.{field}", value, _ID_ERROR)


def _validate_profile(profile: JsonObject, path: str, what: str, errors: FieldErrors) -> None:
    kind = profile.get("type", "")
    local = profile.get("localhostProfile")
    if not kind:
        errors.required(f"{path}.type", "type is required when a profile is set")
    else:
        errors.one_of(f"{path}.type", kind, _PROFILE_TYPES)
    if kind == "Localhost":
        if not local:
            errors.required(f"{path}.localhostProfile", f"must be set when {what} type is Localhost")
        elif what == "seccomp" and (local.startswith("/") or ".." in local.split("/")):
            errors.invalid(f"{path}.localhostProfile", local, "must be a relative path without '..'")
    elif local is not None:
        errors.invalid(f"{path}.localhostProfile", local, f"can only be set when {what} type is Localhost")


def _validate_sysctls(sysctls: list[JsonObject], spec: JsonObject, path: str, errors: FieldErrors) -> None:
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        place, name = f"{path}[{index}].name", sysctl.get("name", "")
        if not name:
            errors.required(place)
            continue
        if not is_sysctl_name(name):
            errors.invalid(place, name, f"must have at most 253 characters and match regex ^{SYSCTL_FORMAT}$")
        normal = name.replace("/", ".")
        if normal in seen:
            errors.duplicate(place, name)
        seen.add(normal)
        if spec.get("hostNetwork") and normal.startswith("net."):
            errors.invalid(place, name, "may not be specified when 'hostNetwork' is true")
        if spec.get("hostIPC") and normal.startswith(("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")):
            errors.invalid(place, name, "may not be specified when 'hostIPC' is true")
