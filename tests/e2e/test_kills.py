"""kill -9 of any process of the node, or of all: the pods don't notice, and the node is itself again in seconds."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node, sleeper

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats, pytest.mark.timeout(120)]

PODS = [f"p{number:02}" for number in range(20)]
WORKERS = 3
RIGHT_SECONDS = 15
"""Three times what is promised: `podbus get pods` is right 5 s after the process's return."""
RETURN_SECONDS = 30
"""For the supervisor's back-off and the start of a process."""


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """One for all victims: twenty pods that run since long before any of them dies."""
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory), workers=WORKERS)
        try:
            made.start()
            for name in PODS:
                made.apply(f"{name}.yaml", sleeper(name))
            eventually(lambda: made.ready_pods() >= set(PODS), within=60, every=0.2)
            yield made
        finally:
            made.close()


def kill(node: Node, service: str, count: int) -> Callable[[], bool]:
    """kill -9; the answer tells whether as many new processes of the service have said that they are ready."""
    said = node.log()
    before = node.pids(service)
    for pid in before[:count]:
        os.kill(pid, signal.SIGKILL)

    def is_back() -> bool:
        lines = node.log()[len(said) :].splitlines()
        return sum(line.startswith(service) and " ready again after " in line for line in lines) >= count

    return is_back


def shown(node: Node) -> dict[str, list[str]]:
    """`podbus get pods`: the other columns of the table by the pod's short name."""
    answer = node.podbus("get", "pods")
    assert answer.returncode == 0, answer.stderr
    lines = [line.split() for line in answer.stdout.splitlines()[1:]]
    return {name.removesuffix(f"-{node.name}"): rest[:3] for name, *rest in lines}


def measured(node: Node) -> set[str]:
    """The pods in the stats Summary that have figures."""
    pods = node.json("/stats/summary")["pods"]
    return {pod["podRef"]["name"].removesuffix(f"-{node.name}") for pod in pods if pod["memory"]["workingSetBytes"]}


def witness(node: Node) -> dict[str, object]:
    """What a death may not change: containers, also dead ones; since when each pod is ready; restarts."""
    pods = node.pods()
    ready = {
        name: [
            (c["status"], c["lastTransitionTime"]) for c in pods[name]["status"]["conditions"] if c["type"] == "Ready"
        ]
        for name in PODS
    }
    restarts = {name: pods[name]["status"]["containerStatuses"][0]["restartCount"] for name in PODS}
    started = {name: pods[name]["status"]["containerStatuses"][0]["state"] for name in PODS}
    return {"containers": node.containers(every=True), "ready": ready, "restarts": restarts, "started": started}


def told(node: Node, service: str) -> int:
    """How often the event history says that a process of the service ended; of nats-server, that the bus is back."""
    reason = "BusReconnected" if service == "nats-server" else "ServiceRestarted"
    prefix = "" if service == "nats-server" else service
    events = node.json("/podbus/events")["events"]
    return sum(e["count"] for e in events if e["reason"] == reason and e["message"].startswith(prefix))


@pytest.mark.parametrize(
    ("service", "count"),
    [
        ("source", 1),
        ("status", 1),
        ("stats", 1),
        ("api", 1),
        ("nats-server", 1),
        ("podworker", 1),
        ("podworker", WORKERS),
    ],
    ids=["source", "status", "stats", "api", "nats-server", "one worker of three", "all workers"],
)
def test_a_killed_process_comes_back_and_no_pod_notices(node: Node, service: str, count: int) -> None:
    """A pod that comes while the process is away is shown running soon after its return: it isn't only the old
    picture that is right."""
    before, told_before = witness(node), told(node, service)
    is_back = kill(node, service, count)
    extra = f"extra-{service}-{count}"
    node.apply("extra.yaml", sleeper(extra, grace=1))
    eventually(is_back, within=RETURN_SECONDS)
    returned = time.monotonic()
    want = {name: ["1/1", "Running", "0"] for name in [*PODS, extra]}
    eventually(lambda: shown(node) == want, within=RIGHT_SECONDS - (time.monotonic() - returned), every=0.2)
    eventually(lambda: measured(node) == want.keys(), within=RIGHT_SECONDS, every=0.2)
    node.withdraw("extra.yaml")
    eventually(lambda: shown(node).keys() == set(PODS), within=RIGHT_SECONDS, every=0.2)
    eventually(lambda: witness(node) == before, within=5)
    assert node.json("/podbus")["noWorker"] in (None, "", False)
    eventually(lambda: told(node, service) >= told_before + count, within=RIGHT_SECONDS, every=0.2)


def test_a_nats_server_that_hangs_is_replaced_and_no_pod_notices(node: Node) -> None:
    """Three questions in vain, three seconds each, and the pauses between them: 25 s."""
    before = witness(node)
    said = len(node.log())
    (hung,) = node.pids("nats-server")
    os.kill(hung, signal.SIGSTOP)
    eventually(lambda: "nats-server hangs: killed" in node.log()[said:], within=60, every=0.2)
    eventually(lambda: "nats-server ready again" in node.log()[said:], within=RETURN_SECONDS, every=0.2)
    node.apply("extra.yaml", sleeper("late", grace=1))
    eventually(lambda: node.ready_pods() == {*PODS, "late"}, within=RIGHT_SECONDS, every=0.2)
    node.withdraw("extra.yaml")
    eventually(lambda: node.pods().keys() == set(PODS), within=RIGHT_SECONDS, every=0.2)
    eventually(lambda: witness(node) == before, within=5)


def test_a_killed_supervisor_takes_its_children_along_and_the_next_one_adopts_the_pods(node: Node) -> None:
    before = witness(node)
    children = [pid for name in ("source", "status", "stats", "api", "podworker") for pid in node.pids(name)]
    children += node.pids("nats-server")
    assert len(children) == 5 + WORKERS
    node.stop(signal.SIGKILL)
    eventually(lambda: not any(is_alive(pid) for pid in children), within=30)
    assert node.containers(every=True) == before["containers"]
    node.start()
    eventually(lambda: node.ready_pods() == set(PODS), within=RIGHT_SECONDS, every=0.2)
    assert witness(node) == before


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
