"""Whether this node is one that a pod wants: its nodeSelector and required node affinity.

A scheduler has looked at this already; a static pod has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from shared.kube.pod import Pod
from shared.kube.scheduling import NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration

_WHOLE = re.compile(r"[+-]?[0-9]+")


def wants_node(pod: Pod, name: str, labels: Mapping[str, str]) -> bool:
    """`name` and `labels` are the node's."""
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    if required is None:
        return True
    return any(_matches(term, name, labels) for term in required.node_selector_terms)


def tolerates_running(pod: Pod, taints: Iterable[Taint]) -> bool:
    """The node's only business are taints NoExecute; which others count is the scheduler's."""
    return all(
        any(_tolerates(toleration, taint) for toleration in pod.spec.tolerations)
        for taint in taints
        if taint.effect == "NoExecute"
    )


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.key != "" and toleration.value == taint.value


def _matches(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    """An empty term matches no node."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": name}
    return all(_holds(one, labels) for one in term.match_expressions) and all(
        _holds(one, fields) for one in term.match_fields
    )


def _holds(requirement: NodeSelectorRequirement, values: Mapping[str, str]) -> bool:
    value, wanted = values.get(requirement.key), requirement.values
    match requirement.operator:
        case "In":
            return value is not None and value in wanted
        case "NotIn":
            return value is None or value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            if value is None or len(wanted) != 1 or not (_WHOLE.fullmatch(value) and _WHOLE.fullmatch(wanted[0])):
                return False
            return int(value) > int(wanted[0]) if requirement.operator == "Gt" else int(value) < int(wanted[0])
    return False
