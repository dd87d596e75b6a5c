"""Where this node's events differ from the recorded kubelet's on purpose: two tables, each line with its reason.

The recording's event MissingClusterDNS of the node itself is left out: each pod concerned has one of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

GOLDEN = Path(__file__).parent.parent / "golden" / "api"


class Told(NamedTuple):
    """An event without times, counts, uids and addresses."""

    type: str
    reason: str
    field: str
    message: str


class Reworded(NamedTuple):
    message: str
    """Regular expression of the recording's whole message."""
    ours: str
    """What stands here for it; {case} is the pod's name in the manifest."""
    why: str
    reason: str = ""
    """Ours, where that differs, too."""
    is_static: bool = False
    """It differs for static pods alone."""


class Added(NamedTuple):
    cases: str
    """Regular expression."""
    reason: str
    message: str
    """Regular expression."""
    why: str


_NEWER = "the newest kubelet's words"
_POD = r"{case}_default(<uid>)"

REWORDED = (
    Reworded(r"Created container \S+", "Container created", _NEWER),
    Reworded(r"Started container \S+", "Container started", _NEWER),
    Reworded(r"(Container image .* already present on machine)", r"\1 and can be accessed by the pod", _NEWER),
    Reworded(
        r"Back-off restarting failed container",
        f"Back-off restarting failed container {{container}} in pod {_POD}; next try in <t>",
        "the newest kubelet's words, and when it is tried again",
    ),
    Reworded(r"(Back-off pulling image .*)", r"\1; next try in <t>", "it says when it is tried again, too"),
    Reworded(
        r"(Failed to pull image .*: )rpc error: code = Unknown desc = Error response from daemon: (.*)",
        r"\1\2",
        "there is no gRPC between: the engine's words alone",
    ),
    Reworded(
        r'Error: failed to start container "c": Error response from daemon: (.*)',
        r"Error: \1",
        "the engine's words alone",
    ),
    Reworded(
        r"Exec lifecycle hook \(.*\) for Container .* failed - .*",
        "PostStartHook failed",
        "the newest kubelet keeps what a hook wrote out of events: it may hold secrets",
    ),
    Reworded(
        r"(MountVolume\.SetUp failed for volume .* : configmap) (references non-existent config key: nokey)",
        r'\1 "cm" \2 (its keys: d.conf, k1, k2)',
        "it names the ConfigMap and the keys that it has",
    ),
    Reworded(
        r"Node didn't have enough resource: (memory), requested: (\d+), used: \d+, capacity: \d+",
        r"Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods "
        r"to preempt: no set of running pods found to reclaim resources: [(res: \1, q: <n>), ]",
        "a static pod is critical: a shortage tries preemption first (lifecycle 1.7)",
        reason="UnexpectedAdmissionError",
        is_static=True,
    ),
)
ADDED = (Added(".*", "Exited", r"Container \S+ exited with code \d+ \(.*\): .*", "the exit code and its cause"),)


def recorded(case: str, *, is_static: bool = True) -> set[Told]:
    """What the kubelet told of a case, in this node's words where they differ on purpose. `is_static`: the pod comes
    from a file here, and not from an API server as the recorded one did."""
    events = json.loads((GOLDEN / "events.json").read_text())[case]
    found = (Told(e["type"], e["reason"], e["fieldPath"], e["message"]) for e in events)
    return {_in_our_words(case, one, is_static) for one in found}


def told(case: str, uid: str, name: str, events: Iterable[dict[str, Any]]) -> set[Told]:
    """This node's events of the pod, as RecordedEvents of the API, but for those that are ours alone."""
    found = set()
    for event in events:
        message = event["message"].replace(uid, "<uid>").replace(name, case)
        message = re.sub(r"next try in \S+", "next try in <t>", message)
        message = re.sub(r"\b(?!127\.)\d+\.\d+\.\d+\.\d+\b", "<ip>", message)
        message = re.sub(r"q: \d+\)", "q: <n>)", message)
        one = Told(event["type"], event["reason"], event["involved"].get("fieldPath", ""), message)
        if not _is_added(case, one):
            found.add(one)
    return found


def _in_our_words(case: str, one: Told, is_static: bool) -> Told:
    container = one.field.partition("{")[2].rstrip("}")
    for entry in REWORDED:
        if (is_static or not entry.is_static) and re.fullmatch(entry.message, one.message, re.DOTALL):
            ours = entry.ours.replace("{case}", case).replace("{container}", container)
            message = re.sub(entry.message, ours, one.message, flags=re.DOTALL)
            return Told(one.type, entry.reason or one.reason, one.field, message)
    return one


def _is_added(case: str, one: Told) -> bool:
    return any(
        re.fullmatch(entry.cases, case)
        and entry.reason == one.reason
        and re.fullmatch(entry.message, one.message, re.DOTALL)
        for entry in ADDED
    )
