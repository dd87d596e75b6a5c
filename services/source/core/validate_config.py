"""Validation of ConfigMaps and Secrets. No message ever shows a value."""

from __future__ import annotations

import base64
from typing import Any

from services.source.core.field_errors import FieldErrors, child_key, quote
from services.source.core.validate_meta import validate_object_meta
from shared.kube.validation_names import config_key_errors

JsonObject = dict[str, Any]

#: Kubernetes' bound for the data of one object, in bytes.
MAX_DATA = 1024 * 1024
_REQUIRED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def validate_config_map(body: JsonObject, errors: FieldErrors) -> None:
    """kind ConfigMap."""
    validate_object_meta(body.get("metadata") or {}, "metadata", errors)
    data: dict[str, str] = body.get("data") or {}
    binary: dict[str, str] = body.get("binaryData") or {}
    _validate_keys(data, "data", errors)
    _validate_keys(binary, "binaryData", errors)
    for key in binary:
        if key in data:
            errors.invalid("binaryData", key, "duplicate of key present in data", at=child_key("binaryData", key))
    _validate_size(
        sum(len(text.encode()) for text in data.values()) + sum(_decoded(text) for text in binary.values()),
        "data",
        errors,
    )


def validate_secret(body: JsonObject, errors: FieldErrors) -> None:
    """kind Secret, after `merge_string_data`."""
    validate_object_meta(body.get("metadata") or {}, "metadata", errors)
    data: dict[str, str] = body.get("data") or {}
    _validate_keys(data, "data", errors)
    for key in _REQUIRED_KEYS.get(body.get("type", ""), ()):
        if key not in data:
            errors.required(child_key("data", key), f"a Secret of type {quote(body['type'])} needs it")
    _validate_size(sum(_decoded(text) for text in data.values()), "data", errors)


def merge_string_data(body: JsonObject) -> None:
    """stringData into data, which it overrides, as the API server does on writing."""
    plain: dict[str, str] | None = body.pop("stringData", None)
    if plain:
        encoded = {key: base64.b64encode(text.encode()).decode("ascii") for key, text in plain.items()}
        body["data"] = {**(body.get("data") or {}), **encoded}
    body.setdefault("type", "Opaque")


def _validate_keys(data: dict[str, str], path: str, errors: FieldErrors) -> None:
    for key in data:
        errors.invalid_all(child_key(path, key), key, config_key_errors(key))


def _validate_size(size: int, path: str, errors: FieldErrors) -> None:
    if size > MAX_DATA:
        errors.too_long(path, MAX_DATA)


def _decoded(text: str) -> int:
    return len(text) * 3 // 4
