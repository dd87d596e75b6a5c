"""Where a container's variables and files come from, as `kubectl describe pod` prints it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cli.human import NONE

Object = Mapping[str, Any]

_TYPES = {
    "hostPath": "HostPath (bare host directory volume)",
    "emptyDir": "EmptyDir (a temporary directory that shares a pod's lifetime)",
    "secret": "Secret (a volume populated by a Secret)",
    "configMap": "ConfigMap (a volume populated by a ConfigMap)",
    "downwardAPI": "DownwardAPI (a volume populated by information about the pod)",
    "projected": "Projected (a volume that contains injected data from multiple sources)",
}


def environment_sources(sources: Sequence[Object]) -> Iterator[str]:
    """`envFrom`; nothing when there is none."""
    if sources:
        yield "Environment Variables from:"
    for source in sources:
        kind, ref = (
            ("ConfigMap", source["configMapRef"])
            if source.get("configMapRef")
            else ("Secret", source.get("secretRef") or {})
        )
        prefix = f" with prefix '{source['prefix']}'" if source.get("prefix") else ""
        yield f"  {ref.get('name', '')}\t{kind}{prefix}\tOptional: {_truth(ref)}"


def origin(value_from: Object) -> str:
    """`valueFrom` of one variable."""
    if ref := value_from.get("secretKeyRef"):
        return f"<set to the key '{ref.get('key')}' in secret '{ref.get('name')}'>\tOptional: {_truth(ref)}"
    if ref := value_from.get("configMapKeyRef"):
        return f"<set to the key '{ref.get('key')}' of config map '{ref.get('name')}'>\tOptional: {_truth(ref)}"
    if ref := value_from.get("fieldRef"):
        return f" ({ref.get('apiVersion', 'v1')}:{ref.get('fieldPath')})"
    if ref := value_from.get("resourceFieldRef"):
        return f" ({ref.get('resource')})"
    return ", ".join(value_from)


def volumes(found: Sequence[Object]) -> Iterator[str]:
    """The pod's volumes."""
    yield "Volumes:" + ("" if found else f"\t{NONE}")
    for volume in found:
        yield f"  {volume['name']}:"
        for kind, options in volume.items():
            if kind != "name":
                yield f"    Type:\t{_TYPES.get(kind, kind[:1].upper() + kind[1:])}"
                yield from _options(kind, options or {})


def _options(kind: str, options: Object) -> Iterator[str]:
    match kind:
        case "hostPath":
            yield f"    Path:\t{options.get('path', '')}"
            yield f"    HostPathType:\t{options.get('type') or ''}"
        case "emptyDir":
            yield f"    Medium:\t{options.get('medium') or ''}"
            yield f"    SizeLimit:\t{options.get('sizeLimit') or '<unset>'}"
        case "secret":
            yield f"    SecretName:\t{options.get('secretName', '')}"
            yield f"    Optional:\t{_truth(options)}"
        case "configMap":
            yield f"    Name:\t{options.get('name', '')}"
            yield f"    Optional:\t{_truth(options)}"
        case "downwardAPI":
            yield "    Items:"
            for item in options.get("items") or []:
                ref = item.get("fieldRef") or {}
                source = ref.get("fieldPath") or (item.get("resourceFieldRef") or {}).get("resource", "")
                yield f"      {source} -> {item.get('path')}"
        case "projected":
            for source in options.get("sources") or []:
                yield from _projection(source)
        case _:
            yield from (
                f"    {key[:1].upper()}{key[1:]}:\t{value}"
                for key, value in options.items()
                if isinstance(value, str | int)
            )


def _projection(source: Object) -> Iterator[str]:
    if ref := source.get("secret"):
        yield f"    SecretName:\t{ref.get('name', '')}"
        yield f"    Optional:\t{_truth(ref)}"
    elif "downwardAPI" in source:
        yield "    DownwardAPI:\ttrue"
    elif ref := source.get("configMap"):
        yield f"    ConfigMapName:\t{ref.get('name', '')}"
        yield f"    Optional:\t{_truth(ref)}"
    elif ref := source.get("serviceAccountToken"):
        yield f"    TokenExpirationSeconds:\t{ref.get('expirationSeconds', 3600)}"


def _truth(reference: Object) -> str:
    return "true" if reference.get("optional") else "false"
