"""RestartAllContainers: the whole pod starts over in its sandbox (lifecycle 3.4)."""

from __future__ import annotations

from typing import Any

import pytest

from services.podworker.core.plan import Kill, RemoveContainer, StartContainer
from shared.kube.pod import Pod
from shared.kube.status import ContainerStatus
from tests.support.builders import UID, a_container, a_pod
from tests.support.pod_driver import PodDriver

RULE = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
HOOK = {"preStop": {"exec": {"command": ["true"]}}}


def source(name: str, **fields: Any) -> dict[str, Any]:
    return a_container(name, **{"restartPolicy": "Never", "restartPolicyRules": [RULE], **fields})


def a_big_pod(**spec: Any) -> Pod:
    init = a_container("i", command=["sh", "-c", "exit 0"])
    side = a_container("s", restartPolicy="Always")
    return a_pod(a_container("main", lifecycle=HOOK), source("watch"), initContainers=[init, side], **spec)


def running(driver: PodDriver) -> set[str]:
    return {c.name for c in driver.runtime().running}


def end(driver: PodDriver, name: str, code: int) -> None:
    newest = driver.runtime().newest(name)
    assert newest is not None
    driver.engine.containers[newest.id].end(code, driver.now)


def started(pod: Pod) -> PodDriver:
    driver = PodDriver(pod)
    driver.settle()
    return driver


def statuses(driver: PodDriver) -> dict[str, ContainerStatus]:
    status = driver.memory.status
    assert status is not None
    return {s.name: s for s in (*status.init_container_statuses, *status.container_statuses)}


def condition(driver: PodDriver) -> str | None:
    assert driver.memory.status is not None
    found = driver.memory.status.condition("AllContainersRestarting")
    return found.status if found is not None else None


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_all_containers_start_over_in_the_same_sandbox(policy: str) -> None:
    driver = started(a_big_pod(restartPolicy=policy))
    (sandbox,) = driver.engine.live_sandboxes(UID)
    assert condition(driver) == "False"
    end(driver, "watch", 42)
    driver.settle()
    assert driver.engine.live_sandboxes(UID) == [sandbox]
    assert running(driver) == {"s", "main", "watch"}
    assert driver.memory.restarts == {"i": 1, "s": 1, "main": 1, "watch": 1}
    assert condition(driver) == "False"
    for status in statuses(driver).values():
        last = status.last_state.terminated
        assert last is not None
        assert (status.restart_count, last.reason, last.exit_code) == (1, "RestartingAllContainers", 137)


def test_the_others_end_without_pre_stop_and_are_killed_after_two_seconds() -> None:
    driver = started(a_big_pod(annotations={"model/main.ignore-term": "true"}))
    end(driver, "watch", 42)
    plan = driver.settle()
    assert not plan.hooks
    assert running(driver) == {"main"}
    assert condition(driver) == "True"
    assert plan.wake_at == driver.now + 2
    assert driver.memory.status is not None
    assert driver.memory.status.phase == "Running"
    driver.now += 2
    plan = driver.step()
    assert [type(a) for a in plan.actions] == [Kill]
    driver.settle()
    assert running(driver) == {"s", "main", "watch"}


def test_removed_are_first_the_regular_then_the_init_containers_and_last_the_source() -> None:
    driver = started(a_big_pod())
    end(driver, "watch", 42)
    while not (plan := driver.step()).actions or not isinstance(plan.actions[0], RemoveContainer):
        pass
    assert [a.name for a in plan.actions if isinstance(a, RemoveContainer)] == ["main", "i", "s", "watch"]
    assert statuses(driver)["main"].state.running is None


def test_it_starts_over_at_once_also_while_a_back_off_runs() -> None:
    driver = started(a_pod(a_container("crash", command=["sh", "-c", "exit 1"]), source("watch")))
    driver.settle()
    assert driver.memory.restarts["crash"] == 1
    assert driver.memory.waiting["crash"].reason == "CrashLoopBackOff"
    end(driver, "watch", 42)
    plan = driver.settle()
    assert driver.memory.restarts["crash"] >= 2
    assert plan.wake_at is not None, "and then it backs off as before"


def test_another_exit_code_restarts_nothing_but_what_its_policy_says() -> None:
    driver = started(a_big_pod())
    end(driver, "watch", 41)
    driver.settle()
    assert driver.memory.restarts == {"i": 0, "s": 0, "main": 0, "watch": 0}


@pytest.mark.parametrize("name", ["i", "s"])
def test_init_containers_and_sidecars_may_ask_for_it_too(name: str) -> None:
    init = source("i", command=["sleep", "5"]) if name == "i" else source("s", restartPolicy="Always")
    driver = started(a_pod(a_container("main"), initContainers=[init]))
    end(driver, name, 42)
    driver.settle()
    assert driver.memory.restarts[name] == 1
    assert driver.memory.restarted[name] == 0


def test_ephemeral_containers_stay_as_they_are() -> None:
    pod = a_pod(source("watch"), ephemeralContainers=[a_container("debug")])
    driver = started(pod)
    debug = driver.runtime().newest("debug")
    end(driver, "watch", 42)
    driver.settle()
    assert driver.runtime().newest("debug") == debug
    assert running(driver) == {"watch", "debug"}


def test_a_kill_by_us_with_that_exit_code_asks_for_nothing() -> None:
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [143]}}
    driver = started(a_pod(a_container("a"), source("b", restartPolicyRules=[rule])))
    driver.pod = a_pod(a_container("a"), source("b", restartPolicyRules=[rule], env=[{"name": "A", "value": "1"}]))
    driver.settle()
    assert driver.memory.restarts == {"a": 0, "b": 1}


def test_a_worker_that_dies_in_the_middle_leaves_it_to_the_next_one() -> None:
    for actions in range(6):
        driver = started(a_big_pod())
        end(driver, "watch", 42)
        driver.step(only=1, record=False)
        driver.step(only=actions, record=False)
        driver.settle()
        assert driver.memory.restarts == {"i": 1, "s": 1, "main": 1, "watch": 1}
        assert running(driver) == {"s", "main", "watch"}


def test_a_sandbox_that_dies_meanwhile_is_replaced_afterwards() -> None:
    driver = started(a_big_pod(restartPolicy="Never"))
    (sandbox,) = driver.engine.live_sandboxes(UID)
    end(driver, "watch", 42)
    driver.step()
    driver.engine.kill_sandbox(sandbox.id)
    driver.settle()
    (renewed,) = driver.engine.live_sandboxes(UID)
    assert renewed.config.attempt == 1
    assert running(driver) == {"s", "main", "watch"}


def test_starts_follow_the_removal_in_the_very_next_look() -> None:
    driver = started(a_big_pod())
    end(driver, "watch", 42)
    driver.step()
    driver.step()
    plan = driver.step()
    assert [a.name for a in plan.actions if isinstance(a, StartContainer)] == ["i"]
