"""Hooks and the end of containers on a whole node: several pods side by side, all told to end at once."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.log_follower import LogFollower, follow
from tests.support.node import Node, is_ready

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats, pytest.mark.timeout(120)]

CASES = Path(__file__).parent.parent / "cases"
SAY = "echo {} > /proc/1/fd/1"
SERVES = "trap 'echo TERM; exit 0' TERM; echo up; while true; do sleep 0.1; done"
DEAF = "trap 'echo TERM' TERM; echo up; while true; do sleep 0.1; done"
SLOW = "trap 'echo TERM; sleep 3; echo done; exit 0' TERM; echo up; while true; do sleep 0.1; done"
USR1 = "trap 'echo USR1; exit 0' USR1; trap 'echo TERM; exit 0' TERM; echo up; while true; do sleep 0.1; done"
ANSWERS_500 = (
    "trap 'echo TERM; exit 0' TERM; while true; do"
    " printf 'HTTP/1.1 500 No\\r\\nContent-Length: 0\\r\\n\\r\\n' | nc -l -p 8080; done &"
    " while true; do sleep 0.1; done"
)
SIGNALLED_IMAGE = "podbus-test/signalled:1"


def a_container(name: str, script: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "busybox:1.36", "command": ["sh", "-c", script], **fields}


def an_exec(script: str) -> dict[str, Any]:
    return {"exec": {"command": ["sh", "-c", script]}}


def a_manifest(name: str, *containers: dict[str, Any], **spec: Any) -> str:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 10, "containers": list(containers), **spec},
    }
    return json.dumps(body)


PODS = {
    "h01": a_manifest(
        "h01",
        a_container("first", SERVES, lifecycle={"postStart": an_exec(f"sleep 1; {SAY.format('started')}")}),
        a_container("second", "echo begun; exec sleep 1000"),
        terminationGracePeriodSeconds=1,
    ),
    "h03": a_manifest("h03", a_container("c", SERVES, lifecycle={"preStop": an_exec(SAY.format("bye"))})),
    "h03-ends": a_manifest(
        "h03-ends",
        a_container("c", "sleep 1; echo end", lifecycle={"preStop": an_exec(SAY.format("bye"))}),
        restartPolicy="Never",
    ),
    "h05": a_manifest("h05", a_container("c", SERVES, lifecycle={"preStop": {"sleep": {"seconds": 3}}})),
    "h06": a_manifest(
        "h06",
        a_container(
            "c",
            ANSWERS_500,
            ports=[{"name": "web", "containerPort": 8080}],
            lifecycle={"preStop": {"httpGet": {"port": "web", "path": "/bye"}}},
        ),
    ),
    "h08": a_manifest("h08", {**a_container("c", USR1), "image": SIGNALLED_IMAGE}),
    "h08-own": a_manifest("h08-own", a_container("c", USR1, lifecycle={"stopSignal": "SIGUSR1"}), os={"name": "linux"}),
    "h09": a_manifest("h09", a_container("c", DEAF), terminationGracePeriodSeconds=0),
    "h10": a_manifest("h10", a_container("a", SLOW), a_container("b", SLOW)),
    "fails": a_manifest("fails", a_container("c", SERVES, lifecycle={"preStop": an_exec("exit 4")})),
    "hangs": a_manifest(
        "hangs",
        a_container("c", SERVES, lifecycle={"preStop": an_exec("sleep 3600")}),
        terminationGracePeriodSeconds=4,
    ),
    "i11": a_manifest(
        "i11",
        a_container("main", SLOW),
        initContainers=[a_container(name, SERVES, restartPolicy="Always") for name in ("s1", "s2")],
    ),
    "starting": a_manifest(
        "starting",
        a_container("c", SERVES, lifecycle={"postStart": an_exec("sleep 3600")}),
        a_container("never", SERVES),
    ),
}
FOLLOWED = [
    ("h01", "first"),
    ("h03", "c"),
    ("h05", "c"),
    ("h06", "c"),
    ("h08", "c"),
    ("h08-own", "c"),
    ("h09", "c"),
    ("h10", "a"),
    ("h10", "b"),
    ("fails", "c"),
    ("hangs", "c"),
    ("i11", "main"),
    ("i11", "s1"),
    ("i11", "s2"),
    ("starting", "c"),
]


class Ended:
    """What was seen of all these pods from their start to their end."""

    def __init__(self, node: Node, directory: Path) -> None:
        self.node = node
        for name, text in PODS.items():
            node.apply(f"{name}.json", text)
        unready = {"starting", "h03-ends"}
        eventually(lambda: node.ready_pods() >= PODS.keys() - unready, within=60)
        eventually(lambda: node.pod("h03-ends")["status"]["phase"] == "Succeeded", within=15)
        eventually(self._is_starting, within=15)
        self.before = node.pods()
        self.logs: dict[tuple[str, str], LogFollower] = {key: follow(node, *key, directory) for key in FOLLOWED}
        self.logs["h03-ends", "c"] = follow(node, "h03-ends", "c", directory)
        eventually(self._are_up, within=15)
        self.told_at = time.time()
        for name in PODS:
            node.withdraw(f"{name}.json")
        eventually(lambda: not node.pods(), within=45)
        for log in self.logs.values():
            eventually(log.has_ended, within=15)

    def close(self) -> None:
        for log in self.logs.values():
            log.close()

    def _are_up(self) -> bool:
        return all("up" in log.lines() for (pod, _), log in self.logs.items() if pod not in ("h06", "h03-ends"))

    def _is_starting(self) -> bool:
        """Its first container runs, its hook too."""
        (pod,) = node_containers(self.node, "starting")
        return "sleep 3600" in self.node.docker("top", pod)

    def reasons(self, pod: str) -> list[str]:
        """Of the events told so far."""
        path = f"/podbus/events?namespace=default&name={pod}-{self.node.name}"
        return [event["reason"] for event in self.node.json(path)["events"]]


def node_containers(node: Node, pod: str) -> list[str]:
    """Ids of the pod's running containers but its sandbox."""
    label = f"label=io.kubernetes.pod.name={pod}-{node.name}"
    kind = "label=io.kubernetes.docker.type=container"
    instance = f"label=podbus.instance={node.instance}"
    return node.docker("ps", "-q", "--filter", label, "--filter", kind, "--filter", instance).split()


@pytest.fixture(scope="module")
def ended() -> Iterator[Ended]:
    docker_client().close()
    subprocess.run(
        ["docker", "build", "-q", "-t", SIGNALLED_IMAGE, "-"],
        input=b"FROM busybox:1.36\nSTOPSIGNAL SIGUSR1\n",
        check=True,
        capture_output=True,
    )
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        node = Node(Path(directory))
        try:
            node.start()
            seen = Ended(node, Path(directory))
            yield seen
            seen.close()
        finally:
            node.close()
            subprocess.run(["docker", "rmi", "-f", SIGNALLED_IMAGE], check=True, capture_output=True)


def test_the_next_container_starts_after_the_post_start_hook(ended: Ended) -> None:
    """H01."""
    second = next(s for s in ended.before["h01"]["status"]["containerStatuses"] if s["name"] == "second")
    started_at = ended.logs["h01", "first"].at("started")
    # whole seconds in a status
    assert second["state"]["running"]["startedAt"] >= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started_at))


def test_the_pre_stop_hook_comes_before_the_signal(ended: Ended) -> None:
    """H03."""
    assert ended.logs["h03", "c"].lines() == ["up", "bye", "TERM"]


def test_a_container_that_ends_by_itself_has_no_pre_stop(ended: Ended) -> None:
    """H03."""
    assert ended.logs["h03-ends", "c"].lines() == ["end"]


def test_a_sleep_delays_the_signal(ended: Ended) -> None:
    """H05."""
    assert ended.logs["h05", "c"].at("TERM") - ended.told_at >= 3


def test_any_answer_to_an_http_hook_will_do(ended: Ended) -> None:
    """H06: the port by its name, a server that says 500."""
    assert ended.logs["h06", "c"].lines()[0].startswith("GET /bye HTTP/1.1")
    assert any(line.startswith("User-Agent: kube-lifecycle/") for line in ended.logs["h06", "c"].lines())
    assert "hook failed pod=fails-" in ended.node.log()
    assert "hook failed pod=h06-" not in ended.node.log()


@pytest.mark.parametrize("pod", ["h08", "h08-own"])
def test_the_stop_signal_of_the_image_or_the_definition_is_sent(ended: Ended, pod: str) -> None:
    """H08."""
    assert ended.logs[pod, "c"].lines() == ["up", "USR1"]


def test_a_grace_of_zero_is_two_seconds(ended: Ended) -> None:
    """H09: the signal at once, SIGKILL two seconds later."""
    log = ended.logs["h09", "c"]
    assert log.lines() == ["up", "TERM"]
    assert log.exit_code() == 137


def test_containers_end_side_by_side(ended: Ended) -> None:
    """H10: each had its signal before the other was done."""
    a, b = ended.logs["h10", "a"], ended.logs["h10", "b"]
    assert max(a.at("TERM"), b.at("TERM")) < min(a.at("done"), b.at("done"))


def test_sidecars_end_last_and_in_reverse(ended: Ended) -> None:
    """I11."""
    main, s1, s2 = (ended.logs["i11", name] for name in ("main", "s1", "s2"))
    assert main.at("done") <= s2.at("TERM") <= s1.at("TERM")


def test_a_failed_pre_stop_is_told_and_the_end_goes_on(ended: Ended) -> None:
    assert ended.logs["fails", "c"].lines() == ["up", "TERM"]
    eventually(lambda: "FailedPreStopHook" in ended.reasons("fails"), within=10)


def test_a_pre_stop_that_hangs_is_given_up_at_the_end_of_the_grace_period(ended: Ended) -> None:
    log = ended.logs["hangs", "c"]
    assert log.lines() == ["up", "TERM"]
    assert log.at("TERM") - ended.told_at >= 4 - 1  # the node's grace began with the event of the withdrawal
    eventually(lambda: "FailedPreStopHook" in ended.reasons("hangs"), within=10)


def test_a_deletion_during_a_post_start_is_handled_at_once(ended: Ended) -> None:
    """W02: the hook would have taken an hour; other pods became ready meanwhile."""
    assert ended.logs["starting", "c"].lines() == ["up", "TERM"]
    waiting = {s["name"]: s["state"] for s in ended.before["starting"]["status"]["containerStatuses"]}
    assert "waiting" in waiting["never"]
    assert not is_ready(ended.before["starting"])


def answer() -> str:
    with urllib.request.urlopen("http://127.0.0.1:18081/", timeout=5) as response:
        text: str = response.read().decode().strip()
        return text


def test_an_edited_pod_drains_before_the_new_one_starts(ended: Ended, tmp_path: Path) -> None:
    """Acceptance case 01: the old one is neither cut off nor overlapped, and the host port is free for the new one."""
    node = ended.node
    first, second = (CASES / f"01-static-update-grace{version}.yaml" for version in ("", ".v2"))
    node.apply("drain-web.yaml", first.read_text())
    eventually(lambda: answer() == "v1", within=30)
    log = follow(node, "drain-web", "web", tmp_path)
    eventually(lambda: "serving v1" in log.lines(), within=15)
    old = node.pod("drain-web")["metadata"]["uid"]
    edited_at = time.time()
    node.apply("drain-web.yaml", second.read_text())
    eventually(lambda: answer() == "v2", within=45)
    assert log.lines() == ["serving v1", "draining", "drained"]
    assert log.exit_code() == 0
    assert log.at("drained") - edited_at >= 8
    pod = node.pod("drain-web")
    (status,) = pod["status"]["containerStatuses"]
    assert (pod["metadata"]["uid"] != old, status["restartCount"], status["lastState"]) == (True, 0, {})
    container_id = status["containerID"].removeprefix("docker://")
    created = node.docker("inspect", "--format", "{{.Created}}", container_id).strip()
    assert datetime.fromisoformat(created[:26] + "+00:00").timestamp() >= log.at("drained")
    log.close()


def test_a_hook_whose_worker_is_killed_is_run_again_and_the_deadline_stays(ended: Ended, tmp_path: Path) -> None:
    """kill -9 in the middle: the signal comes when the grace period that began before is over."""
    node, grace = ended.node, 20
    hook = an_exec(f"{SAY.format('bye')}; sleep 3600")
    container = a_container("c", SERVES, lifecycle={"preStop": hook})
    node.apply("killed.json", a_manifest("killed", container, terminationGracePeriodSeconds=grace))
    eventually(lambda: "killed" in node.ready_pods(), within=30)
    log = follow(node, "killed", "c", tmp_path)
    node.withdraw("killed.json")
    eventually(lambda: log.lines() == ["up", "bye"], within=15)
    deadlines = stored_deadlines(node)
    for pid in node.pids("podworker"):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: log.lines() == ["up", "bye", "bye"], within=30)
    assert len(deadlines) == 1
    assert stored_deadlines(node) == deadlines
    eventually(log.has_ended, within=3 * grace)
    assert log.lines() == ["up", "bye", "bye", "TERM"]
    assert log.at("TERM") >= deadlines[0]
    log.close()


def stored_deadlines(node: Node) -> list[float]:
    """When containers that are told to end are killed, by pods.db."""
    with closing(sqlite3.connect(f"file:{node.data}/pods.db?mode=ro", uri=True)) as database:
        rows = [json.loads(memory) for (memory,) in database.execute("SELECT memory FROM pods")]
    return [stop["deadline"] for row in rows for stop in row.get("stops", {}).values()]
