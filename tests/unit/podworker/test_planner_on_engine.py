"""Whole courses of a pod's life on the model engine."""

from __future__ import annotations

import pytest

from services.podworker.core.plan import RemoveContainer, StartContainer, StopSandbox, SyncConfig
from services.podworker.core.state import begin_termination, sync_state
from shared.kube.pod import Pod
from shared.kube.times import parse_rfc3339
from tests.support.builders import UID, a_container, a_pod
from tests.support.model_runtime import an_image
from tests.support.pod_driver import PodDriver


def started(pod: Pod) -> PodDriver:
    driver = PodDriver(pod)
    driver.settle()
    return driver


def phase(driver: PodDriver) -> str:
    assert driver.memory.status is not None
    return driver.memory.status.phase


def test_a_pod_starts_in_one_round() -> None:
    driver = PodDriver(a_pod(a_container("a"), a_container("b")))
    driver.step()
    assert not driver.plan().actions
    assert phase(driver) == "Running"
    assert len(driver.engine.live_sandboxes(UID)) == 1


def test_a_crashing_container_restarts_after_0_10_20_40_seconds() -> None:
    """R01"""
    driver = started(a_pod(a_container(command=["sh", "-c", "exit 1"])))
    gaps, last = [], driver.now
    for _ in range(9):
        plan = driver.settle()
        assert plan.wake_at is not None
        gaps.append(plan.wake_at - last)
        last = driver.now = plan.wake_at
    # The first restart follows at once, inside `settle`.
    assert gaps == [10, 20, 40, 80, 160, 300, 300, 300, 300]
    assert driver.memory.restarts == {"c": 9}
    assert phase(driver) == "Running"


def test_a_crash_loop_is_told_with_its_delay() -> None:
    driver = started(a_pod(a_container(command=["sh", "-c", "exit 1"])))
    driver.settle()
    assert driver.memory.status is not None
    (status,) = driver.memory.status.container_statuses
    assert status.state.waiting is not None
    assert status.state.waiting.reason == "CrashLoopBackOff"
    message, _, until = status.state.waiting.message.partition("; next try at ")
    assert message == f"back-off 10s restarting failed container=c pod=p-node1_default({UID})"
    assert driver.now < parse_rfc3339(until) <= driver.now + 11
    assert status.last_state.terminated is not None
    assert status.last_state.terminated.reason == "Error"
    assert status.restart_count == 1


def test_a_maximum_below_ten_seconds_is_the_delay_of_every_restart() -> None:
    """R09"""
    driver = PodDriver(a_pod(a_container(command=["sh", "-c", "exit 1"])))
    driver.config = SyncConfig(crash_max=2)
    driver.settle()
    assert driver.memory.restarts == {"c": 1}, "the first at once"
    for attempt in (2, 3, 4):
        plan = driver.settle()
        assert plan.wake_at == driver.now + 2
        driver.now = plan.wake_at
        driver.settle()
        assert driver.memory.restarts == {"c": attempt}


def test_a_success_under_always_backs_off_like_a_crash() -> None:
    """R02"""
    driver = started(a_pod(a_container(command=["sh", "-c", "exit 0"])))
    assert driver.settle().wake_at == driver.now + 10
    assert phase(driver) == "Running"
    assert driver.memory.status is not None
    last = driver.memory.status.container_statuses[0].last_state.terminated
    assert last is not None
    assert last.reason == "Completed"


def test_a_container_that_ran_ten_minutes_starts_its_back_off_anew() -> None:
    """R10"""
    driver = started(a_pod(a_container(command=["sleep", "700"]), annotations={"model/exit-code": "1"}))
    for _ in range(3):
        driver.now += 700
        plan = driver.settle()
        assert plan.wake_at is None
    assert driver.memory.restarts == {"c": 3}


@pytest.mark.parametrize(
    ("policy", "code", "expected"),
    [
        ("Never", 0, "Succeeded"),
        ("Never", 3, "Failed"),
        ("OnFailure", 0, "Succeeded"),
        ("OnFailure", 3, "Running"),
        ("Always", 0, "Running"),
    ],
)
def test_the_phase_after_an_exit_follows_the_restart_policy(policy: str, code: int, expected: str) -> None:
    """R03"""
    driver = started(a_pod(a_container(command=["sh", "-c", f"exit {code}"]), restartPolicy=policy))
    assert phase(driver) == expected


def test_a_finished_pod_keeps_its_dead_container_and_stops_its_sandbox() -> None:
    driver = started(a_pod(a_container(command=["sh", "-c", "exit 0"]), restartPolicy="Never"))
    assert len(driver.engine.containers) == 1
    assert not driver.engine.live_sandboxes(UID)
    assert sync_state(driver.memory, driver.runtime()) == "finished"
    assert any(isinstance(a, StopSandbox) for plan in driver.plans for a in plan.actions)


def test_a_lost_sandbox_ends_everything_and_comes_back_with_the_next_attempt() -> None:
    driver = started(a_pod(a_container("a"), a_container("b")))
    (sandbox,) = driver.engine.live_sandboxes(UID)
    driver.engine.kill_sandbox(sandbox.id)
    driver.settle()
    (renewed,) = driver.engine.live_sandboxes(UID)
    assert renewed.config.attempt == 1
    assert {c.name for c in driver.runtime().running} == {"a", "b"}
    assert all(c.attempt == 1 for c in driver.runtime().running)
    assert len(driver.runtime().sandboxes) == 1
    assert any(e.reason == "SandboxChanged" for plan in driver.plans for e in plan.events)


def test_a_never_pod_with_a_lost_sandbox_fails_and_is_not_run_again() -> None:
    driver = started(a_pod(restartPolicy="Never"))
    (sandbox,) = driver.engine.live_sandboxes(UID)
    driver.engine.kill_sandbox(sandbox.id)
    driver.settle()
    assert phase(driver) == "Failed"
    assert not driver.engine.live_sandboxes(UID)
    assert driver.memory.restarts == {"c": 0}


def test_after_a_reboot_all_containers_come_back() -> None:
    driver = started(a_pod(a_container("a"), a_container("b")))
    driver.engine.reboot()
    driver.settle()
    assert {c.name for c in driver.runtime().running} == {"a", "b"}


def test_a_never_pod_with_two_containers_ends_when_both_have() -> None:
    """R04"""
    containers = [
        a_container("a", command=["sh", "-c", "exit 0"]),
        a_container("b", command=["sh", "-c", "sleep 5; exit 3"]),
    ]
    driver = started(a_pod(*containers, restartPolicy="Never"))
    assert phase(driver) == "Running"
    driver.now += 5
    driver.settle()
    assert phase(driver) == "Failed"


def test_a_container_removed_by_hand_is_made_again_and_counted() -> None:
    """W05"""
    driver = started(a_pod())
    driver.engine.containers.clear()
    phases = []
    for _ in range(3):
        driver.step()
        phases.append(phase(driver))
    assert phases == ["Running"] * 3
    assert [c.attempt for c in driver.runtime().running] == [1]


def test_an_edit_with_a_fixed_uid_replaces_the_container_whatever_the_policy() -> None:
    driver = started(a_pod(restartPolicy="Never"))
    (sandbox,) = driver.engine.live_sandboxes(UID)
    driver.pod = a_pod(a_container(env=[{"name": "A", "value": "1"}]), restartPolicy="Never")
    driver.settle()
    assert [c.attempt for c in driver.runtime().running] == [1]
    assert driver.engine.live_sandboxes(UID) == [sandbox]
    assert phase(driver) == "Running"


def test_a_container_that_an_edit_took_out_ends() -> None:
    driver = started(a_pod(a_container("a"), a_container("b")))
    driver.pod = a_pod(a_container("a"))
    driver.settle()
    assert [c.name for c in driver.runtime().running] == ["a"]


def test_all_containers_are_told_to_end_at_once_and_killed_at_the_deadline() -> None:
    driver = started(a_pod(a_container("a"), a_container("b"), annotations={"model/ignore-term": "true"}))
    driver.memory = begin_termination(driver.memory, driver.now, 5, "removed")
    plan = driver.settle()
    assert [c.signals for c in driver.engine.containers.values()] == [["SIGTERM"], ["SIGTERM"]]
    assert plan.wake_at == driver.now + 5
    driver.now += 5
    driver.settle()
    assert not driver.engine.containers
    assert not driver.engine.sandboxes
    assert sync_state(driver.memory, driver.runtime()) == "finished"
    assert driver.memory.status is not None
    ends = [s.state.terminated for s in driver.memory.status.container_statuses]
    assert [end.exit_code for end in ends if end is not None] == [137, 137]


def test_a_shorter_grace_moves_the_deadline_of_a_stop_under_way() -> None:
    driver = started(a_pod(annotations={"model/ignore-term": "true"}))
    driver.memory = begin_termination(driver.memory, driver.now, 60, "deleted")
    driver.settle()
    driver.now += 1
    driver.memory = begin_termination(driver.memory, driver.now, 4, "deleted")
    assert driver.settle().wake_at == driver.now + 4
    driver.memory = begin_termination(driver.memory, driver.now, 30, "deleted")
    assert driver.settle().wake_at == driver.now + 4


def test_a_grace_of_0_still_leaves_two_seconds() -> None:
    driver = started(a_pod(annotations={"model/ignore-term": "true"}))
    driver.memory = begin_termination(driver.memory, driver.now, 0, "removed")
    assert driver.settle().wake_at == driver.now + 2


def test_a_signal_that_a_dying_worker_did_not_send_is_sent_by_the_next_one() -> None:
    driver = started(a_pod(annotations={"model/ignore-term": "true"}))
    driver.memory = begin_termination(driver.memory, driver.now, 5, "removed")
    driver.step(only=0)
    driver.now += 30
    plan = driver.settle()
    (container,) = driver.engine.containers.values()
    assert container.signals == ["SIGTERM"]
    assert plan.wake_at == driver.now + 2


def test_a_start_that_a_dying_worker_did_not_finish_is_adopted() -> None:
    driver = PodDriver(a_pod())
    driver.step(only=2)
    plan = driver.plan()
    (start,) = [a for a in plan.actions if isinstance(a, StartContainer)]
    assert start.attempt == 0
    driver.execute(plan, record=False)
    driver.settle()
    assert [c.attempt for c in driver.runtime().running] == [0]


def test_one_dead_instance_per_container_is_kept() -> None:
    driver = started(a_pod(a_container(command=["sh", "-c", "exit 1"])))
    for _ in range(4):
        plan = driver.settle()
        assert plan.wake_at is not None
        driver.now = plan.wake_at
    driver.settle()
    assert len(driver.engine.containers) == 1
    assert any(isinstance(a, RemoveContainer) for plan in driver.plans for a in plan.actions)


def test_a_missing_image_backs_off_and_keeps_the_last_error() -> None:
    """M07"""
    driver = started(a_pod(a_container(image="nope:1")))
    gaps, last = [], driver.now
    for _ in range(4):
        plan = driver.settle()
        assert plan.wake_at is not None
        gaps.append(plan.wake_at - last)
        last = driver.now = plan.wake_at
    assert gaps == [10, 20, 40, 80]
    assert driver.memory.status is not None
    waiting = driver.memory.status.container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.reason == "ImagePullBackOff"
    assert waiting.message.partition("; next try at ")[0] == (
        'Back-off pulling image "nope:1": ErrImagePull: manifest for nope:1 not found: manifest unknown'
    )
    assert phase(driver) == "Pending"
    driver.engine.registry["nope:1"] = an_image("nope:1")
    driver.settle()
    assert phase(driver) == "Running"


def test_a_changed_image_is_tried_at_once() -> None:
    driver = started(a_pod(a_container(image="nope:1")))
    driver.pod = a_pod(a_container(image="busybox:1.36"))
    driver.settle()
    assert phase(driver) == "Running"


def test_two_containers_do_not_wait_for_each_others_image() -> None:
    driver = started(a_pod(a_container("a", image="nope:1"), a_container("b")))
    assert [c.name for c in driver.runtime().running] == ["b"]
    assert phase(driver) == "Pending"


def test_a_command_that_cannot_run_fails_a_never_pod_and_loops_else() -> None:
    script = {"model/start-error": "no such file or directory"}
    driver = started(a_pod(annotations=script, restartPolicy="Never"))
    assert phase(driver) == "Failed"
    assert driver.memory.status is not None
    end = driver.memory.status.container_statuses[0].state.terminated
    assert end is not None
    assert (end.reason, end.exit_code) == ("ContainerCannotRun", 127)

    looping = started(a_pod(annotations=script))
    assert looping.memory.status is not None
    waiting = looping.memory.status.container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.reason == "CrashLoopBackOff"


def test_a_refused_create_is_tried_again_after_ten_seconds() -> None:
    driver = started(a_pod(annotations={"model/create-error": "bad mount"}))
    plan = driver.settle()
    assert plan.wake_at == driver.now + 10
    assert driver.memory.status is not None
    waiting = driver.memory.status.container_statuses[0].state.waiting
    assert waiting is not None
    assert (waiting.reason, waiting.message) == ("CreateContainerError", "bad mount")


def test_a_sandbox_that_cannot_be_made_leaves_containers_creating() -> None:
    driver = started(a_pod(annotations={"model/sandbox-error": "port is already allocated"}))
    plan = driver.settle()
    assert plan.wake_at == driver.now + 10
    assert driver.memory.status is not None
    waiting = driver.memory.status.container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.reason == "ContainerCreating"


def test_nothing_starts_before_admission() -> None:
    driver = PodDriver(a_pod())
    driver.memory = type(driver.memory)(uid=UID, namespace="default", name="p-node1", source="file")
    assert not driver.settle().actions
    assert sync_state(driver.memory, driver.runtime()) == "waiting"


@pytest.mark.parametrize(
    ("policy", "code", "runs_again"),
    [
        ("Never", 3, False),
        ("OnFailure", 0, False),
        ("OnFailure", 3, True),
        ("Always", 0, True),
    ],
)
@pytest.mark.parametrize("sandbox_too", [False, True])
def test_removing_the_remains_of_what_has_ended_for_good_does_not_run_it_again(
    policy: str, code: int, runs_again: bool, sandbox_too: bool
) -> None:
    """`docker container prune` beside a pod whose other container still runs, and beside one that is over."""
    ended = a_container("ended", command=["sh", "-c", f"exit {code}"])
    driver = started(a_pod(ended, a_container("other"), restartPolicy=policy))
    driver.settle()
    before = {c.id for c in driver.engine.containers.values()}
    for id_ in [c.id for c in driver.engine.containers.values() if not c.is_running or sandbox_too]:
        del driver.engine.containers[id_]
    if sandbox_too:
        driver.engine.sandboxes.clear()
    driver.now += 1000
    driver.settle()
    again = {c.config.name.split("_")[1] for c in driver.engine.containers.values() if c.id not in before}
    assert ("ended" in again) is runs_again
