"""Image pull policies against a real registry."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.eventually import eventually
from tests.support.node import Node, NodeMaker, is_ready, sleeper
from tests.support.registry import Registry

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    made = Registry(tmp_path / "registry")
    made.start()
    yield made
    made.stop()


def waiting(node: Node, name: str) -> dict[str, Any]:
    state: dict[str, Any] = node.pod(name)["status"]["containerStatuses"][0]["state"]
    found: dict[str, Any] = state.get("waiting", {})
    return found


def reasons(node: Node, name: str) -> list[str]:
    events = node.json(f"/podbus/events?namespace=default&name={name}-{node.name}")["events"]
    return [e["reason"] for e in events]


def test_images_are_pulled_as_the_policy_says(a_node: NodeMaker, registry: Registry) -> None:
    """Always asks the registry at each start, IfNotPresent pulls once; both are told as events. An image that can't be
    had is waited for with a back-off whose message holds the registry's own words, and runs once it is there."""
    node = a_node()
    image = registry.push("busybox:1.36", "podbus-test/pulled:1")
    try:
        node.apply("once.yaml", sleeper("once").replace("busybox:1.36", image))
        eventually(lambda: is_ready(node.pod("once")), within=30)
        eventually(lambda: {"Pulling", "Pulled", "Started"} <= set(reasons(node, "once")), within=15)
        status = node.pod("once")["status"]["containerStatuses"][0]
        assert status["imageID"].startswith(f"docker-pullable://{registry.address}/podbus-test/pulled@sha256:")

        always = sleeper("always").replace(f"image: {'busybox:1.36'}", f"image: {image}\n    imagePullPolicy: Always")
        node.apply("always.yaml", always)
        eventually(lambda: is_ready(node.pod("always")), within=30)
        eventually(lambda: "Pulling" in reasons(node, "always"), within=15)

        missing = f"{registry.address}/podbus-test/later:1"
        node.apply("later.yaml", sleeper("later").replace("busybox:1.36", missing))
        eventually(lambda: waiting(node, "later").get("reason") == "ImagePullBackOff", within=30)
        message = waiting(node, "later")["message"]
        assert f'Back-off pulling image "{missing}"' in message
        assert "manifest unknown" in message
        registry.push("busybox:1.36", "podbus-test/later:1")
        eventually(lambda: is_ready(node.pod("later")), within=60)
    finally:
        node.close()
        for name in ("pulled", "later"):
            subprocess.run(["docker", "rmi", "-f", f"{registry.address}/podbus-test/{name}:1"], capture_output=True)
