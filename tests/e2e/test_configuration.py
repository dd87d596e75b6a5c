"""A node that is configured by a file, drop-ins and flags."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import ROOT, Node

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


@pytest.fixture
def node_directory() -> Iterator[Path]:
    """A short path: sockets live below it."""
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        yield Path(directory)


class ConfiguredNode(Node):
    further: tuple[str, ...] = ()

    @property
    def flags(self) -> list[str]:
        return list(self.further)


def test_flags_win_over_drop_ins_and_these_over_the_file(node_directory: Path) -> None:
    """node 1, 2, 4 of section 15: what the Node tells and what /configz shows."""
    drop_ins = node_directory / "conf.d"
    drop_ins.mkdir()
    (drop_ins / "10-a.conf").write_text(f"{HEAD}maxPods: 30\npodsPerCore: 1000\nfeatureGates: {{ImageVolume: true}}\n")
    (drop_ins / "20-b.conf").write_text(f"{HEAD}maxPods: 40\nclusterDomain: b.local\n")
    (drop_ins / "c.yaml").write_text(f"{HEAD}maxPods: 99\n")
    node = ConfiguredNode(node_directory / "node", config="maxPods: 50\nfeatureGates: {NodeSwap: true}\nmaxPod: 1\n")
    node.further = ("--config-dir", str(drop_ins))
    try:
        node.start()
        eventually(lambda: capacity(node) == "40", within=30)
        assert "maxPod: unknown field" in node.log()
        node.stop()
        node.further = (*node.further, "--max-pods=20", "--feature-gates", "NodeSwap=false")
        node.start()
        eventually(lambda: capacity(node) == "20", within=30)
        shown = json.loads(node.get("/configz")[1])["kubeletconfig"]
        assert shown["featureGates"] == {"ImageVolume": True, "NodeSwap": False}
        assert (shown["clusterDomain"], shown["podsPerCore"]) == ("b.local", 1000)
    finally:
        node.close()


def test_a_file_of_another_kind_ends_the_start_with_its_name(tmp_path: Path) -> None:
    """node 5 of section 15."""
    (tmp_path / "a.conf").write_text("apiVersion: v1\nkind: Pod\n")
    command = [sys.executable, "-m", "cli.main", "up", "--data", str(tmp_path / "d"), "--config-dir", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 78
    assert f'{tmp_path}/a.conf:2: kind: must be "KubeletConfiguration", got "Pod"' in ended.stderr
    assert not (tmp_path / "d").exists()


def capacity(node: Node) -> str:
    shown = node.json("/podbus/node")
    return str(shown["status"]["capacity"]["pods"])
