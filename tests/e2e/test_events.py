"""What a real kubelet 1.20.2 told of pods in trouble, and what this node tells of them: only listed differences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from tests.support.docker_env import docker_client
from tests.support.event_differences import GOLDEN, Told, recorded, told
from tests.support.eventually import eventually
from tests.support.node import Node

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]

PODS = {
    one["metadata"]["name"]: one
    for one in yaml.safe_load_all((GOLDEN / "cases.yaml").read_text())
    if one["kind"] == "Pod" and one["metadata"]["name"] != "e01-config"  # nothing was wrong with it
}


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """One node for all cases."""
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        made = Node(Path(directory))
        try:
            made.start()
            for name, pod in PODS.items():
                made.apply(f"{name}.yaml", yaml.safe_dump(pod))
            yield made
        finally:
            made.close()


def skip_if_not_run_yet(node: Node, case: str) -> None:
    (source,) = eventually(lambda: node.json("/podbus/sources")["sources"], within=10)
    errors = [one for one in source["errors"] if Path(one["path"]).name == f"{case}.yaml"]
    if errors and all("not supported by this version" in one["message"] for one in errors):
        pytest.skip(", ".join(f"{one['field']} {one['message']}" for one in errors))
    assert not errors


@pytest.mark.parametrize("case", sorted(PODS))
def test_events_are_told_as_the_kubelet_tells_them(node: Node, case: str) -> None:
    skip_if_not_run_yet(node, case)
    theirs = recorded(case)

    def ours() -> set[Told]:
        pod: dict[str, Any] = node.pod(case)
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        return told(case, uid, name, node.json(f"/podbus/events?uid={uid}")["events"])

    def same() -> bool:
        found = ours()
        assert found == theirs, f"missing: {sorted(theirs - found)}\nmore: {sorted(found - theirs)}"
        return True

    eventually(same, within=60)
