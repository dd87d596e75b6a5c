"""The sampling pass on fakes: what is read when, and what is forgotten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from services.stats.adapters.cgroup import CgroupTree
from services.stats.adapters.filesystem import StatvfsFilesystems
from services.stats.adapters.procfs import Procfs
from services.stats.core.model import (
    ContainerTarget,
    ImageTarget,
    SystemTarget,
    Targets,
)
from services.stats.core.rates import NANOSECONDS
from services.stats.handlers.collect import INTERVAL_SECONDS, Collector
from tests.support.stats_node import ETH0, FIXTURES, POD, POD_PATH, WEB, FakeClock, FakeFilesystems, Node


@pytest.fixture
def node() -> Node:
    node = Node()
    node.start_pod()
    return node


WEB_PATH = f"{POD_PATH}/{WEB.id}"


def test_a_new_pod_is_in_the_summary_at_once(node: Node) -> None:
    """Its first reading doesn't wait for the next pass."""
    node.collector.tick()
    node.collector.set_targets(Targets(pods=(POD,)))
    pod = node.told()["pods"][0]
    assert pod["podRef"]["uid"] == "u-1"
    assert "memory" in pod and "network" in pod
    assert pod["containers"][0]["cpu"] == {"time": "1970-01-01T00:25:00Z", "usageCoreNanoSeconds": 0}


def test_a_new_containers_rate_is_known_after_a_second(node: Node) -> None:
    node.collector.tick()
    node.advance(4)
    node.collector.set_targets(Targets(pods=(POD,)))
    assert node.collector.tick() == pytest.approx(1.0, abs=0.001)
    node.advance(1.01, busy={WEB_PATH: 0.25})
    node.collector.tick()
    assert node.container()["cpu"]["usageNanoCores"] == pytest.approx(250_000_000, rel=0.001)


def test_the_second_reading_is_of_the_new_cgroups_only(node: Node) -> None:
    node.collector.tick()
    node.advance(1.01)
    node.collector.tick()
    node.collector.set_targets(Targets(pods=(POD,)))
    node.advance(1.01)
    node.cgroups.reads.clear()
    node.collector.tick()
    assert node.cgroups.reads == [POD_PATH, WEB_PATH]


def test_passes_keep_to_their_schedule(node: Node) -> None:
    """A pass that comes a little late doesn't move those after it."""
    node.collector.tick()
    node.advance(2)
    node.collector.tick()
    node.advance(INTERVAL_SECONDS - 2 + 0.5)
    assert node.collector.tick() == pytest.approx(INTERVAL_SECONDS - 0.5)


def test_passes_that_were_missed_are_not_made_up(node: Node) -> None:
    """After a long pause one pass is made and the next is at least half an interval away."""
    node.collector.tick()
    node.advance(1.5)
    node.collector.tick()
    node.advance(100)
    node.cgroups.reads.clear()
    assert node.collector.tick() >= INTERVAL_SECONDS / 2
    assert node.cgroups.reads == [""]


def test_the_rate_is_that_between_the_newest_passes(node: Node) -> None:
    node.collector.set_targets(Targets(pods=(POD,)))
    node.collector.sample()
    for share in (0.9, 0.1):
        node.advance(10, busy={WEB_PATH: share})
        node.collector.sample()
    assert node.container()["cpu"]["usageNanoCores"] == pytest.approx(100_000_000, rel=0.001)
    assert node.container()["cpu"]["usageCoreNanoSeconds"] == 10 * NANOSECONDS


def test_a_container_that_ended_is_gone_from_the_next_pass_with_its_files(node: Node) -> None:
    """Never its last numbers, or zeros, with a fresh time."""
    node.collector.set_targets(Targets(pods=(POD,)))
    del node.cgroups.cpu_ns[WEB_PATH]
    node.advance(10)
    node.collector.sample()
    assert node.told()["pods"][0]["containers"] == []
    assert node.cgroups.open_count == 1


def test_a_cgroup_that_appears_late_is_found_by_a_later_pass(node: Node) -> None:
    del node.cgroups.cpu_ns[WEB_PATH]
    node.collector.set_targets(Targets(pods=(POD,)))
    assert node.told()["pods"][0]["containers"] == []
    node.cgroups.cpu_ns[WEB_PATH] = 5
    node.advance(10)
    node.collector.sample()
    assert node.container()["name"] == "web"


def test_a_restarted_container_begins_a_new_history(node: Node) -> None:
    """Same name, new id: counters begin near zero with a newer start time, and no rate spans both."""
    node.collector.set_targets(Targets(pods=(POD,)))
    node.advance(10, busy={WEB_PATH: 1.0})
    node.collector.sample()
    del node.cgroups.cpu_ns[WEB_PATH]
    again = replace(POD, containers=(ContainerTarget(id="d" * 64, name="web", pid=43, started_at=1_505.0),))
    node.start_pod(again)
    node.collector.set_targets(Targets(pods=(again,)))
    assert node.container()["startTime"] == "1970-01-01T00:25:05Z"
    assert node.container()["cpu"] == {"time": "1970-01-01T00:25:10Z", "usageCoreNanoSeconds": 0}
    assert node.cgroups.open_count == 2


def test_the_same_container_started_again_begins_a_new_history(node: Node) -> None:
    """Somebody's `docker restart` keeps the id: another pid and start time tell it."""
    node.collector.set_targets(Targets(pods=(POD,)))
    node.advance(10, busy={WEB_PATH: 1.0})
    node.collector.sample()
    node.cgroups.cpu_ns[WEB_PATH] = 3
    again = replace(POD, containers=(replace(WEB, pid=44, started_at=1_509.0),))
    node.start_pod(again)
    node.cgroups.cpu_ns[WEB_PATH] = 3
    node.collector.set_targets(Targets(pods=(again,)))
    assert node.container()["cpu"]["usageCoreNanoSeconds"] == 3
    assert "usageNanoCores" not in node.container()["cpu"]


def test_a_pod_that_is_no_target_any_more_is_forgotten(node: Node) -> None:
    node.collector.set_targets(Targets(pods=(POD,), system=(SystemTarget(name="pods", cgroup=POD_PATH),)))
    assert node.cgroups.open_count == 3
    node.collector.close()
    assert node.told()["pods"] == []
    assert node.cgroups.open_count == 0


def test_a_target_that_did_not_change_keeps_its_history_and_is_not_read_again(node: Node) -> None:
    """A status change of one pod must not cost a pass over all."""
    node.collector.set_targets(Targets(pods=(POD,)))
    node.cgroups.reads.clear()
    other = replace(POD, uid="u-2", cgroup="/kubepods/podu-2", sandbox_pid=50, containers=())
    node.start_pod(other)
    node.collector.set_targets(Targets(pods=(other, POD)))
    assert node.cgroups.reads == ["/kubepods/podu-2"]
    assert [pod["podRef"]["uid"] for pod in node.told()["pods"]] == ["u-2", "u-1"]


def test_a_pid_that_another_process_took_gives_no_network(node: Node) -> None:
    """The node's traffic must not be told as the pod's."""
    node.collector.set_targets(Targets(pods=(POD,)))
    assert node.told()["pods"][0]["network"]["rxBytes"] == 5
    node.processes.cgroups[POD.sandbox_pid] = "0::/system.slice/cron.service\n"
    node.advance(10)
    node.collector.sample()
    assert "network" not in node.told()["pods"][0]


def test_a_pod_on_the_nodes_network_has_none_of_its_own(node: Node) -> None:
    node.collector.set_targets(Targets(pods=(replace(POD, host_network=True),)))
    assert "network" not in node.told()["pods"][0]


def test_a_new_sandbox_is_read_at_once(node: Node) -> None:
    node.collector.set_targets(Targets(pods=(replace(POD, sandbox_id="", sandbox_pid=0),)))
    assert "network" not in node.told()["pods"][0]
    node.collector.set_targets(Targets(pods=(POD,)))
    assert node.told()["pods"][0]["network"]["rxBytes"] == 5


def test_a_finished_pod_whose_cgroup_was_left_behind_is_not_told(node: Node) -> None:
    node.collector.set_targets(Targets(pods=(POD,)))
    finished = replace(POD, sandbox_id="", sandbox_pid=0, containers=())
    node.collector.set_targets(Targets(pods=(finished,)))
    assert node.told()["pods"] == []


def test_a_summary_is_encoded_once_until_something_new_was_read(node: Node) -> None:
    """Any number of scrapes cause no reading and no second encoding."""
    node.collector.set_targets(Targets(pods=(POD,)))
    node.collector.tick()
    node.cgroups.reads.clear()
    first = node.collector.summary()
    assert node.collector.summary() is first
    assert node.cgroups.reads == []
    node.advance(10)
    node.collector.tick()
    assert node.collector.summary() != first


def test_the_four_forms_of_a_summary_are_told_apart(node: Node) -> None:
    node.collector.set_targets(Targets(pods=(POD,)))
    node.collector.tick()
    full, short = node.told(), node.told(only_cpu_and_memory=True)
    assert "fs" in full["node"] and "fs" not in short["node"]
    assert node.told(indent=True) == full
    assert node.collector.summary(indent=True).startswith(b'{\n "node": {\n  "nodeName"')
    assert node.told(only_cpu_and_memory=True, indent=True) == short


def test_the_node_is_told_in_full(node: Node) -> None:
    node.processes.networks[1] = (ETH0,)
    node.cgroups.cpu_ns["/kubepods"] = 0
    node.collector.set_targets(
        Targets(
            system=(
                SystemTarget(name="pods", cgroup="/kubepods"),
                SystemTarget(name="runtime", cgroup="/none"),
            ),
            images=ImageTarget(root_dir="/docker", used_bytes=41),
        )
    )
    node.collector.tick()
    told = node.told()["node"]
    assert list(told) == [
        "nodeName", "systemContainers", "startTime", "cpu", "memory", "network", "fs", "runtime", "rlimit",
    ]  # fmt: skip
    assert [one["name"] for one in told["systemContainers"]] == ["pods"]
    assert told["systemContainers"][0]["startTime"] == "1970-01-01T00:11:40Z"
    assert told["systemContainers"][0]["memory"]["availableBytes"] == 991
    assert told["runtime"]["imageFs"]["usedBytes"] == 41


def test_an_image_filesystem_that_can_not_be_seen_is_absent(node: Node) -> None:
    """stats in a container may not have it mounted."""
    node.collector.set_targets(Targets(images=ImageTarget(root_dir="/hidden", used_bytes=41)))
    node.collector.tick()
    assert "runtime" not in node.told()["node"]


def test_images_are_told_as_soon_as_they_are_known(node: Node) -> None:
    node.collector.tick()
    node.collector.set_targets(Targets(images=ImageTarget(root_dir="/docker")))
    assert "imageFs" in node.told()["node"]["runtime"]


def test_the_nodes_rate_is_known_after_a_second(node: Node) -> None:
    assert node.collector.tick() == pytest.approx(1.0, abs=0.001)
    node.advance(1.01, busy={"": 1.5})
    node.collector.tick()
    assert node.told()["node"]["cpu"]["usageNanoCores"] == pytest.approx(1_500_000_000, rel=0.001)


def test_without_a_root_counter_the_nodes_cpu_comes_from_proc(node: Node) -> None:
    del node.cgroups.cpu_ns[""]
    node.collector.tick()
    assert node.told()["node"]["cpu"]["usageCoreNanoSeconds"] == 77


@pytest.mark.parametrize(
    ("version", "pod_cgroup", "pods_cgroup"),
    [
        (1, "/kubepods/burstable/pod5f3c2a7e-0b1d-4e8a-9c55-7d2f60a1b3c4", "/kubepods"),
        (
            2,
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5f3c2a7e_0b1d_4e8a_9c55_7d2f60a1b3c4.slice",
            "/kubepods.slice",
        ),
    ],
)
def test_a_recorded_node_is_told_alike_from_v1_and_v2(
    version: int, pod_cgroup: str, pods_cgroup: str, tmp_path: Path
) -> None:
    """The real adapters on both trees: the same container, network and tasks."""
    root = FIXTURES / f"v{version}"
    tree = CgroupTree(root / "cgroup")
    collector = Collector(
        node_name="peer",
        root_dir=str(tmp_path),
        cgroups=tree,
        processes=Procfs(root / "proc"),
        filesystems=StatvfsFilesystems(),
        clock=FakeClock(),
    )
    web = replace(WEB, id="169b71f28218d4fee63e2776e7d176e7a1893f43019722175d307c126e645cf4", pid=9925)
    sandbox = "85bff4d7a6c01e6ec67df4adc386d25047fa4782b1af5ab21575fea65bb61ea7"
    pod = replace(POD, cgroup=pod_cgroup, sandbox_id=sandbox, sandbox_pid=9857, containers=(web,))
    collector.set_targets(Targets(pods=(pod,), system=(SystemTarget(name="pods", cgroup=pods_cgroup),)))
    collector.tick()
    told = json.loads(collector.summary())
    collector.close()
    tree.close()
    container = told["pods"][0]["containers"][0]
    assert container["cpu"]["usageCoreNanoSeconds"] // 1_000_000 == 427
    assert container["memory"] == {
        "time": "1970-01-01T00:25:00Z",
        "availableBytes": 67_108_864 - 11_124_736,
        "usageBytes": 11_341_824,
        "workingSetBytes": 11_124_736,
        "rssBytes": 53_248,
        "pageFaults": 1_759,
        "majorPageFaults": 1,
    }
    assert told["pods"][0]["network"]["rxBytes"] == 736
    assert told["node"]["rlimit"]["maxpid"] == 32_768
    assert told["node"]["systemContainers"][0]["memory"]["availableBytes"] > 0


def test_passes_come_a_little_later_by_chance(node: Node) -> None:
    """At most a tenth of the interval, so that two minutes still hold eleven samples."""
    late = Collector(
        node_name="peer",
        root_dir="/data",
        cgroups=node.cgroups,
        processes=node.processes,
        filesystems=FakeFilesystems(),
        clock=node.clock,
        jitter=lambda: 0.5,
    )
    late.tick()
    node.advance(1.1)
    assert late.tick() == pytest.approx(10 * 1.05 - 1.1)
