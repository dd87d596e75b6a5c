"""Changed resources of a running pod: granted, deferred or refused; given in place or by a restart (lifecycle 3.6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from services.podworker.adapters.container_usage import memory_in_use
from services.podworker.core.admission import NodeLimits
from services.podworker.core.generate import generate_status
from services.podworker.core.model import PodMemory
from services.podworker.core.plan import Signal, UpdateContainer
from services.podworker.core.resize import (
    keep_granted,
    never_fits,
    record_granted,
    record_pending,
    record_resize_failed,
    with_granted,
)
from shared.kube.pod import Pod
from tests.support.builders import NODE_IP, a_container, a_pod
from tests.support.pod_driver import PodDriver

MIB = 2**20
ROOM = NodeLimits(cpu_milli=2000, memory_bytes=1 << 30, pods=10)


def sized(cpu: str = "100m", memory: str = "32Mi", *, request: str = "", **fields: Any) -> Pod:
    amounts = {"cpu": cpu, "memory": memory}
    requests = {**amounts, "cpu": request} if request else amounts
    return a_pod(a_container(resources={"requests": requests, "limits": amounts}, **fields))


def body(pod: Pod) -> bytes:
    return msgspec.json.encode(pod)


def running(pod: Pod) -> PodDriver:
    driver = PodDriver(pod)
    driver.settle()
    return driver


def edited(driver: PodDriver, pod: Pod) -> None:
    """As admission grants it."""
    memory = keep_granted(driver.memory, body(driver.pod), body(pod))
    driver.pod = pod
    driver.memory, _ = record_granted(pod, memory)


def test_what_a_pod_had_stays_granted_until_it_is_judged() -> None:
    driver = running(sized())
    memory = keep_granted(driver.memory, body(sized()), body(sized("200m")))
    assert with_granted(sized("200m"), memory) == sized()
    again = keep_granted(memory, body(sized("200m")), body(sized("300m")))
    assert with_granted(sized("300m"), again) == sized()


def test_an_edit_that_is_taken_back_leaves_nothing_pending() -> None:
    driver = running(sized())
    memory = keep_granted(driver.memory, body(sized()), body(sized("200m")))
    memory, _ = record_pending(memory, "Deferred", "full")
    memory = keep_granted(memory, body(sized("200m")), body(sized()))
    assert (memory.allocated, memory.resize_pending) == ({}, None)


def test_other_edits_and_pods_that_were_not_admitted_resize_nothing() -> None:
    driver = running(sized())
    assert keep_granted(driver.memory, body(sized()), body(sized(image="busybox:2"))).allocated == {}
    new = replace(driver.memory, admitted=False)
    assert keep_granted(new, body(sized()), body(sized("200m"))).allocated == {}


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (sized("3"), "Node didn't have enough capacity: cpu, requested: 3000, capacity: 2000"),
        (sized(memory="2Gi"), "Node didn't have enough capacity: memory"),
        (sized(request="50m"), "Pod QOS Class may not change as a result of resizing"),
        (sized("200m"), ""),
    ],
)
def test_what_can_never_be_had_is_infeasible(wanted: Pod, words: str) -> None:
    memory = keep_granted(running(sized()).memory, body(sized()), body(wanted))
    told = never_fits(wanted, memory, ROOM)
    assert words in told and bool(words) == bool(told)


def test_a_limit_cannot_be_taken_away() -> None:
    before = sized(request="50m")
    after = a_pod(a_container(resources={"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"cpu": "100m"}}))
    memory = keep_granted(running(before).memory, body(before), body(after))
    assert "limits cannot be removed" in never_fits(after, memory, ROOM)


def test_a_running_container_is_updated_in_place() -> None:
    driver = running(sized())
    edited(driver, sized("200m", "64Mi"))
    (action,) = driver.step().actions
    assert isinstance(action, UpdateContainer)
    assert (action.cpu_shares, action.cpu_quota, action.memory) == (204, 20_000, 64 * MIB)
    plan = driver.settle()
    assert driver.memory.resizing is None
    told = [event.reason for one in driver.plans for event in one.events]
    assert told.count("ResizeCompleted") == 1 and plan.actions == ()
    assert driver.memory.restarts == {"c": 0}


def test_a_policy_of_restart_ends_the_container_and_starts_it_at_once() -> None:
    policy: Any = {"resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]}
    driver = running(sized(**policy))
    edited(driver, sized("200m", **policy))
    assert isinstance(driver.step().actions[0], UpdateContainer)
    driver.settle()
    edited(driver, sized("200m", "64Mi", **policy))
    assert isinstance(driver.step().actions[0], Signal)
    driver.settle()
    newest = driver.runtime().newest("c")
    assert newest is not None
    assert (newest.attempt, newest.memory, newest.state) == (1, 64 * MIB, "running")
    assert driver.memory.backoffs == {} or driver.memory.waiting == {}


def test_conditions_say_how_a_resize_goes() -> None:
    driver = running(sized())

    def shown(memory: PodMemory) -> dict[str, tuple[str, str]]:
        status = generate_status(driver.pod, memory, driver.runtime(), node_ip=NODE_IP, now=driver.now)
        return {c.type: (c.reason, c.message) for c in status.conditions if "Resize" in c.type}

    assert shown(driver.memory) == {}
    pending, events = record_pending(driver.memory, "Deferred", "no room")
    assert shown(pending) == {"PodResizePending": ("Deferred", "no room")}
    assert [event.reason for event in events] == ["ResizeDeferred"]
    assert record_pending(pending, "Deferred", "no room yet")[1] == []
    granted, _ = record_granted(driver.pod, pending)
    assert shown(granted) == {"PodResizeInProgress": ("", "")}
    failed, events = record_resize_failed(granted, "c", "in use", driver.now)
    assert shown(failed) == {"PodResizeInProgress": ("Error", "container c: in use")}
    assert [event.reason for event in events] == ["ResizeError"]
    assert record_resize_failed(failed, "c", "in use", driver.now)[1] == []


def test_a_refused_update_is_tried_again_later() -> None:
    driver = running(sized())
    edited(driver, sized("200m"))
    driver.memory, _ = record_resize_failed(driver.memory, "c", "in use", driver.now)
    plan = driver.plan()
    assert plan.actions == () and plan.wake_at == driver.now + 10


def test_a_status_shows_what_a_container_has_and_what_it_is_granted() -> None:
    driver = running(sized())
    edited(driver, sized("200m", "64Mi"))
    status = generate_status(driver.pod, driver.memory, driver.runtime(), node_ip=NODE_IP, now=driver.now)
    (shown,) = status.container_statuses
    assert shown.allocated_resources == {"cpu": "200m", "memory": "64Mi"}
    assert shown.resources is not None
    assert shown.resources.limits == {"cpu": "100m", "memory": "32Mi"}


def test_memory_in_use_is_read_in_both_versions(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    one, two = tmp_path / "memory/p/c", tmp_path / "p/c"
    for directory, file, cache in (
        (one, "memory.usage_in_bytes", "total_inactive_file"),
        (two, "memory.current", "inactive_file"),
    ):
        directory.mkdir(parents=True)
        (directory / file).write_text("1000\n")
        (directory / "memory.stat").write_text(f"cache 1\n{cache} 300\n")
    for text in ("4:memory:/p/c\n0::/p\n", "0::/p/c\n"):
        (tmp_path / "7" / "cgroup").write_text(text)
        assert memory_in_use(7, tmp_path, tmp_path) == 700
    assert memory_in_use(8, tmp_path, tmp_path) is None
