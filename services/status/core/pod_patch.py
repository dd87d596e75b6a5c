"""What the API server must be told of a pod's status: the difference as a strategic merge patch.

kubelet 1.36, pkg/kubelet/status: only conditions that the node owns are touched, a start time never changes, a phase is
final only when nothing runs any more, and what the API server knows to be over never runs again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shared.contracts.status import PodReport
from shared.kube.pod_conditions import NODE_CONDITIONS

_FINAL = frozenset(("Succeeded", "Failed"))
_SET_AGAIN = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
"""Lists that a strategic merge replaces as a whole."""
_ADDRESSES = ("podIPs", "hostIPs")
_GONE = ("reason", "message", "podIP", *_SET_AGAIN)
"""What the node alone writes: without a value here it goes there too."""
_OURS_ALONE = NODE_CONDITIONS - {"DisruptionTarget"}


class RemoteMeta(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None


class RemotePod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod as the API server has it, as far as its status is concerned."""

    metadata: RemoteMeta = RemoteMeta()
    status: dict[str, Any] = {}


_remote = msgspec.json.Decoder(RemotePod)


def parse_remote_pod(body: bytes) -> RemotePod:
    """Raises msgspec.MsgspecError."""
    return _remote.decode(body)


def pod_status_patch(remote: RemotePod, report: PodReport) -> Mapping[str, Any] | None:
    """Of the whole pod, for its `status` subresource; None = nothing has to be sent."""
    ours = _told(report, remote.status)
    changes = _changes(remote.status, ours)
    return {"metadata": {"uid": remote.metadata.uid}, "status": changes} if changes else None


def is_backwards(remote: RemotePod, report: PodReport) -> bool:
    """Over at the API server, but not here: nothing may be told then, for a status only moves forward."""
    return remote.status.get("phase") in _FINAL and report.status.phase not in _FINAL


def is_contradicted(remote: RemotePod, report: PodReport) -> bool:
    """A condition of ours says something else there. A field that the server doesn't know is no contradiction."""
    ours = _told(report, remote.status)
    return bool(_changed_conditions(remote.status.get("conditions"), ours["conditions"]))


def may_be_deleted(report: PodReport) -> bool:
    """Its end has come and nothing of it is left: the API server may forget it.

    kubelet 1.36: PodResourcesAreReclaimed; a pod that never ran has nothing to wait for.
    """
    return report.state == "finished" and not report.containers


def _told(report: PodReport, theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Our status as it is to look there."""
    ours: dict[str, Any] = msgspec.to_builtins(report.status)
    if theirs.get("startTime"):
        ours["startTime"] = theirs["startTime"]
    if report.status.phase in _FINAL and report.containers and theirs.get("phase") not in _FINAL:
        # A final phase frees the pod's place and name for others.
        ours["phase"] = theirs.get("phase", "Running")
    ours["conditions"] = _merged_conditions(theirs, ours.get("conditions", []))
    return ours


def _merged_conditions(theirs: Mapping[str, Any], ours: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """With the transition times of those whose status is known there as it is here."""
    known = _by_type(theirs.get("conditions"))
    merged = []
    for one in ours:
        before = known.get(one["type"], {})
        if before.get("status") == one["status"] and before.get("lastTransitionTime"):
            one = {**one, "lastTransitionTime": before["lastTransitionTime"]}
        merged.append(one)
    return merged


def _changes(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for name, value in ours.items():
        if name == "conditions":
            if changed := _changed_conditions(theirs.get(name), value):
                changes[name] = changed
        elif theirs.get(name) != value:
            # Where there is no list yet, the server would take the instruction for one of its entries.
            is_merged = name in _ADDRESSES and bool(theirs.get(name))
            changes[name] = [*value, {"$patch": "replace"}] if is_merged else value
    return changes | {name: None for name in _GONE if theirs.get(name) and name not in ours}


def _changed_conditions(theirs: Any, ours: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    known = _by_type(theirs)
    changed = [
        {**{name: None for name in known.get(one["type"], {}) if name not in one}, **one}
        for one in ours
        if one["type"] in NODE_CONDITIONS and not _is_same(known.get(one["type"]), one)
    ]
    kept = {one["type"] for one in ours}
    gone = [{"$patch": "delete", "type": kind} for kind in known if kind in _OURS_ALONE and kind not in kept]
    return changed + gone


def _is_same(theirs: Mapping[str, Any] | None, ours: Mapping[str, Any]) -> bool:
    return theirs is not None and all(
        (theirs.get(name) or None) == (ours.get(name) or None)
        for name in ("status", "reason", "message", "lastTransitionTime")
    )


def _by_type(conditions: Any) -> dict[str, dict[str, Any]]:
    listed = conditions if isinstance(conditions, list) else []
    return {str(one.get("type")): one for one in listed if isinstance(one, dict)}
