"""Init containers and sidecars on the model engine: order, restarts, what opens the way for the next one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from services.podworker.core.init_containers import initialization
from services.podworker.core.model import PostStart, Verdicts
from services.podworker.core.plan import CreateSandbox, RemoveContainer, StartContainer
from shared.kube.pod import Pod
from tests.support.builders import (
    UID,
    a_container,
    a_memory,
    a_pod,
    a_runtime,
    a_sandbox,
    exited,
    running,
)
from tests.support.pod_driver import PodDriver

SANDBOX = a_sandbox()
PROBE: dict[str, Any] = {"exec": {"command": ["true"]}}


def sh(name: str, line: str, **fields: Any) -> dict[str, Any]:
    return a_container(name, command=["sh", "-c", line], **fields)


def sidecar(name: str, **fields: Any) -> dict[str, Any]:
    return a_container(name, restartPolicy="Always", **fields)


def with_init(*init: dict[str, Any], main: dict[str, Any] | None = None, **spec: Any) -> Pod:
    return a_pod(main or a_container("main"), initContainers=list(init), **spec)


def started(pod: Pod) -> PodDriver:
    driver = PodDriver(pod)
    driver.settle()
    return driver


def pass_time(driver: PodDriver, seconds: float) -> None:
    driver.now += seconds
    driver.engine.tick()
    driver.settle()


def attempts(driver: PodDriver) -> dict[str, int]:
    """Of all containers that were started, the highest attempt."""
    return driver.memory.restarts


def runs(driver: PodDriver) -> set[str]:
    return {c.name for c in driver.runtime().running}


def phase(driver: PodDriver) -> str:
    assert driver.memory.status is not None
    return driver.memory.status.phase


def the_id(driver: PodDriver, name: str) -> str:
    newest = driver.runtime().newest(name)
    assert newest is not None
    return newest.id


def test_init_containers_run_one_after_the_other_and_then_the_others() -> None:
    """I01"""
    driver = started(with_init(a_container("i1", command=["sleep", "5"]), a_container("i2", command=["sleep", "7"])))
    assert (runs(driver), phase(driver)) == ({"i1"}, "Pending")
    pass_time(driver, 5)
    assert (runs(driver), phase(driver)) == ({"i2"}, "Pending")
    pass_time(driver, 7)
    assert (runs(driver), phase(driver)) == ({"main"}, "Running")
    assert attempts(driver) == {"i1": 0, "i2": 0, "main": 0}


def test_a_failing_init_container_is_restarted_with_back_off() -> None:
    """I02"""
    driver = started(with_init(sh("i1", "exit 1")))
    gaps, last = [], driver.now
    for _ in range(3):
        plan = driver.settle()
        assert plan.wake_at is not None
        gaps.append(plan.wake_at - last)
        last = driver.now = plan.wake_at
    assert gaps == [10, 20, 40]
    assert (attempts(driver), phase(driver)) == ({"i1": 3}, "Pending")
    assert driver.memory.status is not None
    waiting = driver.memory.status.container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.reason == "PodInitializing"


@pytest.mark.parametrize(("own", "of_pod"), [("", "Never"), ("Never", "Always")])
def test_an_init_container_that_may_not_restart_fails_the_pod(own: str, of_pod: str) -> None:
    driver = started(with_init(sidecar("s"), sh("i1", "exit 7", restartPolicy=own), restartPolicy=of_pod))
    assert (runs(driver), phase(driver)) == (set(), "Failed")
    assert "main" not in attempts(driver)
    assert not driver.engine.live_sandboxes(UID)


def test_an_init_container_is_restarted_where_its_rule_says_so() -> None:
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [7]}}
    init = sh("i1", "exit 7", restartPolicy="Never", restartPolicyRules=[rule])
    driver = started(with_init(init, restartPolicy="Never"))
    assert (attempts(driver)["i1"], phase(driver)) == (1, "Pending")


def test_init_containers_are_not_run_again_for_a_main_container_that_crashes() -> None:
    """I04"""
    driver = started(with_init(sh("i1", "exit 0"), main=sh("main", "exit 1")))
    for _ in range(4):
        plan = driver.settle()
        assert plan.wake_at is not None
        driver.now = plan.wake_at
    driver.settle()
    assert attempts(driver) == {"i1": 0, "main": 5}


def test_a_done_init_container_that_was_removed_is_not_run_again_while_the_pod_runs() -> None:
    driver = started(with_init(sh("i1", "exit 0"), sh("i2", "exit 0")))
    engine = driver.engine
    engine.containers = {k: c for k, c in engine.containers.items() if c.config.container == "main"}
    driver.settle()
    assert attempts(driver) == {"i1": 0, "i2": 0, "main": 0}


def test_an_edited_image_of_a_done_init_container_does_not_run_it_again() -> None:
    driver = started(with_init(sh("i1", "exit 0")))
    driver.pod = with_init(sh("i1", "exit 0", image="busybox:1.37"))
    driver.settle()
    assert attempts(driver) == {"i1": 0, "main": 0}


def test_a_sidecar_without_a_startup_probe_opens_the_way_as_soon_as_it_runs() -> None:
    """I06"""
    driver = started(with_init(sidecar("s"), a_container("i2", command=["sleep", "5"])))
    assert (runs(driver), phase(driver)) == ({"s", "i2"}, "Pending")
    pass_time(driver, 5)
    assert (runs(driver), phase(driver)) == ({"s", "main"}, "Running")


def test_a_sidecar_with_a_startup_probe_opens_the_way_once_that_has_succeeded() -> None:
    """I07"""
    driver = started(with_init(sidecar("s", startupProbe=PROBE), sh("i2", "exit 0")))
    assert runs(driver) == {"s"}
    driver.memory = msgspec.structs.replace(driver.memory, verdicts={the_id(driver, "s"): Verdicts(startup="success")})
    driver.settle()
    assert runs(driver) == {"s", "main"}


def test_a_sidecar_that_never_gets_ready_does_not_hold_the_others_up() -> None:
    """I08"""
    driver = started(with_init(sidecar("s", readinessProbe=PROBE)))
    assert runs(driver) == {"s", "main"}
    assert driver.memory.status is not None
    ready = driver.memory.status.condition("Ready")
    assert ready is not None
    assert ready.status == "False"


@pytest.mark.parametrize("code", [0, 1])
def test_a_sidecar_is_restarted_whatever_the_pods_policy(code: int) -> None:
    """I09"""
    driver = started(
        with_init(
            a_container("s", command=["sh", "-c", f"sleep 5; exit {code}"], restartPolicy="Always"),
            restartPolicy="Never",
        )
    )
    main = the_id(driver, "main")
    pass_time(driver, 5)
    assert (runs(driver), phase(driver)) == ({"s", "main"}, "Running")
    assert (attempts(driver)["s"], the_id(driver, "main")) == (1, main)


def test_a_sidecar_whose_instance_was_removed_is_started_again() -> None:
    driver = started(with_init(sidecar("s"), sh("i2", "exit 0")))
    engine = driver.engine
    engine.containers = {k: c for k, c in engine.containers.items() if c.config.container == "main"}
    driver.settle()
    assert runs(driver) == {"s", "main"}
    assert attempts(driver) == {"s": 1, "i2": 0, "main": 0}


def test_a_sidecar_that_fails_its_startup_probe_is_replaced_and_the_way_stays_shut() -> None:
    driver = started(with_init(sidecar("s", startupProbe=PROBE)))
    driver.memory = msgspec.structs.replace(driver.memory, verdicts={the_id(driver, "s"): Verdicts(startup="failure")})
    driver.settle()
    assert (runs(driver), attempts(driver)) == ({"s"}, {"s": 1})


def test_a_sidecar_that_fails_its_liveness_probe_is_replaced_without_holding_up_the_next() -> None:
    driver = PodDriver(
        with_init(sidecar("s", livenessProbe=PROBE), sh("i2", "exit 0"), annotations={"model/s.ignore-term": "true"})
    )
    driver.step()
    driver.memory = msgspec.structs.replace(driver.memory, verdicts={the_id(driver, "s"): Verdicts(liveness="failure")})
    plan = driver.step()
    assert [e.message for e in plan.events if e.reason == "Killing"] == [
        "Init container s failed liveness probe, will be restarted"
    ]
    driver.settle()
    assert runs(driver) == {"s", "main"}
    pass_time(driver, 30)
    assert attempts(driver) == {"s": 1, "i2": 0, "main": 0}


def test_a_changed_sidecar_is_replaced_and_the_others_run_on() -> None:
    driver = started(with_init(sidecar("s")))
    driver.pod = with_init(sidecar("s", env=[{"name": "A", "value": "1"}]))
    driver.settle()
    assert attempts(driver) == {"s": 1, "main": 0}
    assert runs(driver) == {"s", "main"}


def test_when_no_container_is_left_to_run_sidecars_end_too() -> None:
    driver = started(with_init(sidecar("s"), main=a_container("main", command=["sleep", "5"]), restartPolicy="Never"))
    assert runs(driver) == {"s", "main"}
    pass_time(driver, 5)
    assert (runs(driver), phase(driver)) == (set(), "Succeeded")
    assert attempts(driver) == {"s": 0, "main": 0}
    assert not driver.engine.live_sandboxes(UID)


def test_a_pod_whose_sidecar_ends_late_has_no_rest_until_then() -> None:
    pod = with_init(
        sidecar("s"), sh("i1", "exit 7"), restartPolicy="Never", annotations={"model/s.ignore-term": "true"}
    )
    driver = started(pod)
    assert (runs(driver), phase(driver), driver.memory.is_at_rest) == ({"s"}, "Failed", False)
    pass_time(driver, 30)
    assert (runs(driver), phase(driver), driver.memory.is_at_rest) == (set(), "Failed", True)


def test_after_a_reboot_all_init_containers_run_again_in_the_new_sandbox() -> None:
    """An exited regular container doesn't prove that the new sandbox was initialized."""
    driver = started(with_init(a_container("i1", command=["sleep", "5"]), sidecar("s")))
    pass_time(driver, 5)
    assert runs(driver) == {"s", "main"}
    driver.engine.reboot()
    driver.settle()
    assert runs(driver) == {"i1"}
    pass_time(driver, 5)
    assert runs(driver) == {"s", "main"}
    assert attempts(driver) == {"i1": 1, "s": 1, "main": 1}


def test_a_new_sandbox_comes_after_the_init_containers_are_gone_and_starts_with_the_first() -> None:
    driver = started(with_init(sh("i1", "exit 0"), sh("i2", "exit 0")))
    driver.engine.reboot()
    plan = driver.plan()
    removed = [a.name for a in plan.actions if isinstance(a, RemoveContainer)]
    starts = [a.name for a in plan.actions if isinstance(a, StartContainer)]
    assert (removed, starts) == (["i1", "i2"], ["i1"])
    kinds = [type(a) for a in plan.actions]
    assert kinds.index(CreateSandbox) > kinds.index(RemoveContainer)


def test_a_lost_sandbox_of_a_pod_that_may_not_restart_is_not_replaced() -> None:
    driver = started(with_init(sidecar("s"), restartPolicy="Never"))
    (sandbox,) = driver.engine.live_sandboxes(UID)
    driver.engine.kill_sandbox(sandbox.id)
    driver.settle()
    assert (runs(driver), phase(driver)) == (set(), "Failed")


def test_a_worker_that_dies_between_create_and_start_leaves_an_init_container_that_is_adopted() -> None:
    pod = with_init(sh("i1", "exit 0"))
    (init,) = pod.spec.init_containers
    left = running(init, state="created", started_at=None)
    assert initialization(pod, a_memory(), a_runtime(left), SANDBOX).starts == ("i1",)


def test_one_in_an_unknown_state_is_replaced_or_fails_the_pod() -> None:
    pod = with_init(sh("i1", "exit 0"), sidecar("s"), restartPolicy="Never")
    plain, side = (running(c, state="unknown") for c in pod.spec.init_containers)
    assert initialization(pod, a_memory(), a_runtime(plain), SANDBOX).progress == "failed"
    assert initialization(pod, a_memory(), a_runtime(side), SANDBOX).starts == ("s",)
    lenient = with_init(sh("i1", "exit 0"), sidecar("s"))
    assert initialization(lenient, a_memory(), a_runtime(plain), SANDBOX).starts == ("i1",)


def test_what_ran_in_an_earlier_sandbox_says_nothing() -> None:
    pod = with_init(sh("i1", "exit 0"))
    (init,), (main,) = pod.spec.init_containers, pod.spec.containers
    before = a_runtime(running(main, sandbox_id="gone"), exited(init, sandbox_id="gone"))
    todo = initialization(pod, a_memory(), before, SANDBOX)
    assert (todo.progress, todo.starts) == ("under way", ("i1",))


def test_a_created_regular_container_shows_that_the_init_containers_are_done() -> None:
    pod = with_init(sh("i1", "exit 0"))
    (main,) = pod.spec.containers
    todo = initialization(pod, a_memory(), a_runtime(running(main, state="created", started_at=None)), SANDBOX)
    assert (todo.progress, todo.starts) == ("initialized", ())


def test_a_sidecars_post_start_hook_holds_up_the_next_until_it_is_over() -> None:
    hook = {"postStart": {"exec": {"command": ["true"]}}}
    driver = started(with_init(sidecar("s", lifecycle=hook), sidecar("t")))
    assert runs(driver) == {"s"}
    driver.memory = msgspec.structs.replace(driver.memory, post_starts={the_id(driver, "s"): PostStart(state="done")})
    driver.settle()
    assert runs(driver) == {"s", "t", "main"}


def test_at_most_one_dead_instance_of_an_init_container_is_kept() -> None:
    driver = started(with_init(sh("i1", "exit 1")))
    for _ in range(3):
        plan = driver.settle()
        assert plan.wake_at is not None
        driver.now = plan.wake_at
    driver.settle()
    assert [c.config.container for c in driver.engine.containers.values()] == ["i1"]
