"""Validation of env and envFrom, and of the references that volumes share with them."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from services.source.core.field_errors import FieldErrors
from shared.kube.quantity import Quantity
from shared.kube.validation_names import config_key_errors, env_name_errors, qualified_name_errors

JsonObject = dict[str, Any]

#: What a fieldRef of a variable may name (kubelet 1.36); labels and annotations only with a subscript.
ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_SUBSCRIPT = re.compile(r"(metadata\.(?:labels|annotations))\['(.*)'\]", re.DOTALL)
_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_MEMORY_DIVISORS = frozenset(
    Quantity.parse(text).nano
    for text in ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
)
_CPU_DIVISORS = frozenset(Quantity.parse(text).nano for text in ("1m", "1"))
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def validate_env(variables: list[JsonObject], path: str, errors: FieldErrors) -> None:
    """The variables of one container."""
    for index, variable in enumerate(variables):
        place = f"{path}[{index}]"
        name = variable.get("name", "")
        if not name:
            errors.required(f"{place}.name")
        else:
            errors.invalid_all(f"{place}.name", name, env_name_errors(name))
        if "valueFrom" in variable:
            if variable.get("value"):
                errors.invalid(f"{place}.valueFrom", "", "may not be specified when `value` is not empty")
            _validate_source(variable["valueFrom"], f"{place}.valueFrom", errors)


def validate_env_from(sources: list[JsonObject], path: str, errors: FieldErrors) -> None:
    """The envFrom of one container."""
    for index, source in enumerate(sources):
        place = f"{path}[{index}]"
        if source.get("prefix"):
            errors.invalid_all(f"{place}.prefix", source["prefix"], env_name_errors(source["prefix"]))
        given = [name for name in ("configMapRef", "secretRef") if name in source]
        if not given:
            errors.invalid(place, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            errors.invalid(place, "", "may not have more than one field specified at a time")
        for name in given:
            if not source[name].get("name"):
                errors.required(f"{place}.{name}.name")


def validate_field_ref(ref: JsonObject, path: str, allowed: Collection[str], errors: FieldErrors) -> None:
    """A fieldRef that may name the fields of `allowed`, and one label or annotation by subscript."""
    if not ref.get("apiVersion"):
        errors.required(f"{path}.apiVersion")
    elif ref["apiVersion"] != "v1":
        errors.unsupported(f"{path}.apiVersion", ref["apiVersion"], ("v1",))
    field = ref.get("fieldPath", "")
    if not field:
        errors.required(f"{path}.fieldPath")
        return
    match = _SUBSCRIPT.fullmatch(field)
    if match:
        key = match[2] if match[1] == "metadata.labels" else match[2].lower()
        errors.invalid_all(f"{path}.fieldPath", field, qualified_name_errors(key))
    elif field not in allowed:
        errors.unsupported(
            f"{path}.fieldPath",
            field,
            (*allowed, "metadata.labels['<KEY>']", "metadata.annotations['<KEY>']"),
        )


def validate_resource_ref(ref: JsonObject, path: str, errors: FieldErrors, *, in_volume: bool) -> None:
    """A resourceFieldRef; in a volume it must name its container."""
    if in_volume and not ref.get("containerName"):
        errors.required(f"{path}.containerName")
    resource = ref.get("resource", "")
    if not resource:
        errors.required(f"{path}.resource")
        return
    side, _, name = resource.partition(".")
    if side not in ("limits", "requests") or not (name in _RESOURCES or name.startswith("hugepages-")):
        names = [f"{side}.{name}" for side in ("limits", "requests") for name in _RESOURCES]
        errors.unsupported(f"{path}.resource", resource, names)
        return
    divisor = Quantity.parse(ref.get("divisor", "0"))
    if divisor.is_zero():
        return
    if name == "cpu":
        if divisor.nano not in _CPU_DIVISORS:
            errors.invalid(
                f"{path}.divisor",
                str(divisor),
                "only divisor's values 1m and 1 are supported with the cpu resource",
            )
    elif divisor.nano not in _MEMORY_DIVISORS:
        errors.invalid(
            f"{path}.divisor",
            str(divisor),
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with"
            f" the {name} resource",
        )


def _validate_source(source: JsonObject, path: str, errors: FieldErrors) -> None:
    given = [name for name in _SOURCES if name in source]
    if not given:
        errors.invalid(path, "", "must specify one of: " + ", ".join(f"`{name}`" for name in _SOURCES))
    elif len(given) > 1:
        errors.invalid(path, "", "may not have more than one field specified at a time")
    if "fieldRef" in source:
        validate_field_ref(source["fieldRef"], f"{path}.fieldRef", ENV_FIELDS, errors)
    if "resourceFieldRef" in source:
        validate_resource_ref(source["resourceFieldRef"], f"{path}.resourceFieldRef", errors, in_volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            place, ref = f"{path}.{name}", source[name]
            if not ref.get("name"):
                errors.required(f"{place}.name")
            _validate_key(ref, place, errors)
    if "fileKeyRef" in source:
        place, ref = f"{path}.fileKeyRef", source["fileKeyRef"]
        for field in ("volumeName", "path"):
            if not ref.get(field):
                errors.required(f"{place}.{field}")
        if not ref.get("key"):
            errors.required(f"{place}.key")
        else:
            errors.invalid_all(f"{place}.key", ref["key"], env_name_errors(ref["key"]))
        if str(ref.get("path", "")).startswith("/") or ".." in str(ref.get("path", "")).split("/"):
            errors.invalid(f"{place}.path", ref["path"], "must be a relative path without '..'")


def _validate_key(ref: JsonObject, path: str, errors: FieldErrors) -> None:
    if not ref.get("key"):
        errors.required(f"{path}.key")
    else:
        errors.invalid_all(f"{path}.key", ref["key"], config_key_errors(ref["key"]))
