"""Validation of metadata, and of labels and selectors wherever they stand."""

from __future__ import annotations

import re
from typing import Any

from services.source.core.field_errors import FieldErrors, child_key
from shared.kube.validation_names import (
    dns_label_errors,
    dns_subdomain_errors,
    label_value_errors,
    qualified_name_errors,
)

JsonObject = dict[str, Any]

#: Kubernetes' bound for all annotations of an object, in bytes.
MAX_ANNOTATIONS = 256 * 1024
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
#: A UID becomes a bus subject's token and a directory's name.
_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}", re.ASCII)


def validate_object_meta(meta: JsonObject, path: str, errors: FieldErrors) -> None:
    """The rules for the metadata of pods, ConfigMaps and Secrets."""
    name = meta.get("name", "")
    if not name:
        hint = "generateName is not used for manifests" if meta.get("generateName") else ""
        errors.required(f"{path}.name", "name is needed", hint=hint)
    else:
        errors.invalid_all(f"{path}.name", name, dns_subdomain_errors(name))
    if meta.get("namespace"):
        errors.invalid_all(f"{path}.namespace", meta["namespace"], dns_label_errors(meta["namespace"]))
    if meta.get("uid") and not _UID.fullmatch(meta["uid"]):
        errors.invalid(
            f"{path}.uid",
            meta["uid"],
            "must consist of at most 128 letters, digits, '-' and '_', and start with a letter or a digit",
        )
    validate_labels(meta.get("labels") or {}, f"{path}.labels", errors)
    _validate_annotations(meta.get("annotations") or {}, f"{path}.annotations", errors)
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if field in meta:
            errors.forbidden(f"{path}.{field}", "a manifest can't set it", hint="remove the file to end the pod")
    for index, owner in enumerate(meta.get("ownerReferences") or ()):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                errors.required(f"{path}.ownerReferences[{index}].{field}", "must not be empty")
    for index, finalizer in enumerate(meta.get("finalizers") or ()):
        errors.invalid_all(f"{path}.finalizers[{index}]", finalizer, qualified_name_errors(finalizer))


def validate_labels(labels: dict[str, str], path: str, errors: FieldErrors) -> None:
    """Keys and values of a set of labels (also of a nodeSelector)."""
    for key, value in labels.items():
        at = child_key(path, key)
        errors.invalid_all(path, key, qualified_name_errors(key), at=at)
        errors.invalid_all(path, value, label_value_errors(value), at=at)


def validate_label_key(key: str, path: str, errors: FieldErrors) -> None:
    errors.invalid_all(path, key, qualified_name_errors(key))


def validate_label_selector(selector: JsonObject, path: str, errors: FieldErrors) -> None:
    """A metav1.LabelSelector."""
    validate_labels(selector.get("matchLabels") or {}, f"{path}.matchLabels", errors)
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        place = f"{path}.matchExpressions[{index}]"
        operator = requirement.get("operator", "")
        values = requirement.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                errors.required(f"{place}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                errors.forbidden(
                    f"{place}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
        else:
            errors.invalid(f"{place}.operator", operator, "not a valid selector operator")
        validate_label_key(requirement.get("key", ""), f"{place}.key", errors)
        for number, value in enumerate(values):
            errors.invalid_all(f"{place}.values[{number}]", value, label_value_errors(value))


def _validate_annotations(annotations: dict[str, str], path: str, errors: FieldErrors) -> None:
    size = 0
    for key, value in annotations.items():
        errors.invalid_all(path, key, qualified_name_errors(key.lower()), at=child_key(path, key))
        size += len(key.encode()) + len(value.encode())
    if size > MAX_ANNOTATIONS:
        errors.too_long(path, MAX_ANNOTATIONS)
    if MIRROR_ANNOTATION in annotations:
        errors.forbidden(child_key(path, MIRROR_ANNOTATION), "only mirror pods carry it")
