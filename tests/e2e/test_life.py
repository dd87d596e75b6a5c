"""The main job on a whole node: a manifest is a running pod, and its removal the end of it."""

from __future__ import annotations

import pytest

from tests.support.eventually import eventually
from tests.support.node import NodeMaker, is_ready, sleeper

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]


def test_a_manifest_runs_and_ends_with_its_file(a_node: NodeMaker) -> None:
    """Bounds are three times what the product promises: Running within 1 s, gone within the grace + 2 s."""
    node = a_node()
    node.apply("a.yaml", sleeper("a", grace=3))
    eventually(lambda: is_ready(node.pod("a")), within=3)
    assert node.pod("a")["status"]["phase"] == "Running"
    node.withdraw("a.yaml")
    eventually(lambda: "a" not in node.pods(), within=15)
    assert not node.containers(every=True)


def test_an_agent_that_ends_leaves_its_pods_running_and_adopts_them(a_node: NodeMaker) -> None:
    node = a_node()
    node.apply("a.yaml", sleeper("a"))
    before = eventually(lambda: node.containers() if is_ready(node.pod("a")) else None, within=10)
    assert node.stop() == 0
    assert node.containers() == before
    node.start()
    eventually(lambda: is_ready(node.pod("a")), within=10)
    assert node.containers() == before
    assert node.pod("a")["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_bad_manifest_is_told_with_file_line_and_field_and_leaves_the_others_alone(a_node: NodeMaker) -> None:
    node = a_node()
    node.apply("good.yaml", sleeper("good"))
    node.apply("bad.yaml", sleeper("bad").replace("image: busybox:1.36", "image: ''") + "    badField: 1\n")
    eventually(lambda: is_ready(node.pod("good")), within=10)
    source = eventually(lambda: [s for s in node.json("/podbus/sources")["sources"] if s["errors"]], within=10)[0]
    errors = [(e["path"].rpartition("/")[2], e["field"]) for e in source["errors"]]
    assert ("bad.yaml", "spec.containers[0].image") in errors
    assert all(e["line"] > 0 for e in source["errors"])
    assert "bad" not in node.pods()

    def told_as_an_event() -> bool:
        return any("bad.yaml" in event["message"] for event in node.json("/podbus/events")["events"])

    eventually(told_as_an_event, within=20)
