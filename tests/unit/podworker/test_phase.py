"""The pod's phase, rule by rule (lifecycle 4.1)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.podworker.core.model import Failure, PostStart, Stop, Termination
from services.podworker.core.phase import pod_phase, projected_phase
from shared.kube.status import (
    ContainerState,
    ContainerStatus,
    PodStatus,
    StateRunning,
    StateTerminated,
    StateWaiting,
)
from tests.support.builders import (
    NOW,
    a_container,
    a_memory,
    a_pod,
    a_runtime,
    a_sandbox,
    cannot_run,
    exited,
    nothing,
    running,
)

C = a_pod().spec.containers[0]
SIDECAR = {"restartPolicy": "Always"}
RESTARTED_ALL = StateTerminated(exit_code=137, reason="RestartingAllContainers", started_at=None, finished_at=None)


STATES = {
    "run": (ContainerState(running=StateRunning(started_at=None)), ContainerState()),
    "new": (ContainerState(waiting=StateWaiting(reason="ContainerCreating")), ContainerState()),
    "ok": (
        ContainerState(terminated=StateTerminated(exit_code=0, started_at=None, finished_at=None)),
        ContainerState(),
    ),
    "bad": (
        ContainerState(terminated=StateTerminated(exit_code=1, started_at=None, finished_at=None)),
        ContainerState(),
    ),
    "loop": (
        ContainerState(waiting=StateWaiting(reason="CrashLoopBackOff")),
        ContainerState(terminated=StateTerminated(exit_code=1, started_at=None, finished_at=None)),
    ),
    "again": (
        ContainerState(waiting=StateWaiting(reason="CrashLoopBackOff")),
        ContainerState(terminated=StateTerminated(exit_code=0, started_at=None, finished_at=None)),
    ),
    "none": (ContainerState(), ContainerState()),
}
"""Running, to be started first, exited with 0 or 1, backed off after 1 or 0, nothing known."""


def status(kind: str, name: str = "c", *, started: bool = True) -> ContainerStatus:
    state, last_state = STATES[kind]
    return ContainerStatus(
        name=name,
        state=state,
        last_state=last_state,
        ready=kind == "run",
        restart_count=0,
        image="i",
        image_id="",
        started=started and kind == "run",
    )


def phase(policy: str, *kinds: str, init: tuple[str, ...] = (), sidecars: tuple[str, ...] = (), **facts: Any) -> str:
    """Of a pod with regular containers c0.., plain init containers i0.. and sidecars s0.. in these states."""
    names, inits, sides = (
        [f"{letter}{number}" for number in range(len(states))]
        for letter, states in (("c", kinds), ("i", init), ("s", sidecars))
    )
    specs = [*map(a_container, inits), *(a_container(name, **SIDECAR) for name in sides)]
    pod = a_pod(*map(a_container, names), restartPolicy=policy, initContainers=specs)
    shown = [*map(status, init, inits), *map(status, sidecars, sides)]
    return pod_phase(pod, shown, [*map(status, kinds, names)], **facts)


@pytest.mark.parametrize(
    ("policy", "kinds", "expected"),
    [
        ("Always", ("run",), "Running"),
        ("Always", ("new",), "Pending"),
        ("Always", ("run", "new"), "Pending"),
        ("Always", ("run", "loop"), "Running"),
        ("Always", ("loop",), "Running"),
        ("Always", ("ok",), "Running"),
        ("Always", ("ok", "bad"), "Running"),
        ("Always", ("none",), "Pending"),
        ("OnFailure", ("ok",), "Succeeded"),
        ("OnFailure", ("ok", "bad"), "Running"),
        ("OnFailure", ("ok", "loop"), "Running"),
        ("OnFailure", ("ok", "run"), "Running"),
        ("Never", ("ok", "ok"), "Succeeded"),
        ("Never", ("ok", "bad"), "Failed"),
        ("Never", ("bad", "run"), "Running"),
        ("Never", ("bad", "new"), "Pending"),
    ],
)
def test_the_phase_follows_the_containers(policy: str, kinds: tuple[str, ...], expected: str) -> None:
    assert phase(policy, *kinds) == expected


@pytest.mark.parametrize(
    ("policy", "init", "expected"),
    [
        ("Never", ("bad",), "Failed"),
        ("Always", ("bad",), "Pending"),
        ("Always", ("run",), "Pending"),
        ("Always", ("ok", "new"), "Pending"),
        ("Always", ("ok", "ok"), "Running"),
    ],
)
def test_init_containers_come_first(policy: str, init: tuple[str, ...], expected: str) -> None:
    regular = "run" if expected == "Running" else "new"
    assert phase(policy, regular, init=init) == expected


@pytest.mark.parametrize(
    ("policy", "init", "expected"),
    [
        ("Never", "loop", "Failed"),
        ("Never", "ok", "Pending"),
        ("OnFailure", "bad", "Pending"),
        ("Always", "loop", "Pending"),
    ],
)
def test_rule_1_only_an_init_container_that_may_not_restart_fails_its_pod(
    policy: str, init: str, expected: str
) -> None:
    assert phase(policy, "new", init=(init,)) == expected


def test_rule_1_goes_by_the_init_containers_own_policy_and_rules() -> None:
    """A rule that speaks of the code restarts it under Never; its own Never ends it under Always."""
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}
    excused = a_container("i0", restartPolicy="Never", restartPolicyRules=[rule])
    for policy, init, expected in (
        ("Never", excused, "Pending"),
        ("Always", a_container("i0", restartPolicy="Never"), "Failed"),
        ("Never", a_container("i0", restartPolicy="OnFailure"), "Pending"),
    ):
        pod = a_pod(a_container("c0"), restartPolicy=policy, initContainers=[init])
        assert pod_phase(pod, [status("bad", "i0")], [status("new", "c0")]) == expected


@pytest.mark.parametrize("init", ["new", "run", "none"])
def test_rule_2_a_plain_init_container_that_is_not_over_holds_the_pod_in_pending(init: str) -> None:
    assert phase("Always", "run", init=(init,)) == "Pending"


@pytest.mark.parametrize("sidecar", ["new", "none"])
def test_rule_2_a_sidecar_that_has_not_started_holds_the_pod_in_pending(sidecar: str) -> None:
    assert phase("Always", "new", sidecars=(sidecar,)) == "Pending"


def test_rule_2_a_sidecar_counts_as_started_only_after_its_startup_probe() -> None:
    pod = a_pod(a_container("c0"), initContainers=[a_container("s0", **SIDECAR)])
    unstarted = [status("run", "s0", started=False)]
    assert pod_phase(pod, unstarted, [status("loop", "c0")]) == "Pending"
    assert pod_phase(pod, unstarted, [status("run", "c0")], has_initialized=True) == "Running"


def test_rule_2_asks_whether_a_regular_container_was_made_in_the_present_sandbox() -> None:
    """After a reboot the sidecar's start is waited for again; while it restarts beside running ones it isn't."""
    pod = a_pod(a_container("c"), initContainers=[a_container("s", **SIDECAR, startupProbe={"periodSeconds": 1})])
    sidecar, regular = running(pod.spec.init_containers[0]), pod.spec.containers[0]
    beside = a_runtime(sidecar, running(regular))
    assert projected_phase(pod, a_memory(), beside) == "Running"
    rebooted = a_runtime(sidecar, exited(regular, 255, sandbox_id="sandbox-before"))
    assert projected_phase(pod, a_memory(), rebooted) == "Pending"
    assert projected_phase(pod, a_memory(), a_runtime(sidecar, exited(regular, 255), sandboxes=())) == "Pending"


@pytest.mark.parametrize("kinds", [("new",), ("run", "new"), ("ok", "new"), ("loop", "new")])
def test_rule_3_a_container_that_waits_for_its_first_start_is_pending(kinds: tuple[str, ...]) -> None:
    assert phase("Always", *kinds) == "Pending"


def test_rule_4_one_that_runs_is_enough_and_sidecars_count() -> None:
    assert phase("Always", "run", "loop", "ok") == "Running"
    assert phase("Never", "ok", sidecars=("run",)) == "Running"
    assert phase("Never", "bad", sidecars=("run",)) == "Running"


def test_rule_4_an_unknown_container_hides_a_running_one() -> None:
    assert phase("Always", "run", "none") == "Pending"


@pytest.mark.parametrize("sidecar", ["ok", "bad", "loop", "again"])
def test_a_sidecar_that_has_ended_is_ignored(sidecar: str) -> None:
    assert phase("Never", "ok", sidecars=(sidecar,)) == "Succeeded"
    assert phase("Never", "bad", sidecars=(sidecar,)) == "Failed"
    assert phase("Always", "run", sidecars=(sidecar,)) == "Running"


@pytest.mark.parametrize(
    ("kinds", "expected"), [(("ok", "ok"), "Succeeded"), (("ok", "bad"), "Failed"), (("ok", "again"), "Failed")]
)
@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_rule_5_a_pod_that_was_torn_down_ends_in_a_terminal_phase(
    policy: str, kinds: tuple[str, ...], expected: str
) -> None:
    assert phase(policy, *kinds, is_torn_down=True) == expected


def test_rule_5_is_for_pods_of_the_api_a_static_pod_keeps_its_phase() -> None:
    torn_down: dict[str, Any] = {"termination": Termination(at=NOW, grace=1, reason="removed"), "terminated_at": NOW}
    gone = a_runtime(exited(C, 0), sandboxes=(a_sandbox(ready=False),))
    assert projected_phase(a_pod(), a_memory(**torn_down), gone) == "Running"
    assert projected_phase(a_pod(), a_memory(source="api", **torn_down), gone) == "Succeeded"


def test_rule_5_a_pod_of_the_api_that_never_started_has_failed_once_it_is_gone() -> None:
    """W10: deleted while its image couldn't be pulled."""
    torn_down: dict[str, Any] = {"termination": Termination(at=NOW, grace=1, reason="deleted"), "terminated_at": NOW}
    assert projected_phase(a_pod(), a_memory(source="api", **torn_down), nothing()) == "Failed"
    waiting = a_pod(initContainers=[a_container("i")])
    assert projected_phase(waiting, a_memory(source="api", **torn_down), nothing()) == "Failed"


def test_rule_6_one_that_may_restart_keeps_the_pod_running() -> None:
    """Container-level policies and rules: the pod's own is asked only where they say nothing."""
    rule = {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [0, 7]}}
    ruled = a_container("c", restartPolicy="Never", restartPolicyRules=[rule])
    for code, expected in ((1, "Running"), (7, "Failed"), (0, "Succeeded")):
        pod = a_pod(ruled, restartPolicy="Always")
        assert projected_phase(pod, a_memory(), a_runtime(exited(pod.spec.containers[0], code))) == expected
    never = a_pod(a_container("a", restartPolicy="Never"), a_container("b"))
    first, second = never.spec.containers
    assert projected_phase(never, a_memory(), a_runtime(exited(first, 1), running(second))) == "Running"
    assert projected_phase(never, a_memory(), a_runtime(exited(first, 1), exited(second, 0))) == "Running"


def test_rule_6_a_container_that_was_removed_to_start_over_keeps_the_pod_running() -> None:
    shown = ContainerStatus(
        name="c0",
        state=ContainerState(waiting=StateWaiting(reason="ContainerCreating")),
        last_state=ContainerState(terminated=RESTARTED_ALL),
        ready=False,
        restart_count=1,
        image="i",
        image_id="",
        started=False,
    )
    memory = a_memory(restart_all=("c",), restarted={"c": 0}, restarts={"c": 0})
    assert projected_phase(a_pod(restartPolicy="Never"), memory, a_runtime()) == "Running"
    assert pod_phase(a_pod(a_container("c0")), [], [shown]) == "Running"


def test_rule_6_a_probe_kill_under_never_is_final_whatever_a_rule_says() -> None:
    """R11: rules aren't consulted."""
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [137]}}
    pod = a_pod(a_container("c", restartPolicy="Never", restartPolicyRules=[rule]))
    killed = a_runtime(exited(pod.spec.containers[0], 137))
    stopped = a_memory(stops={"c-0": Stop(deadline=0, reason="probe")})
    assert projected_phase(pod, stopped, killed) == "Failed"
    assert projected_phase(pod, a_memory(), killed) == "Running"


def test_a_start_that_failed_under_never_fails_the_pod() -> None:
    """T11."""
    assert projected_phase(a_pod(restartPolicy="Never"), a_memory(), a_runtime(cannot_run(C))) == "Failed"
    assert projected_phase(a_pod(), a_memory(), a_runtime(cannot_run(C))) == "Running"


def test_a_container_in_its_post_start_hook_is_not_running_yet() -> None:
    pod = a_pod(a_container("c", lifecycle={"postStart": {"sleep": {"seconds": 9}}}), restartPolicy="Never")
    runtime = a_runtime(running(pod.spec.containers[0]))
    assert projected_phase(pod, a_memory(), runtime) == "Pending"
    over = a_memory(post_starts={"c-0": PostStart(state="done")})
    assert projected_phase(pod, over, runtime) == "Running"


def test_one_that_was_replaced_and_runs_its_post_start_hook_does_not_end_its_pod() -> None:
    pod = a_pod(a_container("c", lifecycle={"postStart": {"sleep": {"seconds": 9}}}), restartPolicy="Never")
    spec = pod.spec.containers[0]
    again = a_runtime(running(spec, attempt=1), exited(spec, 143))
    assert projected_phase(pod, a_memory(), again) == "Running"


def test_a_pod_that_ends_keeps_the_phase_that_its_containers_give() -> None:
    ending = a_memory(termination=Termination(at=NOW, grace=30, reason="removed"))
    assert projected_phase(a_pod(), ending, a_runtime(exited(C, 143))) == "Running"


def test_a_container_that_we_replace_does_not_end_its_pod() -> None:
    pod = a_pod(restartPolicy="Never")
    memory = a_memory(stops={"c-0": Stop(deadline=0, reason="definition")})
    assert projected_phase(pod, memory, a_runtime(exited(C, 143))) == "Running"
    assert projected_phase(pod, a_memory(), a_runtime(exited(C, 143))) == "Failed"


@pytest.mark.parametrize("terminal", ["Succeeded", "Failed"])
def test_a_terminal_phase_sticks(terminal: str) -> None:
    kept = PodStatus(phase=terminal, qos_class="BestEffort")  # type: ignore[arg-type]
    assert projected_phase(a_pod(), a_memory(status=kept), a_runtime(running(C))) == terminal
    failed_since = a_memory(status=kept, failure=Failure(reason="Evicted", message=""))
    assert projected_phase(a_pod(), failed_since, a_runtime(running(C))) == terminal


def test_a_pod_that_failed_as_a_whole_is_failed_whatever_runs() -> None:
    failed = a_memory(failure=Failure(reason="DeadlineExceeded", message=""))
    for runtime in (nothing(), a_runtime(running(C)), a_runtime(exited(C, 0))):
        assert projected_phase(a_pod(), failed, runtime) == "Failed"


@given(
    policy=st.sampled_from(["Always", "OnFailure", "Never"]),
    kinds=st.lists(st.sampled_from(sorted(STATES)), min_size=1, max_size=4),
    sidecars=st.lists(st.sampled_from(sorted(STATES)), max_size=2),
    is_torn_down=st.booleans(),
    has_initialized=st.booleans(),
)
def test_every_mixture_has_a_phase_and_its_order_does_not_matter(
    policy: str, kinds: list[str], sidecars: list[str], is_torn_down: bool, has_initialized: bool
) -> None:
    facts: dict[str, Any] = {"is_torn_down": is_torn_down, "has_initialized": has_initialized}
    expected = phase(policy, *kinds, sidecars=tuple(sidecars), **facts)
    for mixed in itertools.islice(itertools.permutations(kinds), 6):
        assert phase(policy, *mixed, sidecars=tuple(sidecars), **facts) == expected
    if policy == "Always" and not is_torn_down:
        assert expected in ("Pending", "Running")
    if "run" in (*kinds, *sidecars):
        assert expected in ("Pending", "Running")
