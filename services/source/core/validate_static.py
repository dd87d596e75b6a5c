"""What a pod from a file or URL may not refer to.

kubelet 1.36 refuses every reference to an API object in a static pod. podbus lets such pods use the
ConfigMaps and Secrets of the same sources, so only what no source can give is refused here.
"""

from __future__ import annotations

from typing import Any

from services.source.core.field_errors import FieldErrors

JsonObject = dict[str, Any]

_VOLUMES = {
    "persistentVolumeClaim": "persistentvolumeclaims",
    "csi": "csi volumes",
    "ephemeral": "ephemeral volumes",
    "glusterfs": "glusterfs volumes",
    "azureFile": "azureFile volumes",
}
_PROJECTIONS = {
    "serviceAccountToken": "serviceaccount tokens",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "pod certificates",
}


def validate_static_references(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    """`path` is where the spec stands."""

    def refuse(place: str, what: str) -> None:
        errors.forbidden(place, f"static pods may not reference {what}")

    if spec.get("serviceAccountName"):
        field = "serviceAccountName" if not spec.get("serviceAccount") else "serviceAccount"
        refuse(f"{path}.{field}", "serviceaccounts")
    if spec.get("resourceClaims"):
        refuse(f"{path}.resourceClaims", "resourceclaims")
    for index, volume in enumerate(spec.get("volumes") or ()):
        for kind, what in _VOLUMES.items():
            if kind in volume:
                refuse(f"{path}.volumes[{index}].{kind}", what)
        for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            for kind, what in _PROJECTIONS.items():
                if kind in source:
                    refuse(f"{path}.volumes[{index}].projected.sources[{number}].{kind}", what)
