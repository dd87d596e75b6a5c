"""What a real kubelet 1.20.2 made of small pods, and what this node makes of them: only listed differences."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
import yaml

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.golden_form import GOLDEN, differences, normal_docker, normal_status
from tests.support.node import Node, is_ready

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

CASES = GOLDEN.parent / "cases"
Pod = dict[str, Any]


class Listed(NamedTuple):
    """A difference that is meant."""

    case: str
    path: str
    ours: Callable[[Any], bool]
    reason: str


def _oom(value: Any) -> bool:
    return value is None or value == 1000 or 3 <= value <= 999


LISTED = [
    Listed(
        "a03|a08|a25",
        r"\.pod\.conditions\.(Ready|ContainersReady)",
        lambda ours: ours == ["False", "PodFailed", None],
        "a Failed pod's Ready has reason PodFailed since 1.22, ContainersNotReady before",
    ),
    Listed(
        "a07",
        r"\.pod\.containers\.c\.state\.message",
        lambda ours: "couldn't parse image name" in ours,
        'the text says "image name" now, "image reference" before',
    ),
    Listed(
        ".*",
        r"\.containers\.[^.]+\.OomScoreAdj",
        _oom,
        "the recording kubelet asked for none; the formula of QoS gives 1000, 3..999, or a clamped 0",
    ),
]


class Settled(NamedTuple):
    """When a case has come to rest."""

    when: Callable[[Pod], bool]


def _phase(name: str) -> Settled:
    return Settled(lambda pod: pod["status"].get("phase") == name)


def _waiting(reason: str) -> Callable[[Pod], bool]:
    def check(pod: Pod) -> bool:
        states = [c["state"] for c in pod["status"].get("containerStatuses", [])]
        return any(s.get("waiting", {}).get("reason") == reason for s in states)

    return check


SETTLED = {
    "a01": Settled(is_ready),
    "a02": _phase("Succeeded"),
    "a03": _phase("Failed"),
    "a04": Settled(_waiting("CrashLoopBackOff")),
    "a05": _phase("Succeeded"),
    "a06": Settled(
        lambda pod: _waiting("ErrImageNeverPull")(pod) and any(c["ready"] for c in pod["status"]["containerStatuses"])
    ),
    "a07": Settled(_waiting("InvalidImageName")),
    "a08": _phase("Failed"),
    "a12": Settled(is_ready),
    "a13": Settled(is_ready),
    "a25": _phase("Failed"),
    "a32": _phase("Succeeded"),
}


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """One node for all cases."""
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory))
        try:
            made.start()
            for path in CASES.glob("*.yaml"):
                made.apply(path.name, path.read_text())
            yield made
        finally:
            made.close()


def recorded(case: str) -> tuple[str, dict[str, Any]]:
    (path,) = GOLDEN.glob(f"{case}-*.json")
    (manifest,) = CASES.glob(f"{case}-*.yaml")
    name: str = yaml.safe_load(manifest.read_text())["metadata"]["name"]
    return name, json.loads(path.read_text())


def this_nodes_form(node: Node, pod: Pod) -> dict[str, Any]:
    metadata, status = pod["metadata"], pod["status"]
    ids = node.docker("ps", "-aq", "--filter", f"label=io.kubernetes.pod.uid={metadata['uid']}").split()
    inspected = json.loads(node.docker("inspect", *ids)) if ids else []
    return {
        "pod": normal_status(status, metadata, node.name),
        "containers": normal_docker(inspected, status, metadata, node.name),
    }


def unlisted(case: str, found: dict[str, tuple[Any, Any]]) -> dict[str, tuple[Any, Any]]:
    """What no entry of the table explains."""

    def explained(path: str, ours: Any) -> bool:
        return any(
            re.fullmatch(entry.case, case) and re.fullmatch(entry.path, path) and entry.ours(ours) for entry in LISTED
        )

    return {path: pair for path, pair in found.items() if not explained(path, pair[1])}


@pytest.mark.parametrize("case", sorted(SETTLED))
def test_a_pod_is_as_the_kubelet_had_it(node: Node, case: str) -> None:
    name, theirs = recorded(case)
    eventually(lambda: SETTLED[case].when(node.pod(name)), within=60)

    def same() -> bool:
        found = differences({key: theirs[key] for key in ("pod", "containers")}, this_nodes_form(node, node.pod(name)))
        assert not unlisted(case, found)
        return True

    # what ended a moment ago is still being tidied up: the sandbox of a finished pod
    eventually(same, within=20)


@pytest.mark.parametrize("case", ["a02", "a03", "a32"])
def test_its_containers_said_the_same(node: Node, case: str) -> None:
    name, theirs = recorded(case)
    eventually(lambda: SETTLED[case].when(node.pod(name)), within=60)
    for container, lines in theirs["logs"].items():
        uid = node.pod(name)["metadata"]["uid"]
        filters = (f"label=io.kubernetes.pod.uid={uid}", f"label=io.kubernetes.container.name={container}")
        (found,) = node.docker("ps", "-aq", "--filter", filters[0], "--filter", filters[1]).split()
        assert node.docker("logs", found).splitlines() == lines


def test_an_invalid_label_is_refused_and_told(node: Node) -> None:
    """a33: absent from /pods; the kubelet only logged it."""
    (path,) = CASES.glob("a33-*.yaml")
    errors = eventually(lambda: node.json("/podbus/sources")["sources"][0]["errors"], within=10)
    told = [(Path(e["path"]).name, e["field"]) for e in errors]
    assert told == [(path.name, "metadata.labels")]
    assert "a33" not in node.pods()
