"""What the kernel's log says of kills for want of memory, and what is counted and told of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from services.stats.core.model import Targets
from services.stats.core.targets import pod_target
from services.stats.handlers.kills import MOST, Kills
from shared.contracts.status import PodReport, RunningContainer
from shared.kube.oom import OomKill, parse_oom_kill
from shared.kube.status import ContainerState, ContainerStatus, PodStatus, StateTerminated
from shared.runtime.kernel_log import KernelLog
from tests.support.exposition import parse_exposition
from tests.support.stats_node import POD, WEB, Node

LIVE, ENDED = "c" * 64, "e" * 64
AT_ITS_LIMIT = (
    "6,171935,33939636788,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset={id},mems_allowed=0,"
    "oom_memcg=/kubepods/burstable/pod1,task_memcg=/kubepods/burstable/pod1/{id},task=tail,pid=5307,uid=0\n"
)
NODE_WITHOUT_MEMORY = (
    "6,9,9,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
    "task_memcg=/user.slice,task=a,pid=1,b,pid=77,uid=1000\n SUBSYSTEM=x\n"
)


class Records:
    def __init__(self, *records: str) -> None:
        self.waiting = list(records)

    def oom_records(self) -> list[bytes]:
        taken, self.waiting = self.waiting, []
        return [one.encode() for one in taken]


def a_report(*ended: StateTerminated) -> PodReport:
    states = [ContainerState(terminated=one) for one in ended]
    status = ContainerStatus(
        name="web",
        state=ContainerState(),
        last_state=states[0] if states else ContainerState(),
        ready=False,
        restart_count=1,
        image="",
        image_id="",
        started=False,
    )
    return PodReport(
        v=1, node="n", ts=0.0, uid="u-1", namespace="default", name="web", source="file", gen=1, rev=1, owner=0,
        state="sync", status=PodStatus(phase="Running", qos_class="Burstable", container_statuses=[status]),
        containers=[RunningContainer(name="web", id=LIVE, pid=41, started_at=8.0)],
    )  # fmt: skip


def ended(reason: str, exit_code: int) -> StateTerminated:
    return StateTerminated(
        exit_code=exit_code, reason=reason, started_at="", finished_at="", container_id=f"docker://{ENDED}"
    )


def test_a_record_names_the_victim_and_its_container() -> None:
    kill = parse_oom_kill(AT_ITS_LIMIT.format(id=LIVE).encode())
    assert kill == OomKill(cgroup=f"/kubepods/burstable/pod1/{LIVE}", process="tail", pid=5307, is_system=False)
    assert kill.containers == [LIVE]


def test_a_process_in_a_cgroup_below_its_container_or_under_systemd_counts_for_the_container() -> None:
    for path in (f"/kubepods.slice/pod1.slice/docker-{LIVE}.scope", f"/docker/{LIVE}/init.scope"):
        assert OomKill(cgroup=path, process="a", pid=1, is_system=False).containers == [LIVE]


def test_a_process_may_have_any_name() -> None:
    kill = parse_oom_kill(NODE_WITHOUT_MEMORY.encode())
    assert kill == OomKill(cgroup="/user.slice", process="a,pid=1,b", pid=77, is_system=True)


@pytest.mark.parametrize("record", ["6,1,1,-;oom-kill:", "6,1,1,-;eth0: link up", "6,1,1,-;oom-kill:task_memcg=,pid="])
def test_any_other_record_is_none(record: str) -> None:
    assert parse_oom_kill(record.encode()) is None


def test_a_node_out_of_memory_is_an_event_and_a_container_at_its_limit_is_not() -> None:
    told: list[str] = []
    records = Records()
    kills = Kills(records, told.append)
    records.waiting = [AT_ITS_LIMIT.format(id=LIVE), NODE_WITHOUT_MEMORY]
    kills.look()
    assert told == ["System OOM encountered, victim process: a,pid=1,b, pid: 77"]
    assert kills.counts == {LIVE: 1}


def test_what_was_logged_before_the_start_is_counted_and_not_told_again() -> None:
    told: list[str] = []
    kills = Kills(Records(NODE_WITHOUT_MEMORY, AT_ITS_LIMIT.format(id=LIVE), AT_ITS_LIMIT.format(id=LIVE)), told.append)
    kills.look()
    assert (told, kills.counts) == ([], {LIVE: 2})


def test_the_containers_killed_longest_ago_are_forgotten_first() -> None:
    records = [AT_ITS_LIMIT.format(id=f"{number:064x}") for number in (*range(MOST), 0, MOST)]
    counts = Kills(Records(*records), print).counts
    assert len(counts) == MOST
    assert (f"{0:064x}" in counts, f"{1:064x}" in counts) == (True, False)


def test_a_killed_child_counts_although_its_container_lives_on() -> None:
    assert pod_target(a_report(), {LIVE: 2}).oom_kills == (("web", LIVE, 2),)


def test_an_end_that_the_engine_told_as_an_error_counts_by_the_kernels_log() -> None:
    assert pod_target(a_report(ended("Error", 137)), {ENDED: 1}).oom_kills == (("web", ENDED, 1),)


def test_without_the_kernels_log_an_end_counts_by_its_reason() -> None:
    assert pod_target(a_report(ended("OOMKilled", 137))).oom_kills == (("web", ENDED, 1),)
    assert pod_target(a_report(ended("Error", 1))).oom_kills == ()


def test_a_kill_is_counted_once_by_whoever_tells_it_and_over_all_instances() -> None:
    """The cgroup's counter says one too; the ended instance's number stays when the status forgets it."""
    node = Node()
    node.cgroups.files = {"memory.events": b"oom_kill 1\n"}
    node.start_pod()
    node.collector.set_targets(Targets(pods=(replace(POD, oom_kills=(("web", WEB.id, 1), ("web", ENDED, 2))),)))
    node.advance(10, {f"{POD.cgroup}/{WEB.id}": 0.5})
    node.collector.cadvisor_page()
    node.collector.set_targets(Targets(pods=(replace(POD, oom_kills=(("web", WEB.id, 1),)),)))
    page = parse_exposition(node.collector.cadvisor_page().decode())
    assert [one.value for one in page.of("container_oom_events_total", container="web")] == [3.0]


def test_the_log_is_read_on_from_where_it_was_left_and_never_waited_for(tmp_path: Path) -> None:
    """A pipe that is written to as the kernel writes: one record a read."""
    pipe = tmp_path / "kmsg"
    os.mkfifo(pipe)
    log = KernelLog(pipe)
    writer = os.open(pipe, os.O_WRONLY)
    assert log.oom_records() == []
    os.write(writer, AT_ITS_LIMIT.format(id=LIVE).encode())
    assert len(log.oom_records()) == 1
    assert log.oom_records() == []
    os.close(writer)
    log.close()
    assert log.oom_records() == []


def test_without_a_kernel_log_nothing_is_known(tmp_path: Path) -> None:
    assert KernelLog(tmp_path / "none").oom_records() == []
