"""A worker that stands still holds what it owns: its pods wait, nobody else touches them, the others' pods go on."""

from __future__ import annotations

import json
import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from shared.runtime.health import HANG_SECONDS
from tests.support.engine_events import EngineEvents
from tests.support.engine_record import doubles, running, runs
from tests.support.eventually import eventually
from tests.support.node import Node, NodeMaker, is_ready, sleeper
from tests.support.node_bus import owners

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats, pytest.mark.timeout(180)]

PODS = [f"p{number}" for number in range(9)]
WORKERS = 3
GRACE = 1
REPLACED_SECONDS = 3 * (GRACE + 2)


def test_the_pods_of_a_worker_that_stands_still_wait_and_the_others_go_on(a_node: NodeMaker, tmp_path: Path) -> None:
    """It stands for longer than a loop may hang: its watchdog must tell the one from the other."""
    node = a_node(workers=WORKERS)
    events = EngineEvents(tmp_path / "events", node.instance)
    try:
        for name in PODS:
            write(node, name, 1)
        eventually(lambda: all(is_at(node, name, 1) for name in PODS), within=60, every=0.3)
        victim, pid = eventually(lambda: a_worker_with_pods(node), within=30)
        owner_of = owners(node)
        held = [name for name in PODS if owner_of[name] == victim]
        free = [name for name in PODS if owner_of[name] != victim]
        containers = node.containers(every=True)
        os.kill(pid, signal.SIGSTOP)
        try:
            stopped_at = time.monotonic()
            for name in (*free, *held):
                write(node, name, 2)
            eventually(lambda: all(is_at(node, name, 2) for name in free), within=REPLACED_SECONDS, every=0.3)
            eventually(partial(is_past, stopped_at + HANG_SECONDS + 5), within=HANG_SECONDS + 10, every=0.3)
            now = node.containers(every=True)
            for name, id_ in containers.items():
                assert not any(f"_{pod}-" in name for pod in held) or now.get(name) == id_, f"{name} was touched"
            assert len(now) == len(containers)
        finally:
            os.kill(pid, signal.SIGCONT)
        eventually(lambda: all(is_at(node, name, 2) for name in PODS), within=REPLACED_SECONDS + 5, every=0.3)
        assert pid in node.pids("podworker"), "standing still was taken for hanging"
        ran = runs(events.record())
    finally:
        events.close()
    assert doubles(ran) == []
    assert running(ran) == {f"default/{name}-{node.name}": 2 for name in PODS}


def write(node: Node, name: str, version: int) -> None:
    node.apply(f"{name}.yaml", sleeper(name, grace=GRACE).replace("name: main", f"name: v{version}"))


def is_at(node: Node, name: str, version: int) -> bool:
    pod = node.pod(name)
    return pod["spec"]["containers"][0]["name"] == f"v{version}" and is_ready(pod)


def a_worker_with_pods(node: Node) -> tuple[int, int]:
    """(its number, its pid), as its health file tells. Raises AssertionError until one has said so."""
    for path in (node.data / "run" / "health").glob("podworker*.json"):
        facts = json.loads(path.read_text())
        if 0 < facts["pods"] < len(PODS):
            return int(facts["worker"]), int(facts["pid"])
    raise AssertionError("no worker says that it has pods")


def is_past(instant: float) -> bool:
    return time.monotonic() > instant
