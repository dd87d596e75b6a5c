"""Kinds and options of volumes that podbus doesn't run: refused by name, by an allow list as all fields are."""

from __future__ import annotations

from typing import Any

from services.source.core.field_errors import FieldErrors

JsonObject = dict[str, Any]

_FILES = frozenset(("defaultMode", "items", "name", "optional", "secretName", "sources"))
_KINDS = {
    "emptyDir": frozenset(("medium", "sizeLimit")),
    "hostPath": frozenset(("path", "type")),
    "configMap": _FILES,
    "secret": _FILES,
    "downwardAPI": _FILES,
    "projected": _FILES,
}
_ITEM = frozenset(("fieldRef", "key", "mode", "path", "resourceFieldRef"))
_MOUNT = frozenset(("mountPath", "mountPropagation", "name", "readOnly", "recursiveReadOnly", "subPath", "subPathExpr"))


def refuse_unsupported_volumes(volumes: list[JsonObject], path: str, message: str, errors: FieldErrors) -> None:
    """`volumes` conform to v1.Volume. Kinds that static pods may not use are told better elsewhere."""
    for index, volume in enumerate(volumes):
        for kind, source in volume.items():
            place = f"{path}[{index}].{kind}"
            if kind == "name":
                continue
            known = _KINDS.get(kind)
            if known is None:
                errors.add(place, message)
                continue
            _refuse(source, known, place, message, errors)
            _refuse_items(source, place, message, errors)
            if str(source.get("medium", "")).startswith("HugePages"):
                errors.add(f"{place}.medium", f'"{source["medium"]}" is {message}')
            for number, projection in enumerate(source.get("sources") or ()):
                for what, inner in projection.items():
                    _refuse_items(inner, f"{place}.sources[{number}].{what}", message, errors)


def refuse_unsupported_mounts(mounts: list[JsonObject], path: str, message: str, errors: FieldErrors) -> None:
    """`mounts` conform to v1.VolumeMount."""
    for index, mount in enumerate(mounts):
        _refuse(mount, _MOUNT, f"{path}[{index}]", message, errors)
        if mount.get("recursiveReadOnly") == "Enabled":
            errors.add(
                f"{path}[{index}].recursiveReadOnly",
                f'"Enabled" is {message}',
                hint="IfPossible mounts read-only, without what is mounted below",
            )


def _refuse_items(source: JsonObject, path: str, message: str, errors: FieldErrors) -> None:
    for index, item in enumerate(source.get("items") or ()):
        _refuse(item, _ITEM, f"{path}.items[{index}]", message, errors)


def _refuse(value: JsonObject, known: frozenset[str], path: str, message: str, errors: FieldErrors) -> None:
    for field, inner in value.items():
        if field not in known and inner:
            errors.add(f"{path}.{field}", message)
