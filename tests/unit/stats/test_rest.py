"""cAdvisor's REST answers from a sampled node."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from services.stats.adapters.machine import SystemMachine
from services.stats.core.machine import MachineFacts
from services.stats.core.model import Targets
from services.stats.core.rest import Refused, answer
from tests.support.stats_node import POD, POD_PATH, WEB, Node

WEB_PATH = f"{POD_PATH}/{WEB.id}"


@pytest.fixture
def node() -> Node:
    made = Node()
    made.start_pod()
    made.cgroups.cpu_ns[WEB_PATH] = 5
    made.collector.set_targets(Targets(pods=(POD,)))
    made.collector.want_details()
    return made


def ask(node: Node, path: str, **options: str) -> Any:
    collector = node.collector
    return answer(path, options, collector.node(), collector.pods(), MachineFacts())


def test_a_container_is_found_by_the_beginning_of_its_id(node: Node) -> None:
    """Case 43: a map with one key, and an error for an unknown one."""
    told = ask(node, f"v1.3/docker/{WEB.id[:12]}")
    assert list(told) == [WEB_PATH]
    assert told[WEB_PATH]["aliases"] == ["k8s_web_web_default_u-1_0", WEB.id]
    assert told[WEB_PATH]["spec"]["labels"]["io.kubernetes.pod.name"] == "web"
    with pytest.raises(Refused) as refused:
        ask(node, "v1.3/docker/ffff")
    assert refused.value.status == 500


def test_instant_cpu_is_told_from_the_second_sample_on(node: Node) -> None:
    """Case 45, and the root isn't among the containers."""
    options = {"type": "docker", "recursive": "true", "count": "-1"}
    first = ask(node, "v2.1/stats/", **options)
    assert "/" not in first
    assert "cpu_inst" not in first[WEB_PATH]["stats"][0]
    node.advance(10, {WEB_PATH: 0.5})
    node.collector.tick()
    (newest,) = ask(node, "v2.1/stats/", **(options | {"count": "1"}))[WEB_PATH]["stats"]
    assert newest["cpu_inst"]["usage"]["total"] == pytest.approx(500_000_000)


def test_containers_are_told_by_path_with_what_is_below(node: Node) -> None:
    told = ask(node, f"v1.3/containers{POD_PATH}")
    assert told["name"] == POD_PATH
    assert {"name": WEB_PATH} in told["subcontainers"]
    below = ask(node, f"v1.3/subcontainers{POD_PATH}")
    assert [one["name"] for one in below] == [POD_PATH, WEB_PATH]
    assert ask(node, "v1.3/containers/")["name"] == "/"


@pytest.mark.parametrize("path", ["v9/machine", "v1.3/nothing", "v2.1/nothing", "v2.1/stats/?type=x"])
def test_an_unknown_version_or_request_is_the_callers_fault(node: Node, path: str) -> None:
    path, _, query = path.partition("?")
    with pytest.raises(Refused) as refused:
        ask(node, path, **({"type": "x"} if query else {}))
    assert refused.value.status == 400


def test_the_machine_is_this_one(node: Node, tmp_path: Path) -> None:
    """Case 46."""
    facts = SystemMachine(tmp_path).facts()
    told = answer("v1.3/machine", {}, node.collector.node(), [], facts)
    total = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    assert told["memory_capacity"] == int(total.split()[1]) * 1024
    assert told["num_cores"] == os.cpu_count()
    assert told["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert told.keys() >= {"num_physical_cores", "num_sockets", "machine_id", "system_uuid", "topology", "disk_map"}
