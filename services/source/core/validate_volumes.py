"""Validation of volumes and of the mounts of one container."""

from __future__ import annotations

from typing import Any

from services.source.core.field_errors import FieldErrors, quote
from services.source.core.validate_env import validate_field_ref, validate_resource_ref
from shared.kube.quantity import Quantity
from shared.kube.validation_names import dns_label_errors, dns_subdomain_errors

JsonObject = dict[str, Any]

HOST_PATH_TYPES = (
    "",
    "DirectoryOrCreate",
    "Directory",
    "FileOrCreate",
    "File",
    "Socket",
    "CharDevice",
    "BlockDevice",
)
_VOLUME_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_MODE_ERROR = "must be a number between 0 and 0777 (octal), both inclusive"
_PROJECTIONS = (
    "secret",
    "configMap",
    "downwardAPI",
    "serviceAccountToken",
    "clusterTrustBundle",
    "podCertificate",
)


def validate_volumes(volumes: list[JsonObject], path: str, errors: FieldErrors) -> dict[str, JsonObject]:
    """All volumes of a pod; gives them back by name for the mounts."""
    found: dict[str, JsonObject] = {}
    for index, volume in enumerate(volumes):
        place, name = f"{path}[{index}]", volume.get("name", "")
        if not name:
            errors.required(f"{place}.name")
        else:
            errors.invalid_all(f"{place}.name", name, dns_label_errors(name))
            if name in found:
                errors.duplicate(f"{place}.name", name)
        found[name] = volume
        kinds = [field for field in volume if field != "name"]
        if not kinds:
            errors.required(place, "must specify a volume type")
        for extra in kinds[1:]:
            errors.forbidden(f"{place}.{extra}", "may not specify more than 1 volume type")
        for kind in kinds:
            _validate_source(kind, volume[kind], f"{place}.{kind}", errors)
    return found


def validate_mounts(container: JsonObject, path: str, volumes: dict[str, JsonObject], errors: FieldErrors) -> None:
    """volumeMounts and volumeDevices of one container."""
    paths: set[str] = set()
    privileged = bool((container.get("securityContext") or {}).get("privileged"))
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        place = f"{path}.volumeMounts[{index}]"
        _validate_name(mount, place, volumes, errors)
        target = mount.get("mountPath", "")
        if not target:
            errors.required(f"{place}.mountPath")
        elif target in paths:
            errors.invalid(f"{place}.mountPath", target, "must be unique")
        paths.add(target)
        for field in ("subPath", "subPathExpr"):
            if mount.get(field):
                _validate_inner_path(mount[field], f"{place}.{field}", errors)
        if mount.get("subPath") and mount.get("subPathExpr"):
            errors.invalid(
                f"{place}.subPathExpr", mount["subPathExpr"], "subPathExpr and subPath are mutually exclusive"
            )
        _validate_propagation(mount, place, errors, privileged=privileged)
    for index, device in enumerate(container.get("volumeDevices") or ()):
        place = f"{path}.volumeDevices[{index}]"
        _validate_name(device, place, volumes, errors)
        target = device.get("devicePath", "")
        if not target:
            errors.required(f"{place}.devicePath")
        elif target in paths:
            errors.invalid(f"{place}.devicePath", target, "must not already exist as a path in volumeMounts")
        volume = volumes.get(device.get("name", ""))
        if volume is not None and not {"persistentVolumeClaim", "ephemeral"} & set(volume):
            errors.invalid(
                f"{place}.name",
                device.get("name"),
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
            )


def validate_file_keys(container: JsonObject, path: str, volumes: dict[str, JsonObject], errors: FieldErrors) -> None:
    """Variables from files of a volume, which must be the pod's own."""
    for index, variable in enumerate(container.get("env") or ()):
        name = ((variable.get("valueFrom") or {}).get("fileKeyRef") or {}).get("volumeName")
        place = f"{path}.env[{index}].valueFrom.fileKeyRef.volumeName"
        if name and name not in volumes:
            errors.add(place, f"Not found: {quote(name)}")
        elif name and "emptyDir" not in volumes[name]:
            errors.invalid(place, name, "referenced volume must be of type emptyDir")


def _validate_name(mount: JsonObject, path: str, volumes: dict[str, JsonObject], errors: FieldErrors) -> None:
    name = mount.get("name", "")
    if not name:
        errors.required(f"{path}.name")
    elif name not in volumes:
        errors.add(f"{path}.name", f"Not found: {quote(name)}")


def _validate_propagation(mount: JsonObject, path: str, errors: FieldErrors, *, privileged: bool) -> None:
    propagation = mount.get("mountPropagation")
    errors.one_of(f"{path}.mountPropagation", propagation, ("None", "HostToContainer", "Bidirectional"))
    if propagation == "Bidirectional" and not privileged:
        errors.forbidden(
            f"{path}.mountPropagation",
            "Bidirectional mount propagation is available only to privileged containers",
        )
    recursive = mount.get("recursiveReadOnly")
    errors.one_of(f"{path}.recursiveReadOnly", recursive, ("Disabled", "IfPossible", "Enabled"))
    if recursive in ("IfPossible", "Enabled"):
        if not mount.get("readOnly"):
            errors.forbidden(f"{path}.recursiveReadOnly", "may only be specified when readOnly is true")
        if propagation not in (None, "None"):
            errors.forbidden(
                f"{path}.recursiveReadOnly",
                "may only be specified when mountPropagation is None or not specified",
            )


def _validate_source(kind: str, source: JsonObject, path: str, errors: FieldErrors) -> None:
    if "defaultMode" in source:
        _validate_mode(source, "defaultMode", path, errors)
    if kind == "emptyDir":
        _validate_empty_dir(source, path, errors)
    elif kind == "hostPath":
        if not source.get("path"):
            errors.required(f"{path}.path")
        elif ".." in source["path"].split("/"):
            errors.invalid(f"{path}.path", source["path"], "must not contain '..'")
        errors.one_of(f"{path}.type", source.get("type"), HOST_PATH_TYPES)
    elif kind in ("configMap", "secret"):
        _required_name(source, "name" if kind == "configMap" else "secretName", path, errors)
        _validate_items(source, path, errors, set())
    elif kind == "downwardAPI":
        _validate_downward(source, path, errors, set())
    elif kind == "projected":
        _validate_projected(source, path, errors)
    elif kind == "nfs":
        for field in ("server", "path"):
            if not source.get(field):
                errors.required(f"{path}.{field}")
        if source.get("path") and not source["path"].startswith("/"):
            errors.invalid(f"{path}.path", source["path"], "must be an absolute path")
    elif kind == "persistentVolumeClaim":
        _required_name(source, "claimName", path, errors)
    elif kind == "image":
        if not source.get("reference"):
            errors.required(f"{path}.reference")
        errors.one_of(f"{path}.pullPolicy", source.get("pullPolicy"), ("Always", "Never", "IfNotPresent"))


def _validate_empty_dir(source: JsonObject, path: str, errors: FieldErrors) -> None:
    if "sizeLimit" in source and Quantity.parse(source["sizeLimit"]).nano < 0:
        errors.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")
    medium = source.get("medium", "")
    if medium not in ("", "Memory", "HugePages") and not medium.startswith("HugePages-"):
        errors.unsupported(f"{path}.medium", medium, ("", "Memory", "HugePages", "HugePages-<size>"))


def _required_name(source: JsonObject, field: str, path: str, errors: FieldErrors) -> None:
    name = source.get(field, "")
    if not name:
        errors.required(f"{path}.{field}")
    else:
        errors.invalid_all(f"{path}.{field}", name, dns_subdomain_errors(name))


def _validate_mode(item: JsonObject, field: str, path: str, errors: FieldErrors) -> None:
    if field in item and not 0 <= item[field] <= 0o777:
        errors.invalid(f"{path}.{field}", item[field], _MODE_ERROR)


def _validate_items(source: JsonObject, path: str, errors: FieldErrors, paths: set[str]) -> None:
    for index, item in enumerate(source.get("items") or ()):
        place = f"{path}.items[{index}]"
        if not item.get("key"):
            errors.required(f"{place}.key")
        _validate_file_path(item, place, errors, paths)
        _validate_mode(item, "mode", place, errors)


def _validate_downward(source: JsonObject, path: str, errors: FieldErrors, paths: set[str]) -> None:
    for index, item in enumerate(source.get("items") or ()):
        place = f"{path}.items[{index}]"
        _validate_file_path(item, place, errors, paths)
        _validate_mode(item, "mode", place, errors)
        if "fieldRef" in item and "resourceFieldRef" in item:
            errors.invalid(
                f"{place}.resource",
                "resource",
                "fieldRef and resourceFieldRef can not be specified simultaneously",
            )
        elif "fieldRef" in item:
            validate_field_ref(item["fieldRef"], f"{place}.fieldRef", _VOLUME_FIELDS, errors)
        elif "resourceFieldRef" in item:
            validate_resource_ref(item["resourceFieldRef"], f"{place}.resourceFieldRef", errors, in_volume=True)
        else:
            errors.required(f"{place}.fieldRef", "one of fieldRef and resourceFieldRef is required")


def _validate_projected(source: JsonObject, path: str, errors: FieldErrors) -> None:
    paths: set[str] = set()
    for index, projection in enumerate(source.get("sources") or ()):
        place = f"{path}.sources[{index}]"
        kinds = [kind for kind in _PROJECTIONS if kind in projection]
        if not kinds:
            errors.required(place, "must specify a projection type")
        for extra in kinds[1:]:
            errors.forbidden(f"{place}.{extra}", "may not specify more than 1 volume type per source")
        for kind in kinds:
            inner, inner_place = projection[kind], f"{place}.{kind}"
            if kind in ("secret", "configMap"):
                _required_name(inner, "name", inner_place, errors)
                _validate_items(inner, inner_place, errors, paths)
            elif kind == "downwardAPI":
                _validate_downward(inner, inner_place, errors, paths)
            elif kind == "serviceAccountToken":
                _validate_file_path(inner, inner_place, errors, paths)
                seconds = inner.get("expirationSeconds", 3600)
                if seconds < 600:
                    errors.invalid(
                        f"{inner_place}.expirationSeconds",
                        seconds,
                        "may not specify a duration less than 10 minutes",
                    )
                elif seconds > 2**32:
                    errors.invalid(
                        f"{inner_place}.expirationSeconds",
                        seconds,
                        "may not specify a duration larger than 2^32 seconds",
                    )


def _validate_file_path(item: JsonObject, path: str, errors: FieldErrors, paths: set[str]) -> None:
    target = item.get("path", "")
    if not target:
        errors.required(f"{path}.path")
        return
    _validate_inner_path(target, f"{path}.path", errors)
    if target.startswith("..") and ".." not in target.split("/"):
        # Such names are the atomic writer's own.
        errors.invalid(f"{path}.path", target, "must not start with '..'")
    if target in paths:
        errors.invalid(f"{path}.path", target, "conflicting duplicate paths")
    paths.add(target)


def _validate_inner_path(target: str, path: str, errors: FieldErrors) -> None:
    if target.startswith("/"):
        errors.invalid(path, target, "must be a relative path")
    if ".." in target.split("/"):
        errors.invalid(path, target, "must not contain '..'")
