"""What the API server must be told of the node's status: the difference as a strategic merge patch, and why.

Only what the node owns is touched: conditions, resources and fields of others stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from services.status.core.node import NodeStatus
from services.status.core.remote_node import RemoteNode
from shared.kube.quantity import Quantity, QuantityError
from shared.kube.times import parse_rfc3339, rfc3339

_LISTED = ("capacity", "allocatable", "addresses", "daemonEndpoints", "nodeInfo", "images")
_HUGE_PAGES = "hugepages-"
_RUNTIME = "containerRuntimeVersion"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What was sent last, and what the server made of it, both without heartbeats."""

    ours: Mapping[str, Any]
    theirs: Mapping[str, Any]


class StatusPatch(msgspec.Struct, frozen=True, kw_only=True):
    body: Mapping[str, Any]
    """Of the whole Node, for its `status` subresource."""
    reasons: Sequence[str]
    """Which parts changed; none = only the time for a report has come."""


def status_patch(
    remote: RemoteNode, ours: NodeStatus, *, told: Told | None, now: float, is_due: bool
) -> StatusPatch | None:
    """None = nothing has to be sent. `is_due`: an unchanged status has to be reported too.

    What the server didn't take the last time (a field that it doesn't know) is no change: it would be sent for ever.
    """
    changes = _changes(remote.status, ours, now)
    if told is not None and told == remembered(remote, ours):
        changes = {}
    if not changes and not is_due:
        return None
    conditions = _merged_conditions(remote.status, ours, now)
    return StatusPatch(body={"status": {**changes, "conditions": conditions}}, reasons=sorted(changes))


def remembered(remote: RemoteNode, ours: NodeStatus) -> Told:
    """To be kept after a patch whose answer is `remote`."""
    sent = msgspec.to_builtins(ours)
    kinds = {condition.type for condition in ours.conditions}
    theirs = {name: remote.status.get(name) for name in _LISTED}
    return Told(
        ours={**sent, "conditions": _without_times(sent["conditions"])},
        theirs={
            **theirs,
            "conditions": _without_times(
                [one for one in _conditions(remote.status).values() if one.get("type") in kinds]
            ),
        },
    )


def _changes(theirs: Mapping[str, Any], ours: NodeStatus, now: float) -> dict[str, Any]:
    """Field of the status -> what to merge into it; `conditions` is there when one differs in more than its times."""
    mine = msgspec.to_builtins(ours)
    capacity, allocatable = _resources(theirs, mine)
    changes = {
        "capacity": capacity,
        "allocatable": allocatable,
        "addresses": _addresses(theirs.get("addresses"), mine["addresses"]),
        "daemonEndpoints": _merge(theirs.get("daemonEndpoints"), mine["daemonEndpoints"]),
        "nodeInfo": _node_info(theirs.get("nodeInfo"), mine["nodeInfo"]),
        "images": _images(theirs.get("images"), mine.get("images", []), mine["nodeInfo"][_RUNTIME]),
        "conditions": [
            condition
            for condition in _merged_conditions(theirs, ours, now)
            if not _is_same(_conditions(theirs).get(condition["type"]), condition)
        ],
    }
    return {name: change for name, change in changes.items() if change or (name == "images" and change is not None)}


def _resources(theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """kubelet 1.36: huge pages of a size that is gone go; a resource that somebody else advertises stays, and pods may
    have all of it."""
    capacity, allocatable = _map(theirs.get("capacity")), _map(theirs.get("allocatable"))
    foreign = {
        name: amount
        for name, amount in capacity.items()
        if name not in mine["capacity"] and "/" in name and isinstance(amount, str)
    }
    return (
        _differing(capacity, mine["capacity"]),
        _differing(allocatable, {**foreign, **mine["allocatable"]}),
    )


def _differing(theirs: Mapping[str, Any], mine: Mapping[str, str]) -> dict[str, Any]:
    changed: dict[str, Any] = {
        name: amount for name, amount in mine.items() if not _same_amount(theirs.get(name), amount)
    }
    return changed | {name: None for name in theirs if name.startswith(_HUGE_PAGES) and name not in mine}


def _same_amount(theirs: Any, ours: str) -> bool:
    """Another spelling of the same amount is no change."""
    if theirs == ours:
        return True
    try:
        return isinstance(theirs, str) and Quantity.parse(theirs) == Quantity.parse(ours)
    except QuantityError:
        return False


def _addresses(theirs: Any, mine: list[dict[str, str]]) -> list[dict[str, str]]:
    """The list merges by type: without `$patch` an address that is gone would stay. Where there is no list yet, the
    server would take the instruction for one of its entries."""
    if theirs == mine:
        return []
    return [*mine, {"$patch": "replace"}] if theirs else mine


def _node_info(theirs: Any, mine: Mapping[str, Any]) -> dict[str, Any]:
    """While no worker has reported, what is known of the engine stays."""
    told = {name: value for name, value in mine.items() if name != _RUNTIME or value}
    gone = {"swap": None} if "swap" in _map(theirs) and "swap" not in mine else {}
    return _merge(theirs, told) | gone


def _images(theirs: Any, mine: list[Any], runtime: str) -> list[Any] | None:
    """None = no change, or nobody has reported yet."""
    return None if not runtime or (theirs or []) == mine else mine


def _merge(theirs: Any, mine: Mapping[str, Any]) -> dict[str, Any]:
    known = _map(theirs)
    return {name: value for name, value in mine.items() if known.get(name, "") != value}


def _merged_conditions(theirs: Mapping[str, Any], ours: NodeStatus, now: float) -> list[dict[str, Any]]:
    """Ours, each with the transition time of the server's as long as the status is the same.

    kubelet 1.36: a flip that somebody else wrote (Unknown, while we were away) and that we take back is a flip now.
    """
    known = _conditions(theirs)
    merged = []
    for condition in msgspec.to_builtins(ours.conditions):
        before = known.get(condition["type"])
        if before is not None:
            since = before.get("lastTransitionTime") or ""
            if before.get("status") == condition["status"]:
                condition["lastTransitionTime"] = since or condition["lastTransitionTime"]
            elif _instant(condition["lastTransitionTime"]) <= _instant(since):
                condition["lastTransitionTime"] = rfc3339(now)
        merged.append(condition)
    return merged


def _instant(text: str) -> float:
    try:
        return parse_rfc3339(text)
    except ValueError:
        return 0.0


def _conditions(status: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    listed = status.get("conditions")
    return {str(one.get("type")): one for one in (listed if isinstance(listed, list) else ()) if isinstance(one, dict)}


def _is_same(theirs: Mapping[str, Any] | None, mine: Mapping[str, Any]) -> bool:
    return theirs is not None and all(
        theirs.get(key, "") == mine[key] for key in ("status", "reason", "message", "lastTransitionTime")
    )


def _without_times(conditions: list[Any]) -> list[dict[str, Any]]:
    times = ("lastHeartbeatTime", "lastTransitionTime")
    return [{key: value for key, value in one.items() if key not in times} for one in conditions]


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
