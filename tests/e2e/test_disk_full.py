"""The data directory's disk is full: pods run on, it's told, nothing new starts, and with room again all goes on."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node, sleeper

pytestmark = [
    *(pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats, pytest.mark.timeout(240)),
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk: needs root"),
]

DISK = "48m"
TOLD_SECONDS = 60
BACK_SECONDS = 60
"""A refused pod is tried again after 10 to 15 s, a service that ended after 10 s at most."""


@pytest.fixture
def node() -> Iterator[Node]:
    """Its data directory is a disk of its own."""
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory), workers=2)
        made.data.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0755", "podbus", made.data], check=True)
        try:
            made.start()
            yield made
        finally:
            try:
                ballast(made).unlink(missing_ok=True)
                made.close()
            finally:
                subprocess.run(["umount", "--lazy", made.data], check=True)


def ballast(node: Node) -> Path:
    return node.data / "ballast"


def fill(node: Node) -> None:
    """Up to the last byte that the disk takes."""
    with ballast(node).open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(b"\0" * size):
                    pass
            except OSError:
                continue


def is_full_for(node: Node, until: float) -> bool:
    """Whatever gets free is taken again."""
    fill(node)
    return time.monotonic() > until


def test_a_full_disk_stops_no_pod_and_starts_none(node: Node) -> None:
    for name in ("a", "b"):
        node.apply(f"{name}.yaml", sleeper(name))
    eventually(lambda: node.ready_pods() == {"a", "b"}, within=30)
    before = node.containers(every=True)
    fill(node)
    node.apply("late.yaml", sleeper("late"))
    eventually(partial(is_full_for, node, time.monotonic() + 25), within=40, every=0.5)
    eventually(lambda: is_told(node), within=TOLD_SECONDS, every=0.5)
    assert node.containers(every=True) == before, "a pod was touched, or one started that can't be stored"
    ballast(node).unlink()
    eventually(lambda: node.ready_pods() == {"a", "b", "late"}, within=BACK_SECONDS, every=0.5)
    now = node.containers(every=True)
    assert before.items() <= now.items()
    assert len(now) == len(before) + 2
    eventually(lambda: rows(node) == {"a", "b", "late"}, within=BACK_SECONDS)
    eventually(lambda: node.json("/podbus")["troubles"] == [], within=BACK_SECONDS, every=0.5)


def is_told(node: Node) -> bool:
    """Where people look at the node, and in the log: by a worker, or of a bus that the full disk has taken along."""
    assert any("full" in trouble for trouble in node.json("/podbus")["troubles"])
    return any("pods.db" in line and "full" in line for line in node.log().splitlines()) or "hangs" in node.log()


def rows(node: Node) -> set[str]:
    """The pods in pods.db."""
    with sqlite3.connect(f"file:{node.data / 'pods.db'}?mode=ro", uri=True) as database:
        return {name.removesuffix(f"-{node.name}") for (name,) in database.execute("select name from pods")}
