"""Where this node differs from the recorded kubelet 1.20.2 on purpose: the one table, and what it doesn't explain."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.golden_form import Json, differences


class Listed(NamedTuple):
    """A difference that is meant: in these cases, at this path (regular expressions), of this form."""

    cases: str
    path: str
    fits: Callable[[Any, Any], bool]
    """(the recording's value, ours) -> whether it's this difference and no other."""
    reason: str


ABSENT = "<absent>"


def may_give_all_capabilities() -> bool:
    """Whether a privileged container can start: without CAP_SYS_RESOURCE it can't."""
    (bounding,) = re.findall(r"CapBnd:\s*(\S+)", Path("/proc/self/status").read_text())
    return bool(int(bounding, 16) >> 24 & 1)


LISTED = (
    Listed(
        "a03|a08|a10|a25",
        r"\.pod\.conditions\.(Ready|ContainersReady)",
        lambda theirs, ours: theirs[1] == "ContainersNotReady" and ours == ["False", "PodFailed", None],
        "a Failed pod's Ready says PodFailed, without a message, in the newest Kubernetes",
    ),
    Listed(
        ".*",
        r"\.pod\.init\.[^.]+\.started",
        lambda theirs, ours: theirs is None and ours is False,
        "the newest Kubernetes says of init containers, too, whether they have started",
    ),
    Listed(
        "a14",
        r"\.pod\.(conditions\.(Ready|ContainersReady)|containers\.d\..+)|\.containers\.[^.]+\.ExitCode",
        lambda theirs, ours: may_give_all_capabilities(),
        "the recording's machine can't run a privileged container, others can",
    ),
    Listed(
        "a18",
        r"\.pod\.hasIP",
        lambda theirs, ours: theirs is False and ours is True,
        "a pod on the host's network has the node's address, with or without an API server",
    ),
    Listed(
        "a18",
        r"\.containers\.c\.Mounts",
        lambda theirs, ours: ours == sorted([*theirs, ["/etc/hosts", "rw"]]),
        "and so its hosts file, the node's under a header",
    ),
    Listed(
        "a18",
        r"\.containers\.POD\.Hostname",
        lambda theirs, ours: ours == socket.gethostname(),
        "the host's name is the machine's",
    ),
    Listed(
        "a24",
        r"\.pod\.conditions\.(Initialized|PodScheduled)",
        lambda theirs, ours: theirs == ABSENT and ours == ["True", None, None],
        "a pod past its deadline keeps its conditions in the newest Kubernetes",
    ),
    Listed(
        "a24",
        r"\.pod\.conditions\.(Ready|ContainersReady)",
        lambda theirs, ours: theirs == ABSENT and ours == ["False", "PodFailed", None],
        "and its Ready says PodFailed",
    ),
    Listed(
        "a24",
        r"\.pod\.containers\.c\.(state\.(kind|reason|exitCode)|started)",
        lambda theirs, ours: (
            (theirs, ours) in (("running", "terminated"), (ABSENT, "Error"), (ABSENT, 137), (None, False))
        ),
        "and its container is shown as terminated once it has ended",
    ),
    Listed(
        "a24",
        r"\.containers\.POD\.ExitCode",
        lambda theirs, ours: theirs == 137 and ours == 0,
        "the recording kubelet killed the sandbox, too; ours ends by itself",
    ),
    Listed(
        "a07",
        r"\.pod\.containers\.c\.state\.message",
        lambda theirs, ours: ours == theirs.replace("parse image reference", "parse image name"),
        'the newest Kubernetes says "image name"',
    ),
    Listed(
        "a04",
        r"\.pod\.containers\.c\.state\.message",
        lambda theirs, ours: bool(re.fullmatch(re.escape(theirs) + r"; next try at [-\dT:]{19}Z", ours)),
        "the message says until when the back-off lasts, too",
    ),
    Listed(
        "a28|a31",
        r"\.pod\.qosClass",
        lambda theirs, ours: theirs is None and ours in ("Burstable", "BestEffort"),
        "the newest Kubernetes says the class of a rejected pod, too",
    ),
    Listed(
        "a28",
        r"\.pod\.message",
        lambda theirs, ours: (
            re.sub(r"q: \d+", "q: 0", ours)
            == theirs.replace("Pod Unexpected", "Pod was rejected: Unexpected").replace("q: 62000", "q: 0")
        ),
        'the newest Kubernetes says "was rejected"; how much is missing depends on the node and on the pods beside it',
    ),
    Listed(
        "a31",
        r"\.pod\.message",
        lambda theirs, ours: (
            ours == theirs.replace("Pod forbidden", "Pod was rejected: forbidden").replace("whitelisted", "allowlisted")
        ),
        'the newest Kubernetes says "was rejected" and "allowlisted"',
    ),
    Listed(
        "a29",
        r"\.pod\.(conditions\.(Ready|ContainersReady)|containers\.c\.ready)",
        lambda theirs, ours: ours == (True if theirs is False else ["True", None, None]),
        "1.20.2 shows a container that has started up as ready only at the next sync, the newest Kubernetes at once",
    ),
    Listed(
        ".*",
        r"\.containers\.[^.]+\.OomScoreAdj",
        lambda theirs, ours: theirs is None and (ours == 1000 or 3 <= ours <= 999),
        "the recording has 0 everywhere; the rule gives 1000 to BestEffort and 3 to 999 to Burstable",
    ),
    Listed(
        ".*",
        r"\.containers\.([^.]+)\.OomScoreAdj",
        lambda theirs, ours: theirs is None and ours in (-997, -998),
        "the recording kubelet asked for 0 instead of a negative one; we do so only where the kernel refuses it",
    ),
)


def unlisted(case: str, theirs: Json, ours: Json) -> dict[str, tuple[Any, Any]]:
    """Two normal forms, or the same parts of two -> what differs and isn't in the table, by path."""
    found = differences(theirs, ours)
    return {path: pair for path, pair in found.items() if not _is_listed(case, path, *pair)}


def _is_listed(case: str, path: str, theirs: Any, ours: Any) -> bool:
    return any(
        re.fullmatch(listed.cases, case) and re.fullmatch(listed.path, path) and listed.fits(theirs, ours)
        for listed in LISTED
    )
