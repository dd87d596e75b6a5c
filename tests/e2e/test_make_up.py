"""`make up` and `make down`, as a newcomer types them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.docker_env import docker_client
from tests.support.node import ROOT, Node

pytestmark = [
    *(pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats, pytest.mark.serial, pytest.mark.timeout(240)),
    pytest.mark.skipif(
        Path("/run/systemd/system").exists(), reason="with systemd the one unit of this machine would be changed"
    ),
]


class MadeNode(Node):
    """Started and ended by make; seen as any node."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.config = directory / "config.yaml"
        self.config.write_text(
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
            f"address: 127.0.0.1\nhealthzPort: {self.healthz_port}\n"
        )

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "PODBUS_CONFIG": str(self.config)}

    def make(self, *arguments: str) -> str:
        command = ["make", *arguments, f"DATA={self.data}", f"MANIFESTS={self.manifests}", f"PORT={self.port}"]
        # MAKEFLAGS: what a make around the tests was told is not for this one.
        environment = {key: value for key, value in self.environment.items() if not key.startswith("MAKE")}
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def close(self) -> None:
        try:
            self.make("down")
        finally:
            super().close()


@pytest.fixture
def node() -> Iterator[MadeNode]:
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = MadeNode(Path(directory))
        try:
            yield made
        finally:
            made.close()


def printed(text: str, key: str) -> str:
    """What follows the key in a line of its own."""
    (line,) = (line for line in text.splitlines() if line.startswith(f"{key} "))
    return line.removeprefix(key).strip()


def test_make_up_prints_the_running_example_and_how_to_get_on(node: MadeNode) -> None:
    said = node.make("up")
    assert re.search(r"^NAMESPACE +NAME +READY +STATUS", said, re.MULTILINE)
    assert re.search(r"^default +web-n1 +1/1 +Running +0 ", said, re.MULTILINE)
    assert printed(said, "API").startswith(f"https://127.0.0.1:{node.port}; CA {node.data}/pki/ca.crt")
    hint = printed(said, "token").split()
    token = subprocess.run(hint, check=True, capture_output=True, text=True, timeout=30).stdout.strip()
    assert node.get("/pods", token=token)[0] == 200
    assert node.get("/pods", token="")[0] == 401


def test_make_up_twice_says_that_its_up(node: MadeNode) -> None:
    node.make("up")
    before = node.containers(), (node.data / "run" / "supervisor.pid").read_text()
    said = node.make("up")
    assert "podbus is up" in said.splitlines()
    assert f"127.0.0.1:{node.port}" in printed(said, "API")
    assert (node.containers(), (node.data / "run" / "supervisor.pid").read_text()) == before


def test_make_down_leaves_the_pods_unless_they_are_meant(node: MadeNode) -> None:
    node.make("up")
    before = node.containers()
    assert before
    assert "the pods keep running" in node.make("down")
    assert node.containers() == before
    assert "podbus is not running" in node.make("down", "PODS=1")
    assert not node.containers(every=True)


def test_the_example_comes_only_to_a_new_node_without_manifests(node: MadeNode) -> None:
    node.apply("own.yaml", (ROOT / "deploy" / "examples" / "web.yaml").read_text().replace("name: web", "name: own"))
    assert re.search(r"^default +own-n1 +1/1 +Running", node.make("up"), re.MULTILINE)
    assert [path.name for path in node.manifests.iterdir()] == ["own.yaml"]
