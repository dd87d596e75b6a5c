"""One owner per pod on Docker: twenty static pods, half of them edited again and again, while workers and nats-server
are killed and the server's store is wiped. Docker's own events are the witness."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.engine_events import EngineEvents
from tests.support.engine_record import backwards, doubles, repeats, running, runs
from tests.support.eventually import eventually
from tests.support.node import Node, NodeMaker, is_ready, sleeper
from tests.support.ownership_journal import handlings, overlaps, parse, reversals

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats, pytest.mark.serial]

PODS = [f"pod-{number}" for number in range(20)]
EDITED = PODS[:10]
EDITS = 40
WORKERS = 3


class Faults:
    def __init__(self, node: Node) -> None:
        self._node = node
        self.deaths: dict[str, int] = {}

    def kill_worker(self) -> None:
        pid = self._node.pids("podworker")[0]
        self.deaths[str(pid)] = time.monotonic_ns()
        os.kill(pid, signal.SIGKILL)

    def kill_server(self) -> None:
        for pid in self._node.pids("nats-server"):
            os.kill(pid, signal.SIGKILL)

    def wipe_server(self) -> None:
        """Its supervisor is held, so that the store is gone before the next server starts."""
        (supervisor,) = [int((self._node.data / "run" / "supervisor.pid").read_text())]
        os.kill(supervisor, signal.SIGSTOP)
        try:
            self.kill_server()
            shutil.rmtree(self._node.data / "nats" / "store")
        finally:
            os.kill(supervisor, signal.SIGCONT)


@pytest.mark.timeout(300)
def test_twenty_pods_on_docker_have_one_owner_each_through_every_death(
    a_node: NodeMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "journal"
    monkeypatch.setenv("PODBUS_TEST_JOURNAL", str(journal))
    node = a_node(workers=WORKERS)
    events = EngineEvents(tmp_path / "events", node.instance)
    try:
        versions = dict.fromkeys(PODS, 1)
        for name in PODS:
            write(node, name, 1)
        eventually(lambda: all_at(node, versions), within=60, every=0.5)
        quiet = {name: id_ for name, id_ in node.containers().items() if not any(f"_{p}-" in name for p in EDITED)}
        faults = Faults(node)
        edit_through(node, versions, [faults.kill_worker, faults.kill_server, faults.wipe_server, faults.kill_worker])
        eventually(lambda: all_at(node, versions), within=60, every=0.5)
        eventually(lambda: len(node.containers(every=True)) == 2 * len(PODS), within=30, every=0.5)
        assert quiet.items() <= node.containers().items(), "pods that nobody edited were restarted"
        ran = runs(events.record())
    finally:
        events.close()
    assert doubles(ran) == []
    assert backwards(ran) == []
    assert repeats(ran) == []
    assert running(ran) == {f"default/{name}-{node.name}": version for name, version in versions.items()}
    handled = handlings(parse(journal.read_text()), faults.deaths)
    name_of = {run.uid: run.pod for run in ran}
    assert overlaps(handled, name_of) == []
    assert reversals(handled) == []


def edit_through(node: Node, versions: dict[str, int], faults: list[Callable[[], None]]) -> None:
    """EDITS edits of random pods of EDITED, about three a second, the faults spread evenly among them."""
    rng = random.Random(1)
    due = {EDITS * (n + 1) // (len(faults) + 1): fault for n, fault in enumerate(faults)}
    for number in range(EDITS):
        if (fault := due.get(number)) is not None:
            fault()
        name = rng.choice(EDITED)
        versions[name] += 1
        write(node, name, versions[name])
        eventually(partial(is_past, time.monotonic() + rng.uniform(0.1, 0.6)), within=5)


def is_past(instant: float) -> bool:
    return time.monotonic() > instant


def write(node: Node, name: str, version: int) -> None:
    node.apply(f"{name}.yaml", sleeper(name).replace("name: main", f"name: v{version}"))


def all_at(node: Node, versions: dict[str, int]) -> bool:
    pods = node.pods()
    for name, version in versions.items():
        pod = pods.get(name)
        assert pod is not None, f"{name} isn't shown"
        assert pod["spec"]["containers"][0]["name"] == f"v{version}", f"{name} isn't at {version}"
        assert is_ready(pod), f"{name} isn't ready: {pod['status']}"
    return pods.keys() == versions.keys()
