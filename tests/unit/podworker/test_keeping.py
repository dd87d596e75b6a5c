"""Running containers under probe verdicts, postStart hooks and edits; ephemeral ones (lifecycle 3.4)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from services.podworker.core.actions import compute_pod_actions
from services.podworker.core.model import PodMemory, PostStart, RuntimeContainer, Verdicts
from services.podworker.core.plan import Plan, StartContainer
from shared.kube.pod import Pod
from tests.support.builders import (
    NOW,
    UID,
    a_container,
    a_memory,
    a_pod,
    a_runtime,
    running,
)
from tests.support.pod_driver import PodDriver

PROBE: dict[str, Any] = {"exec": {"command": ["true"]}}
HOOK: dict[str, Any] = {"postStart": {"exec": {"command": ["true"]}}}
FAILED = {"c-0": Verdicts(liveness="failure")}


def look(pod: Pod, *containers: RuntimeContainer, memory: PodMemory | None = None) -> Plan:
    return compute_pod_actions(pod, memory or a_memory(), a_runtime(*containers), now=NOW)


def starts(plan: Plan) -> list[str]:
    return [action.name for action in plan.actions if isinstance(action, StartContainer)]


def started(pod: Pod) -> PodDriver:
    driver = PodDriver(pod)
    driver.settle()
    return driver


def the_id(driver: PodDriver, name: str = "c") -> str:
    newest = driver.runtime().newest(name)
    assert newest is not None
    return newest.id


def judge(driver: PodDriver, **verdicts: Any) -> None:
    driver.memory = msgspec.structs.replace(driver.memory, verdicts={the_id(driver): Verdicts(**verdicts)})


def phase(driver: PodDriver) -> str:
    assert driver.memory.status is not None
    return driver.memory.status.phase


@pytest.mark.parametrize(
    ("kind", "policy", "follows"),
    [
        ("liveness", "Always", ", will be restarted"),
        ("startup", "OnFailure", ", will be restarted"),
        ("liveness", "Never", ""),
    ],
)
def test_a_failed_probe_ends_the_container_and_says_what_follows(kind: str, policy: str, follows: str) -> None:
    probes: dict[str, Any] = {f"{kind}Probe": PROBE}
    verdicts: dict[str, Any] = {kind: "failure"}
    pod = a_pod(a_container(**probes), restartPolicy=policy)
    memory = a_memory(verdicts={"c-0": Verdicts(**verdicts)})
    plan = look(pod, running(pod.spec.containers[0]), memory=memory)
    assert [(e.reason, e.message) for e in plan.events] == [("Killing", f"Container c failed {kind} probe{follows}")]
    assert plan.memory.stops["c-0"].deadline == NOW + 30


@pytest.mark.parametrize("verdicts", [{"readiness": "failure"}, {"liveness": "success"}, {}])
def test_no_other_verdict_ends_a_container(verdicts: dict[str, Any]) -> None:
    pod = a_pod(a_container(livenessProbe=PROBE, readinessProbe=PROBE))
    memory = a_memory(verdicts={"c-0": Verdicts(**verdicts)})
    assert not look(pod, running(pod.spec.containers[0]), memory=memory).actions


def test_a_probe_that_an_edit_took_out_ends_nothing() -> None:
    pod = a_pod()
    assert not look(pod, running(pod.spec.containers[0]), memory=a_memory(verdicts=FAILED)).actions


@pytest.mark.parametrize("grace", [1, 60])
def test_the_probes_own_grace_replaces_the_pods(grace: int) -> None:
    pod = a_pod(a_container(livenessProbe={**PROBE, "terminationGracePeriodSeconds": grace}))
    plan = look(pod, running(pod.spec.containers[0]), memory=a_memory(verdicts=FAILED))
    assert plan.memory.stops["c-0"].deadline == NOW + grace


def test_a_liveness_kill_restarts_the_container_with_back_off() -> None:
    driver = started(a_pod(a_container(livenessProbe=PROBE)))
    judge(driver, liveness="failure")
    driver.settle()
    assert driver.memory.restarts == {"c": 1}, "the first at once"
    judge(driver, liveness="failure")
    plan = driver.settle()
    assert (plan.wake_at, driver.memory.waiting["c"].reason) == (driver.now + 10, "CrashLoopBackOff")
    assert phase(driver) == "Running"


@pytest.mark.parametrize("own", ["", "Never"])
def test_a_liveness_kill_under_policy_never_fails_the_pod(own: str) -> None:
    """R11"""
    driver = started(a_pod(a_container(livenessProbe=PROBE, restartPolicy=own), restartPolicy=own or "Never"))
    judge(driver, liveness="failure")
    driver.settle()
    assert (driver.memory.restarts, phase(driver)) == ({"c": 0}, "Failed")
    assert not driver.engine.live_sandboxes(UID)


def test_rules_are_not_asked_after_a_liveness_kill() -> None:
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [143]}}
    container = a_container(livenessProbe=PROBE, restartPolicy="Never", restartPolicyRules=[rule])
    driver = started(a_pod(container))
    judge(driver, liveness="failure")
    driver.settle()
    assert driver.memory.restarts == {"c": 0}


def test_one_that_exits_with_0_after_a_liveness_kill_restarts_under_on_failure() -> None:
    driver = started(
        a_pod(a_container(livenessProbe=PROBE), restartPolicy="OnFailure", annotations={"model/ignore-term": "true"})
    )
    judge(driver, liveness="failure")
    driver.settle()
    driver.engine.containers[the_id(driver)].end(0, driver.now)
    driver.settle()
    assert (driver.memory.restarts, phase(driver)) == ({"c": 1}, "Running")


def test_a_post_start_hook_holds_up_later_containers_and_not_earlier_ones() -> None:
    pod = a_pod(a_container("a"), a_container("b", lifecycle=HOOK), a_container("c"))
    driver = PodDriver(pod)
    plan = driver.step()
    assert starts(plan) == ["a", "b"]
    driver.engine.containers[the_id(driver, "a")].end(1, driver.now)
    plan = driver.step()
    assert starts(plan) == ["a"]
    assert [(hook.name, hook.kind) for hook in plan.hooks] == [("b", "postStart")]
    driver.memory = msgspec.structs.replace(driver.memory, post_starts={the_id(driver, "b"): PostStart(state="done")})
    assert starts(driver.step()) == ["c"]


def test_a_container_with_a_hook_that_cannot_start_holds_up_nobody() -> None:
    driver = PodDriver(a_pod(a_container("a", image="UPPER", lifecycle=HOOK), a_container("b")))
    assert starts(driver.step()) == ["b"]


def test_a_failed_post_start_hook_ends_the_container_and_its_policy_decides() -> None:
    for policy, expected in (("Always", 1), ("Never", 0)):
        driver = started(a_pod(a_container(lifecycle=HOOK), restartPolicy=policy))
        failed = PostStart(state="failed", message="no such command")
        driver.memory = msgspec.structs.replace(driver.memory, post_starts={the_id(driver): failed})
        plan = driver.step()
        assert [(e.reason, e.message) for e in plan.events] == [("Killing", "FailedPostStartHook")]
        assert driver.memory.waiting["c"].reason == "PostStartHookError"
        driver.settle()
        assert driver.memory.restarts == {"c": expected}


# -- edits of a pod with a fixed uid


def test_a_changed_image_replaces_the_container_in_its_sandbox() -> None:
    """W07"""
    driver = started(a_pod())
    (sandbox,) = driver.engine.live_sandboxes(UID)
    driver.engine.local_images["busybox:1.37"] = driver.engine.local_images["busybox:1.36"]
    driver.pod = a_pod(a_container(image="busybox:1.37"))
    driver.settle()
    assert driver.engine.live_sandboxes(UID) == [sandbox]
    assert driver.memory.status is not None
    (status,) = driver.memory.status.container_statuses
    assert (status.restart_count, status.image) == (1, "busybox:1.37")


@pytest.mark.parametrize(("source", "expected"), [("file", 1), ("http", 1), ("api", 0)])
def test_a_changed_variable_replaces_the_container_of_a_file_or_url_pod_only(source: str, expected: int) -> None:
    """W08: any field but resources counts for those, as in kubelet 1.20; name and image for pods of the API, as in
    1.36."""
    driver = PodDriver(a_pod())
    driver.memory = msgspec.structs.replace(driver.memory, source=source)
    driver.settle()
    driver.pod = a_pod(a_container(env=[{"name": "A", "value": "1"}]))
    driver.settle()
    assert driver.memory.restarts == {"c": expected}


def test_changed_resources_leave_the_container_running() -> None:
    driver = started(a_pod())
    driver.pod = a_pod(a_container(resources={"limits": {"cpu": "100m"}}))
    driver.settle()
    assert driver.memory.restarts == {"c": 0}


# -- ephemeral containers


def test_an_ephemeral_container_starts_before_initialization_is_done_and_only_once() -> None:
    init = a_container("i", command=["sleep", "5"])
    debug = a_container("debug", command=["sh", "-c", "exit 1"])
    driver = started(a_pod(initContainers=[init], ephemeralContainers=[debug]))
    assert driver.memory.restarts == {"debug": 0, "i": 0}
    driver.now += 5
    driver.settle()
    assert driver.memory.restarts == {"debug": 0, "i": 0, "c": 0}
    gone = the_id(driver, "debug")
    del driver.engine.containers[gone]
    driver.settle()
    assert driver.memory.restarts["debug"] == 0


def test_an_ephemeral_container_does_not_keep_a_pod_going() -> None:
    driver = started(
        a_pod(a_container(command=["sleep", "5"]), ephemeralContainers=[a_container("debug")], restartPolicy="Never")
    )
    driver.now += 5
    driver.settle()
    assert phase(driver) == "Succeeded"
    assert not driver.runtime().running
