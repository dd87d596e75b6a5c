"""The engine ends, dies, comes back; the machine is reset: every pod runs again, none twice."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from services.podworker.adapters.mounting import unmount_below
from tests.support.eventually import eventually
from tests.support.node import Node, is_ready, sleeper
from tests.support.private_engine import PrivateEngine

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats, pytest.mark.serial, pytest.mark.timeout(240)]

PODS = [f"p{number}" for number in range(8)]


@contextmanager
def node_on_its_own_engine(*, live_restore: bool) -> Iterator[tuple[Node, PrivateEngine]]:
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        engine = PrivateEngine(Path(directory) / "e", live_restore=live_restore)
        node = Node(Path(directory) / "n", docker_host=engine.host)
        try:
            engine.start()
            node.start()
            for name in PODS:
                node.apply(f"{name}.yaml", sleeper(name, grace=2))
            eventually(lambda: node.ready_pods() == set(PODS), within=60)
            yield node, engine
        finally:
            node.close()
            engine.close()


def restarts(node: Node) -> dict[str, int]:
    return {name: pod["status"]["containerStatuses"][0]["restartCount"] for name, pod in node.pods().items()}


def ready_since(node: Node) -> dict[str, str]:
    times = {}
    for name, pod in node.pods().items():
        (ready,) = [c for c in pod["status"]["conditions"] if c["type"] == "Ready"]
        times[name] = ready["lastTransitionTime"]
    return times


def live_names(node: Node) -> list[str]:
    """Container and pod of everything that runs, without attempts: a double would show twice."""
    return sorted(name.rpartition("_")[0] for name in node.containers())


def all_run_once(node: Node) -> bool:
    names = live_names(node)
    return node.ready_pods() == set(PODS) and len(names) == len(set(names)) == 2 * len(PODS)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["ended", "killed"])
def test_with_live_restore_the_pods_run_on(how: signal.Signals) -> None:
    """Same containers, no restart, and Ready never moved; a pod that came meanwhile starts afterwards."""
    with node_on_its_own_engine(live_restore=True) as (node, engine):
        containers, since = node.containers(), ready_since(node)
        engine.stop(how)
        node.apply("late.yaml", sleeper("late", grace=2))
        eventually(lambda: "late" in node.pods(), within=15)
        engine.start()
        eventually(lambda: node.ready_pods() == {*PODS, "late"}, within=60)
        assert containers.items() <= node.containers().items()
        assert all(ready_since(node)[name] == since[name] for name in PODS)
        assert set(restarts(node).values()) == {0}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["ended", "killed"])
def test_without_live_restore_the_pods_come_back(how: signal.Signals) -> None:
    """The engine stops them at its end or at its next start; each comes back once, in a new sandbox."""
    with node_on_its_own_engine(live_restore=False) as (node, engine):
        before = node.containers()
        engine.stop(how)
        engine.start()
        eventually(lambda: not before.keys() & node.containers().keys() and all_run_once(node), within=120)
        assert set(restarts(node).values()) == {1}


WITH_VOLUMES = """apiVersion: v1
kind: Secret
metadata: {name: token}
stringData: {token: s3cret}
---
apiVersion: v1
kind: Pod
metadata: {name: volumes}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: main
    image: busybox:1.36
    command: [sh, -c, "cat /token /m/f >> /d/seen; touch /m/f; trap 'exit 0' TERM; sleep 3600 & wait"]
    volumeMounts:
    - {name: token, mountPath: /token, subPath: token}
    - {name: m, mountPath: /m}
    - {name: d, mountPath: /d}
  volumes:
  - {name: token, secret: {secretName: token}}
  - {name: m, emptyDir: {medium: Memory}}
  - {name: d, emptyDir: {}}
"""


def test_after_a_reset_of_the_machine_all_pods_come_back() -> None:
    """Agent, engine and containers die at once; the run directory, which lies on a tmpfs, is gone, and so are all
    mounts: volumes in memory are made anew, those on the disk are as they were."""
    with node_on_its_own_engine(live_restore=False) as (node, engine):
        node.apply("volumes.yaml", WITH_VOLUMES)
        eventually(lambda: is_ready(node.pod("volumes")), within=30)
        uid = node.pod("volumes")["metadata"]["uid"]
        seen = node.data / "pods" / uid / "volumes" / "kubernetes.io~empty-dir" / "d" / "seen"
        eventually(lambda: seen.read_text() == "s3cret", within=10)
        node.stop(signal.SIGKILL)
        engine.kill_everything()
        eventually(lambda: not node.agent_pids(), within=30)
        unmount_below(node.data)
        shutil.rmtree(node.data / "run")
        engine.start()
        assert not node.containers()
        node.start()
        eventually(lambda: seen.read_text() == "s3crets3cret", within=120)
        node.withdraw("volumes.yaml")
        eventually(lambda: all_run_once(node), within=120)
        assert set(restarts(node).values()) == {1}
        assert all(name.endswith("_1") for name in node.containers())
