"""Validation of requests, limits and claims."""

from __future__ import annotations

from typing import Any

from services.source.core.field_errors import FieldErrors, child_key
from shared.kube.quantity import Quantity
from shared.kube.validation_names import qualified_name_errors

JsonObject = dict[str, Any]

HUGE_PAGES = "hugepages-"
_STANDARD = ("cpu", "memory", "ephemeral-storage")
#: What may be set for a whole pod (kubelet 1.34, beta).
_POD_LEVEL = ("cpu", "memory")


def validate_resources(
    resources: JsonObject, path: str, claims: frozenset[str], errors: FieldErrors, *, of_pod: bool = False
) -> None:
    """The resources of one container, or of the pod."""
    limits: dict[str, str] = resources.get("limits") or {}
    requests: dict[str, str] = resources.get("requests") or {}
    for side, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            # A request that only repeats its limit (by default, mostly) has the limit's faults.
            if side == "limits" or limits.get(name) != text:
                _validate_amount(name, text, child_key(f"{path}.{side}", name), errors, of_pod=of_pod)
    for name, text in requests.items():
        request = Quantity.parse(text)
        limit = Quantity.parse(limits[name]) if name in limits else None
        _validate_pair(name, request, limit, path, errors)
    if any(name.startswith(HUGE_PAGES) for name in {**limits, **requests}) and not (
        {"cpu", "memory"} & {*limits, *requests}
    ):
        errors.forbidden(path, "HugePages require cpu or memory")
    seen: set[tuple[str, str]] = set()
    for index, claim in enumerate(resources.get("claims") or ()):
        place, name = f"{path}.claims[{index}]", claim.get("name", "")
        if not name:
            errors.required(f"{place}.name")
        elif name not in claims:
            errors.add(f"{place}.name", f'Not found: "{name}"')
        key = (name, claim.get("request", ""))
        if key in seen:
            errors.duplicate(f"{place}.name", name)
        seen.add(key)


def validate_resource_list(amounts: dict[str, str], path: str, errors: FieldErrors) -> None:
    """A plain list of amounts, such as a pod's overhead."""
    for name, text in amounts.items():
        _validate_amount(name, text, child_key(path, name), errors, of_pod=False)


def _validate_amount(name: str, text: str, path: str, errors: FieldErrors, *, of_pod: bool) -> None:
    errors.invalid_all(path, name, qualified_name_errors(name))
    if "/" not in name and name not in _STANDARD and not name.startswith(HUGE_PAGES):
        errors.invalid(path, name, "must be a standard resource type or fully qualified")
        errors.invalid(path, name, "must be a standard resource for containers")
    elif of_pod and name not in _POD_LEVEL and not name.startswith(HUGE_PAGES):
        errors.unsupported(path, name, _POD_LEVEL)
    amount = Quantity.parse(text)
    if amount.nano < 0:
        errors.invalid(path, text, "must be greater than or equal to 0")
    elif amount.value() * 1_000_000_000 != amount.nano:
        if "/" in name or name.startswith(HUGE_PAGES):
            errors.invalid(path, text, "must be an integer")
        elif name in ("memory", "ephemeral-storage"):
            errors.warn(
                path,
                f"fractional byte value {text!r} is invalid, must be an integer",
                hint='"m" is a thousandth; did you mean "M" or "Mi"?',
            )


def _validate_pair(name: str, request: Quantity, limit: Quantity | None, path: str, errors: FieldErrors) -> None:
    exact = "/" in name or name.startswith(HUGE_PAGES)
    if limit is None:
        if exact:
            errors.required(child_key(f"{path}.limits", name), "Limit must be set for non overcommitable resources")
        return
    at = child_key(f"{path}.requests", name)
    if exact and request != limit:
        errors.invalid(f"{path}.requests", str(request), f"must be equal to {name} limit of {limit}", at=at)
    elif not exact and request > limit:
        errors.invalid(
            f"{path}.requests", str(request), f"must be less than or equal to {name} limit of {limit}", at=at
        )
