"""Four workers share forty pods: each pod has one owner, and a death moves the dead one's pods only."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest

from tests.support.eventually import eventually
from tests.support.node import Node, NodeMaker, sleeper
from tests.support.node_bus import owners, runtime_report

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats, pytest.mark.timeout(180)]

PODS = [f"p{number:02}" for number in range(40)]
WORKERS = 4
MOVE_SECONDS = 15
"""A death is seen within 0.1 s, a join after 1 s; then each pod is looked at once and reported."""


def test_each_of_forty_pods_has_one_owner_and_a_death_moves_only_the_dead_workers_pods(a_node: NodeMaker) -> None:
    node = a_node(workers=WORKERS)
    for name in PODS:
        node.apply(f"{name}.yaml", sleeper(name))
    eventually(lambda: node.ready_pods() == set(PODS), within=90, every=0.5)
    before, containers = owners(node), node.containers(every=True)
    assert len(containers) == 2 * len(PODS)
    assert before.keys() == set(PODS)
    assert sorted(Counter(before.values())) == runtime_report(node).workers, "a worker without pods, or none's pods"
    assert len(set(before.values())) == WORKERS

    victim = node.pids("podworker")[0]
    supervisor = int((node.data / "run" / "supervisor.pid").read_text())
    os.kill(supervisor, signal.SIGSTOP)  # no successor yet: it would take the same number
    try:
        os.kill(victim, signal.SIGKILL)
        dead, moved = eventually(lambda: who_died(before, owners(node)), within=MOVE_SECONDS, every=0.3)
        assert {name for name, owner in before.items() if owner == dead} == moved
    finally:
        os.kill(supervisor, signal.SIGCONT)
    eventually(lambda: len(set(owners(node).values())) == WORKERS, within=MOVE_SECONDS + 15, every=0.3)
    after = owners(node)
    assert {name for name in PODS if after[name] != before[name]} <= moved
    assert node.containers(every=True) == containers
    assert all_unrestarted(node)


def who_died(before: dict[str, int], now: dict[str, int]) -> tuple[int, set[str]] | None:
    """The number that owns nothing any more, and the pods whose owner changed; None while nobody has died."""
    gone = set(before.values()) - set(now.values())
    if len(gone) != 1:
        return None
    return gone.pop(), {name for name, owner in before.items() if now[name] != owner}


def all_unrestarted(node: Node) -> bool:
    return all(pod["status"]["containerStatuses"][0]["restartCount"] == 0 for pod in node.pods().values())
