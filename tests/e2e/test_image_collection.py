"""A full disk makes room by images that podbus has pulled and nobody uses; nothing else goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import NodeMaker, is_ready, sleeper
from tests.support.registry import Registry

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

YOUNG = "imageMinimumGCAge: 10ms\n"


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    made = Registry(tmp_path / "registry")
    made.start()
    yield made
    made.stop()


def has_image(reference: str) -> bool:
    return bool(docker_client().images(reference))


def test_unused_images_of_ours_are_removed(a_node: NodeMaker, registry: Registry) -> None:
    """D06: the one that a container uses stays, and so does what was on the engine before."""
    base = docker_client().create_container("busybox:1.36")["Id"]
    references = []
    for name in ("unused", "used"):
        docker_client().commit(base, f"podbus-test-{name}", "1", changes=f"LABEL n={registry.address}{name}")
        references.append(registry.push(f"podbus-test-{name}:1", f"podbus-test/{name}:1"))
        docker_client().remove_image(f"podbus-test-{name}:1")
    docker_client().remove_container(base)
    unused, used = references
    node = a_node(config=YOUNG + "imageGCHighThresholdPercent: 100\n")
    try:
        node.apply("unused.yaml", sleeper("unused").replace("busybox:1.36", unused))
        node.apply("used.yaml", sleeper("used").replace("busybox:1.36", used))
        eventually(lambda: all(is_ready(node.pod(name)) for name in ("used", "unused")), within=30)
        node.withdraw("unused.yaml")
        eventually(lambda: len(node.containers(every=True)) == 2, within=30)
        node.stop()
        assert has_image(unused)
        node.reconfigure(YOUNG + "imageGCHighThresholdPercent: 1\nimageGCLowThresholdPercent: 0\n")
        node.start()
        eventually(lambda: not has_image(unused), within=30)
        eventually(lambda: "FreeDiskSpaceFailed" in str(node.json("/podbus/events")), within=15)
        assert has_image(used)
        assert has_image("busybox:1.36")
        assert has_image("podbus/pause:3.10")
    finally:
        node.close()
        for reference in filter(has_image, references):
            docker_client().remove_image(reference, force=True)
