"""Validation of what only a scheduler reads: tolerations, affinity, spread, gates."""

from __future__ import annotations

from typing import Any

from services.source.core.field_errors import FieldErrors
from services.source.core.validate_meta import validate_label_key, validate_label_selector, validate_labels
from shared.kube.validation_names import dns_label_errors, dns_subdomain_errors, label_value_errors

JsonObject = dict[str, Any]

EFFECTS = ("NoExecute", "NoSchedule", "PreferNoSchedule")
_NODE_OPERATORS = ("DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def validate_scheduling(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    """All such fields of a pod's spec."""
    validate_labels(spec.get("nodeSelector") or {}, f"{path}.nodeSelector", errors)
    for field in ("nodeName", "schedulerName", "priorityClassName"):
        if spec.get(field):
            errors.invalid_all(f"{path}.{field}", spec[field], dns_subdomain_errors(spec[field]))
    errors.one_of(f"{path}.preemptionPolicy", spec.get("preemptionPolicy"), ("Never", "PreemptLowerPriority"))
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        _validate_toleration(toleration, f"{path}.tolerations[{index}]", errors)
    affinity = spec.get("affinity") or {}
    _validate_node_affinity(affinity.get("nodeAffinity") or {}, f"{path}.affinity.nodeAffinity", errors)
    for kind in ("podAffinity", "podAntiAffinity"):
        _validate_pod_affinity(affinity.get(kind) or {}, f"{path}.affinity.{kind}", errors)
    for index, spread in enumerate(spec.get("topologySpreadConstraints") or ()):
        _validate_spread(spread, f"{path}.topologySpreadConstraints[{index}]", errors)
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        validate_label_key(gate.get("conditionType", ""), f"{path}.readinessGates[{index}].conditionType", errors)
    if spec.get("schedulingGates"):
        errors.forbidden(f"{path}.schedulingGates", "a pod that is bound to its node has nothing to wait for")


def _validate_toleration(toleration: JsonObject, path: str, errors: FieldErrors) -> None:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value = toleration.get("value", "")
    if key:
        validate_label_key(key, f"{path}.key", errors)
    elif operator != "Exists":
        errors.invalid(
            f"{path}.operator",
            operator,
            'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        )
    if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
        errors.invalid(
            f"{path}.effect",
            toleration.get("effect", ""),
            "effect must be 'NoExecute' when `tolerationSeconds` is set",
        )
    if operator in ("", "Equal"):
        errors.invalid_all(f"{path}.operator", value, label_value_errors(value))
    elif operator == "Exists":
        if value:
            errors.invalid(f"{path}.operator", toleration, "value must be empty when `operator` is 'Exists'")
    else:
        errors.one_of(f"{path}.operator", operator, ("Equal", "Exists", "Gt", "Lt"))
    if toleration.get("effect"):
        errors.one_of(f"{path}.effect", toleration["effect"], EFFECTS)


def _validate_node_affinity(affinity: JsonObject, path: str, errors: FieldErrors) -> None:
    if _REQUIRED in affinity:
        terms = affinity[_REQUIRED].get("nodeSelectorTerms") or []
        place = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        if not terms:
            errors.required(place, "must have at least one node selector term")
        for index, term in enumerate(terms):
            _validate_node_term(term, f"{place}[{index}]", errors)
    for index, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        place = f"{path}.{_PREFERRED}[{index}]"
        _validate_weight(preferred, place, errors)
        _validate_node_term(preferred.get("preference") or {}, f"{place}.preference", errors)


def _validate_node_term(term: JsonObject, path: str, errors: FieldErrors) -> None:
    for field in ("matchExpressions", "matchFields"):
        for index, requirement in enumerate(term.get(field) or ()):
            place = f"{path}.{field}[{index}]"
            operator, values = requirement.get("operator", ""), requirement.get("values") or []
            if operator not in _NODE_OPERATORS:
                errors.invalid(f"{place}.operator", operator, "not a valid selector operator")
            elif operator in ("In", "NotIn") and not values:
                errors.required(f"{place}.values", "must be specified when `operator` is 'In' or 'NotIn'")
            elif operator in ("Exists", "DoesNotExist") and values:
                errors.forbidden(
                    f"{place}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
            elif operator in ("Gt", "Lt") and len(values) != 1:
                errors.required(f"{place}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
            if field == "matchExpressions":
                validate_label_key(requirement.get("key", ""), f"{place}.key", errors)


def _validate_pod_affinity(affinity: JsonObject, path: str, errors: FieldErrors) -> None:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        _validate_pod_term(term, f"{path}.{_REQUIRED}[{index}]", errors)
    for index, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        place = f"{path}.{_PREFERRED}[{index}]"
        _validate_weight(preferred, place, errors)
        _validate_pod_term(preferred.get("podAffinityTerm") or {}, f"{place}.podAffinityTerm", errors)


def _validate_pod_term(term: JsonObject, path: str, errors: FieldErrors) -> None:
    for field in ("labelSelector", "namespaceSelector"):
        if field in term:
            validate_label_selector(term[field], f"{path}.{field}", errors)
    for index, namespace in enumerate(term.get("namespaces") or ()):
        errors.invalid_all(f"{path}.namespaces[{index}]", namespace, dns_label_errors(namespace))
    if not term.get("topologyKey"):
        errors.required(f"{path}.topologyKey", "can not be empty")
    else:
        validate_label_key(term["topologyKey"], f"{path}.topologyKey", errors)


def _validate_weight(term: JsonObject, path: str, errors: FieldErrors) -> None:
    weight = term.get("weight", 0)
    if not 1 <= weight <= 100:
        errors.invalid(f"{path}.weight", weight, "must be in the range 1-100")


def _validate_spread(spread: JsonObject, path: str, errors: FieldErrors) -> None:
    if spread.get("maxSkew", 0) <= 0:
        errors.invalid(f"{path}.maxSkew", spread.get("maxSkew", 0), "must be greater than zero")
    if not spread.get("topologyKey"):
        errors.required(f"{path}.topologyKey", "can not be empty")
    else:
        validate_label_key(spread["topologyKey"], f"{path}.topologyKey", errors)
    errors.one_of(f"{path}.whenUnsatisfiable", spread.get("whenUnsatisfiable", ""), ("DoNotSchedule", "ScheduleAnyway"))
    if "labelSelector" in spread:
        validate_label_selector(spread["labelSelector"], f"{path}.labelSelector", errors)
