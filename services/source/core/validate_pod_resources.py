"""Validation of a pod's own resources against its containers' (kubelet 1.36: validatePodResourceConsistency)."""

from __future__ import annotations

from typing import Any

from services.source.core.field_errors import FieldErrors, child_key
from shared.kube.quantity import Quantity

JsonObject = dict[str, Any]

_OF_POD = ("cpu", "memory")


def validate_pod_consistency(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    """All quantities can be read: the defaults are there."""
    own = spec.get("resources") or {}
    for name, text in (own.get("requests") or {}).items():
        total = _requested_at_once(spec, name)
        if Quantity.parse(text) < total:
            errors.invalid(
                child_key(f"{path}.resources.requests", name),
                text,
                f"must be greater than or equal to aggregate container requests of {total}",
            )
    for name, text in (own.get("limits") or {}).items():
        for kind in ("initContainers", "containers"):
            for index, container in enumerate(spec.get(kind) or ()):
                given = ((container.get("resources") or {}).get("limits") or {}).get(name)
                if name in _OF_POD and given is not None and Quantity.parse(given) > Quantity.parse(text):
                    place = child_key(f"{path}.{kind}[{index}].resources.limits", name)
                    errors.invalid(place, given, f"must be less than or equal to pod limits of {text}")


def _requested_at_once(spec: JsonObject, name: str) -> Quantity:
    """As much as the containers need at any moment."""
    sidecars = most = Quantity(0)
    for container in spec.get("initContainers") or ():
        amount = sidecars + _request(container, name)
        most = max(most, amount)
        if container.get("restartPolicy") == "Always":
            sidecars = amount
    regular = sidecars
    for container in spec.get("containers") or ():
        regular = regular + _request(container, name)
    return max(most, regular)


def _request(container: JsonObject, name: str) -> Quantity:
    text = ((container.get("resources") or {}).get("requests") or {}).get(name)
    return Quantity(0) if text is None else Quantity.parse(text)
