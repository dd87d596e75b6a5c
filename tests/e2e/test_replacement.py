"""An edited pod: the new version starts only after the old one has ended, whoever dies meanwhile."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.engine_events import EngineEvents
from tests.support.engine_record import Run, doubles, runs
from tests.support.eventually import eventually
from tests.support.node import Node, NodeMaker, is_ready, sleeper
from tests.support.node_bus import pod_reports

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats, pytest.mark.timeout(120)]

GRACE = 5
REPLACED_SECONDS = 3 * (GRACE + 2)
"""Three times what is promised: gone within its grace + 2 s."""
DEAF = "trap '' TERM; while true; do sleep 1; done"


def write(node: Node, version: int) -> None:
    """The pod at this version; it ignores TERM."""
    text = sleeper("deaf", command=DEAF, grace=GRACE)
    node.apply("deaf.yaml", text.replace("name: main", f"name: v{version}"))


def is_at(node: Node, version: int) -> bool:
    pod = node.pod("deaf")
    return [c["name"] for c in pod["spec"]["containers"]] == [f"v{version}"] and is_ready(pod)


def is_ending(node: Node) -> bool:
    return any(report.state == "terminating" for report in pod_reports(node))


@contextmanager
def seen_by_the_engine(node: Node, directory: Path) -> Iterator[Callable[[], list[Run]]]:
    """What runs meanwhile, by the engine's own events."""
    events = EngineEvents(directory / "events", node.instance)
    try:
        yield lambda: runs(events.record())
    finally:
        events.close()


def replace(node: Node, directory: Path, *, through: tuple[int, ...] = (), killed: tuple[int, ...] = ()) -> None:
    """Version 1 runs, is edited to those of `through` and then to 9; while it ends these processes are killed."""
    with seen_by_the_engine(node, directory) as ran:
        write(node, 1)
        eventually(lambda: is_at(node, 1), within=15)
        for version in (*through, 9):
            write(node, version)
            eventually(lambda: is_ending(node), within=10)
        for pid in killed or ():
            os.kill(pid, signal.SIGKILL)
        assert [run.version for run in ran()] == [1]
        eventually(lambda: is_at(node, 9), within=REPLACED_SECONDS)
        assert_one_after_the_other(ran())


def assert_one_after_the_other(ran: list[Run]) -> None:
    assert doubles(ran) == [], "the new one ran beside the old one"
    assert [run.version for run in ran] == [1, 9]
    lasted = (ran[0].end - ran[0].start) / 1e9
    assert lasted >= GRACE, f"the old one was killed {lasted:.1f} s after its start"


@pytest.mark.parametrize("workers", [1, 4])
def test_the_new_version_waits_until_the_old_one_that_ignores_term_has_ended(
    a_node: NodeMaker, workers: int, tmp_path: Path
) -> None:
    replace(a_node(workers=workers), tmp_path)


@pytest.mark.parametrize("workers", [1, 4])
def test_of_three_edits_in_a_row_only_the_last_starts(a_node: NodeMaker, workers: int, tmp_path: Path) -> None:
    replace(a_node(workers=workers), tmp_path, through=(2, 3))


@pytest.mark.parametrize("workers", [1, 4])
def test_it_waits_also_when_its_owner_dies_in_the_middle(a_node: NodeMaker, workers: int, tmp_path: Path) -> None:
    """The next owner ends it at the deadline that the dead one has set. All workers' pods were looked at: the one with
    a pod is the owner."""
    node = a_node(workers=workers)
    write(node, 1)
    owner = eventually(lambda: owner_pid(node), within=20)
    replace(node, tmp_path, killed=(owner,))


def test_an_edit_while_the_agent_is_down_and_loses_its_database_waits_too(a_node: NodeMaker, tmp_path: Path) -> None:
    """The containers' labels tell enough."""
    node = a_node()
    with seen_by_the_engine(node, tmp_path) as ran:
        write(node, 1)
        eventually(lambda: is_at(node, 1), within=15)
        node.stop()
        for path in node.data.glob("pods.db*"):
            path.unlink()
        write(node, 9)
        node.start()
        eventually(lambda: is_at(node, 9), within=REPLACED_SECONDS)
        assert_one_after_the_other(ran())


def owner_pid(node: Node) -> int:
    """The process of the one worker that has a pod. Raises AssertionError or KeyError until one has said so."""
    for path in (node.data / "run" / "health").glob("podworker*.json"):
        facts = json.loads(path.read_text())
        if facts["pods"]:
            return int(facts["pid"])
    raise AssertionError("no worker says that it has a pod")
