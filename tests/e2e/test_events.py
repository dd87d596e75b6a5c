"""What a real kubelet 1.20.2 told of pods in trouble, and what this node tells of them: only listed differences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from tests.support.docker_env import docker_client
from tests.support.event_differences import GOLDEN, Told, recorded, told
from tests.support.eventually import eventually
from tests.support.node import Node

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

OBJECTS = list(yaml.safe_load_all((GOLDEN / "cases.yaml").read_text()))
CONFIGS = [one for one in OBJECTS if one["kind"] != "Pod"]
PODS = {
    one["metadata"]["name"]: one
    for one in OBJECTS
    if one["kind"] == "Pod" and one["metadata"]["name"] != "e01-config"  # nothing was wrong with it
}
CRASH_AT_START = """\
apiVersion: v1
kind: Pod
metadata:
  name: crash-at-start
spec:
  containers:
  - name: app
    image: busybox:1.36
    command: ["sh", "-c", "echo starting; echo 'config: missing key PORT' >&2; exit 3"]
    terminationMessagePolicy: FallbackToLogsOnError
"""


ALONE = ("e13-deadline",)
"""Begun when the others have come to rest: among many that start at once its container may start too late for it."""


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """One node for all cases."""
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory))
        try:
            made.start()
            made.apply("configs.yaml", yaml.safe_dump_all(CONFIGS))
            for name, pod in PODS.items():
                if name in ALONE:
                    continue
                made.apply(f"{name}.yaml", yaml.safe_dump(pod))
            made.apply("crash-at-start.yaml", CRASH_AT_START)
            yield made
        finally:
            made.close()


def test_a_crash_at_start_tells_its_reason_and_how_long_it_still_waits(node: Node) -> None:
    """Acceptance case 11."""

    def waits_for_a_restart() -> dict[str, Any]:
        (status,) = node.pod("crash-at-start")["status"]["containerStatuses"]
        assert 3 <= status["restartCount"] <= 5
        assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        return dict(status)

    # starts at about 0, 0, 10, 30, 70 and 150 s
    status = eventually(waits_for_a_restart, within=90)
    waiting, last = status["state"]["waiting"], status["lastState"]["terminated"]
    assert re.match(
        r"back-off (40s|1m20s|2m40s) restarting failed container=app pod=.*; next try at \S+Z$", waiting["message"]
    )
    assert (last["exitCode"], last["reason"]) == (3, "Error")
    # one on standard output, one on standard error: their order is the engine's
    both = ["config: missing key PORT", "starting"]
    assert sorted(last["message"].splitlines()) == both
    assert sorted(node.podbus("logs", "-p", "crash-at-start").stdout.splitlines()) == both
    described = node.podbus("describe", "pod", "crash-at-start").stdout
    assert re.search(r"Message: .*next try at \S+Z \((in \d+s|now)\)\n", described)
    assert re.search(
        r"Last Log: +(starting|config: missing key PORT)\n +(starting|config: missing key PORT)\n", described
    )
    assert re.search(r"Exit Code: +3\n", described)
    uid = node.pod("crash-at-start")["metadata"]["uid"]
    events = node.json(f"/podbus/events?uid={uid}")["events"]
    assert not [event for event in events if "missing key" in event["message"]], "log text is in no event"
    assert [e["message"] for e in events if e["reason"] == "Exited"] == [
        "Container app exited with code 3 (Error): it is started again (restartPolicy Always)"
    ]


def kill_sandbox(node: Node, case: str) -> None:
    uid = eventually(lambda: node.pod(case)["metadata"]["uid"] if is_running(node, case) else None, within=20)
    filters = (f"label=io.kubernetes.pod.uid={uid}", "label=io.kubernetes.docker.type=podsandbox")
    node.docker("kill", *node.docker("ps", "-q", "--filter", filters[0], "--filter", filters[1]).split())


def is_running(node: Node, case: str) -> bool:
    statuses = node.pod(case)["status"].get("containerStatuses") or [{"state": {}}]
    return all("running" in one["state"] for one in statuses)


@pytest.mark.parametrize("case", sorted(PODS))
def test_events_are_told_as_the_kubelet_tells_them(node: Node, case: str) -> None:
    theirs = recorded(case)
    if case in ALONE:
        node.apply(f"{case}.yaml", yaml.safe_dump(PODS[case]))
    if case == "e14-gates":  # in the recording its sandbox was killed once
        kill_sandbox(node, case)

    def ours() -> set[Told]:
        pod: dict[str, Any] = node.pod(case)
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        return told(case, uid, name, node.json(f"/podbus/events?uid={uid}")["events"])

    def same() -> bool:
        found = ours()
        assert found == theirs, f"missing: {sorted(theirs - found)}\nmore: {sorted(found - theirs)}"
        return True

    eventually(same, within=60)
