"""A node for a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.docker_env import docker_client
from tests.support.node import Node, NodeMaker


@pytest.fixture
def a_node() -> Iterator[NodeMaker]:
    """Make started nodes; all end, with their pods, with the test. Short paths: sockets live below them."""
    docker_client().close()
    made: list[Node] = []
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:

        def make(**options: object) -> Node:
            node = Node(Path(directory) / str(len(made)), **options)  # type: ignore[arg-type]
            made.append(node)
            node.start()
            return node

        yield make
        for node in made:
            node.close()
