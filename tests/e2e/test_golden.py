"""What a real kubelet 1.20.2 made of small pods, and what this node makes of them: only listed differences."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.golden_differences import unlisted
from tests.support.golden_form import GOLDEN, golden, normal_docker, normal_status, normal_text
from tests.support.node import Node, is_ready

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

CASES = GOLDEN.parent / "cases"
Pod = dict[str, Any]


def _phase(name: str) -> Callable[[Pod], bool]:
    return lambda pod: pod["status"].get("phase") == name


def _has_ended_by(reason: str) -> Callable[[Pod], bool]:
    """Failed for that reason, and its containers have ended."""

    def check(pod: Pod) -> bool:
        states = [c["state"] for c in pod["status"].get("containerStatuses", [])]
        return pod["status"].get("reason") == reason and all("terminated" in state for state in states)

    return check


def _waiting(reason: str) -> Callable[[Pod], bool]:
    def check(pod: Pod) -> bool:
        states = [c["state"] for c in pod["status"].get("containerStatuses", [])]
        return any(s.get("waiting", {}).get("reason") == reason for s in states)

    return check


def _one_never_pulled_and_one_ready(pod: Pod) -> bool:
    return _waiting("ErrImageNeverPull")(pod) and any(c["ready"] for c in pod["status"]["containerStatuses"])


def _one_restarted_and_one_ready(pod: Pod) -> bool:
    statuses = pod["status"]["containerStatuses"]
    return any(c["restartCount"] for c in statuses) and any(c["name"] == "ready" and c["ready"] for c in statuses)


def _one_restarted_or_all_ready(pod: Pod) -> bool:
    return is_ready(pod) or any(c["restartCount"] for c in pod["status"]["containerStatuses"])


def _one_misconfigured_and_one_ready(pod: Pod) -> bool:
    return _waiting("CreateContainerConfigError")(pod) and any(c["ready"] for c in pod["status"]["containerStatuses"])


def _hooks_done(pod: Pod) -> bool:
    """One container was restarted because its postStart hook fails each time; the other one's didn't."""
    statuses = {c["name"]: c for c in pod["status"]["containerStatuses"]}
    return statuses["bad"]["restartCount"] > 0 and bool(statuses["ok"]["ready"])


SETTLED: dict[str, Callable[[Pod], bool]] = {
    "a01": is_ready,
    "a02": _phase("Succeeded"),
    "a03": _phase("Failed"),
    "a04": _waiting("CrashLoopBackOff"),
    "a05": _phase("Succeeded"),
    "a06": _one_never_pulled_and_one_ready,
    "a07": _waiting("InvalidImageName"),
    "a08": _phase("Failed"),
    "a09": is_ready,
    "a10": _phase("Failed"),
    "a11": is_ready,
    "a12": is_ready,
    "a13": is_ready,
    "a14": _one_restarted_or_all_ready,
    "a15": _waiting("CreateContainerConfigError"),
    "a16": _waiting("ContainerCreating"),
    "a17": is_ready,
    "a18": is_ready,
    "a19": is_ready,
    "a20": _one_restarted_and_one_ready,
    "a21": _hooks_done,
    "a24": _has_ended_by("DeadlineExceeded"),
    "a22": is_ready,
    "a23": is_ready,
    "a25": _phase("Failed"),
    "a26": _one_misconfigured_and_one_ready,
    "a27": is_ready,
    "a28": _phase("Failed"),
    "a29": is_ready,
    "a30": is_ready,
    "a31": _phase("Failed"),
    "a32": _phase("Succeeded"),
}
"""When a case has come to rest."""
ALONE = ("a24",)
"""Begun when the others have come to rest: among thirty that start at once, its container may not start before its
deadline of 5 s."""


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """One node for all cases."""
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory))
        try:
            made.start()
            for path in CASES.glob("*.yaml"):
                if path.name[:3] not in ALONE:
                    made.apply(path.name, path.read_text())
            yield made
        finally:
            made.close()


def recorded(case: str) -> tuple[str, dict[str, Any]]:
    """The case's pod name, and the recording's normal form."""
    (manifest,) = CASES.glob(f"{case}-*.yaml")
    name: str = yaml.safe_load(manifest.read_text())["metadata"]["name"]
    return name, golden(case)


def this_nodes_form(node: Node, pod: Pod) -> dict[str, Any]:
    metadata, status = pod["metadata"], pod["status"]
    ids = node.docker("ps", "-aq", "--filter", f"label=io.kubernetes.pod.uid={metadata['uid']}").split()
    try:
        inspected = json.loads(node.docker("inspect", *ids)) if ids else []
    except subprocess.CalledProcessError as error:  # a crash loop's older container went between the two calls
        raise AssertionError(f"a container went meanwhile: {error.stderr}") from error
    return {
        "pod": normal_status(status, metadata, node.name),
        "containers": normal_docker(inspected, status, metadata, node.name),
    }


@pytest.mark.parametrize("case", sorted(SETTLED))
def test_a_pod_is_as_the_kubelet_had_it(node: Node, case: str) -> None:
    name, theirs = recorded(case)
    if case in ALONE:
        (manifest,) = CASES.glob(f"{case}-*.yaml")
        node.apply(manifest.name, manifest.read_text())
    eventually(lambda: SETTLED[case](node.pod(name)), within=60)

    def same() -> bool:
        ours = this_nodes_form(node, node.pod(name))
        assert not unlisted(case, {key: theirs[key] for key in ours}, ours)
        return True

    # what ended a moment ago is still being tidied up: the sandbox of a finished pod
    eventually(same, within=20)


@pytest.mark.parametrize("case", ["a02", "a03", "a17", "a30", "a32"])
def test_its_containers_said_the_same(node: Node, case: str) -> None:
    name, theirs = recorded(case)
    eventually(lambda: SETTLED[case](node.pod(name)), within=60)
    for container, lines in theirs["logs"].items():
        uid = node.pod(name)["metadata"]["uid"]
        filters = (f"label=io.kubernetes.pod.uid={uid}", f"label=io.kubernetes.container.name={container}")
        (found,) = node.docker("ps", "-aq", "--filter", filters[0], "--filter", filters[1]).split()
        said = node.docker("logs", found).splitlines()
        assert [normal_text(line, []) for line in said] == lines


def test_an_invalid_label_is_refused_and_told(node: Node) -> None:
    """a33: absent from /pods; the kubelet only logged it."""
    (path,) = CASES.glob("a33-*.yaml")
    errors = eventually(lambda: node.json("/podbus/sources")["sources"][0]["errors"], within=10)
    told = [(Path(e["path"]).name, e["field"]) for e in errors]
    assert told == [(path.name, "metadata.labels")]
    assert "a33" not in node.pods()
