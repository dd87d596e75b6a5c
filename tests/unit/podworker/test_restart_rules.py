"""A container's own restart policy and rules (lifecycle 3.4), and what the pod becomes of them."""

from __future__ import annotations

from typing import Any

import pytest

from services.podworker.core.restart_rules import asks_for_all, policy_of, restarts_after_exit
from tests.support.builders import UID, a_container, a_pod
from tests.support.pod_driver import PodDriver


def rule(operator: str, *values: int, action: str = "Restart") -> dict[str, Any]:
    return {"action": action, "exitCodes": {"operator": operator, "values": list(values)}}


@pytest.mark.parametrize(
    ("own", "of_pod", "code", "expected"),
    [
        ("", "Always", 0, True),
        ("", "Never", 1, False),
        ("Always", "Never", 0, True),
        ("OnFailure", "Never", 1, True),
        ("OnFailure", "Always", 0, False),
        ("Never", "Always", 1, False),
    ],
)
def test_a_containers_own_policy_comes_before_the_pods(own: str, of_pod: str, code: int, expected: bool) -> None:
    pod = a_pod(a_container(restartPolicy=own), restartPolicy=of_pod)
    assert restarts_after_exit(pod, "c", code) == expected
    assert policy_of(pod, "c") == (own or of_pod)


@pytest.mark.parametrize(
    ("rules", "code", "expected"),
    [
        ([rule("In", 3, 4)], 4, True),
        ([rule("In", 3, 4)], 5, False),
        ([rule("NotIn", 0, 1)], 5, True),
        ([rule("NotIn", 0, 1)], 1, False),
        ([rule("In", 3), rule("In", 4)], 4, True),
        ([{"action": "Restart"}], 0, False),
        ([rule("In", 3, action="RestartAllContainers")], 3, True),
    ],
)
def test_a_rule_that_speaks_of_the_exit_code_restarts_and_else_the_policy_decides(
    rules: list[dict[str, Any]], code: int, expected: bool
) -> None:
    pod = a_pod(a_container(restartPolicy="Never", restartPolicyRules=rules))
    assert restarts_after_exit(pod, "c", code) == expected


def test_the_first_rule_that_fits_says_what_is_done() -> None:
    rules = [rule("In", 1, 2), rule("NotIn", 0, action="RestartAllContainers")]
    (container,) = a_pod(a_container(restartPolicy="Never", restartPolicyRules=rules)).spec.containers
    assert [asks_for_all(container, code) for code in (0, 1, 3)] == [False, False, True]


def test_an_init_container_that_has_succeeded_is_done_and_an_ephemeral_one_is_never_restarted() -> None:
    pod = a_pod(
        initContainers=[a_container("i"), a_container("s", restartPolicy="Always")],
        ephemeralContainers=[a_container("e")],
    )
    assert [restarts_after_exit(pod, name, 0) for name in ("i", "s", "e")] == [False, True, False]
    assert [restarts_after_exit(pod, name, 1) for name in ("i", "s", "e")] == [True, True, False]


def test_one_that_may_not_restart_stays_ended_while_the_other_runs() -> None:
    """R05"""
    driver = PodDriver(a_pod(a_container("a", command=["sh", "-c", "exit 1"], restartPolicy="Never"), a_container("b")))
    driver.settle()
    driver.now += 900
    driver.settle()
    assert driver.memory.restarts == {"a": 0, "b": 0}
    assert driver.memory.status is not None
    ready = driver.memory.status.condition("Ready")
    assert ready is not None
    assert (driver.memory.status.phase, ready.status) == ("Running", "False")


def test_a_pod_fails_when_none_of_its_containers_may_restart() -> None:
    driver = PodDriver(a_pod(a_container(command=["sh", "-c", "exit 1"], restartPolicy="Never")))
    driver.settle()
    assert driver.memory.status is not None
    assert driver.memory.status.phase == "Failed"
    assert not driver.engine.live_sandboxes(UID)


def test_one_that_is_always_restarted_keeps_a_never_pod_running() -> None:
    driver = PodDriver(
        a_pod(a_container(command=["sh", "-c", "exit 0"], restartPolicy="Always"), restartPolicy="Never")
    )
    plan = driver.settle()
    assert driver.memory.restarts == {"c": 1}
    assert plan.wake_at == driver.now + 10
    assert driver.memory.status is not None
    assert driver.memory.status.phase == "Running"
