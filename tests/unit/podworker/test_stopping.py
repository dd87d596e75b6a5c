"""How containers end, look by look: preStop, signal, SIGKILL, and the order among a pod's containers (lifecycle 6)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from services.podworker.core.actions import compute_pod_actions
from services.podworker.core.hooks import record_hook_end
from services.podworker.core.model import PodMemory, RuntimeContainer, RuntimePod, Stop, Termination, Verdicts
from services.podworker.core.plan import Plan, Signal
from services.podworker.core.results import record_done
from services.podworker.core.state import begin_termination, rebase
from shared.kube.pod import Pod
from tests.support.builders import NOW, POD_IP, a_container, a_memory, a_pod, a_runtime, exited, running

BYE = {"preStop": {"exec": {"command": ["bye", "$(A)"]}}}
POD = a_pod(a_container(lifecycle=BYE, env=[{"name": "A", "value": "a"}]), terminationGracePeriodSeconds=30)
C = POD.spec.containers[0]
RUNS = a_runtime(running(C))


def look(memory: PodMemory, runtime: RuntimePod = RUNS, *, at: float = 0.0, pod: Pod | None = POD) -> Plan:
    """`at` seconds after NOW."""
    return compute_pod_actions(pod, memory, runtime, now=NOW + at)


def told_to_end(grace: int = 30, *, pod: Pod = POD) -> PodMemory:
    return begin_termination(a_memory(pod), NOW, grace, "removed")


def signalled(plan: Plan, *, at: float) -> PodMemory:
    """The memory after the plan's actions were carried out."""
    memory = plan.memory
    for action in plan.actions:
        memory = record_done(memory, action, now=NOW + at)
    return memory


def ended(plan: Plan, error: str = "") -> PodMemory:
    """The memory after the plan's only hook has ended."""
    (run,) = plan.hooks
    return record_hook_end(plan.memory, run, error)[0]


def kinds(plan: Plan) -> list[str]:
    return [type(action).__name__ for action in plan.actions]


def events(plan: Plan) -> list[str]:
    return [event.reason for event in plan.events]


# -- preStop --------------------------------------------------------------------------------------------------


def test_the_pre_stop_hook_comes_before_the_signal() -> None:
    plan = look(told_to_end())
    assert kinds(plan) == []
    assert [(run.kind, run.container_id) for run in plan.hooks] == [("preStop", "c-0")]
    assert plan.memory.stops["c-0"].pre_stop == "running"
    assert kinds(look(ended(plan), at=3)) == ["Signal"]


def test_its_command_is_not_expanded() -> None:
    (run,) = look(told_to_end()).hooks
    assert run.handler.exec is not None
    assert run.handler.exec.command == ["bye", "$(A)"]


def test_it_is_wanted_at_each_look_until_it_has_ended() -> None:
    """So a worker that takes the pod over runs it again."""
    plan = look(told_to_end())
    again = look(plan.memory, at=5)
    assert again.hooks == plan.hooks
    assert again.memory == plan.memory
    assert again.events == ()


def test_a_container_that_ends_by_itself_has_no_pre_stop() -> None:
    plan = look(told_to_end(), a_runtime(exited(C)))
    assert plan.hooks == ()


@pytest.mark.parametrize("probe", ["liveness", "startup"])
def test_a_probes_kill_has_it(probe: str) -> None:
    pod = a_pod({**a_container(lifecycle=BYE), f"{probe}Probe": {"exec": {"command": ["x"]}}})
    runtime = a_runtime(running(pod.spec.containers[0]))
    verdicts = Verdicts(liveness="failure") if probe == "liveness" else Verdicts(startup="failure")
    plan = look(a_memory(verdicts={"c-0": verdicts}), runtime, pod=pod)
    assert [run.kind for run in plan.hooks] == ["preStop"]
    assert plan.memory.stops["c-0"].deadline == NOW + 30


def test_a_changed_definition_has_it_with_the_hook_of_the_old_one() -> None:
    changed = a_pod(a_container(command=["other"], lifecycle={"preStop": {"sleep": {"seconds": 1}}}))
    plan = look(a_memory(), pod=changed)
    assert [run.handler.exec is not None for run in plan.hooks] == [True]


def test_without_any_grace_there_is_none() -> None:
    """RestartAllContainers, and kills of a pod whose grace is 0: the signal at once, two seconds to SIGKILL."""
    pod = a_pod(a_container(lifecycle=BYE, livenessProbe={"exec": {"command": ["x"]}}), terminationGracePeriodSeconds=0)
    runtime = a_runtime(running(pod.spec.containers[0]))
    plan = look(a_memory(verdicts={"c-0": Verdicts(liveness="failure")}), runtime, pod=pod)
    assert (plan.hooks, kinds(plan)) == ((), ["Signal"])
    assert look(signalled(plan, at=0), runtime, at=1, pod=pod).wake_at == NOW + 2


def test_a_deletion_gives_it_a_second_at_least() -> None:
    """H09: a deletion's grace is never below 1, so the hook is run, then two seconds follow the signal."""
    plan = look(told_to_end(0))
    assert [run.kind for run in plan.hooks] == ["preStop"]
    assert plan.wake_at == NOW + 1


def test_a_failure_is_told_and_the_end_goes_on() -> None:
    plan = look(told_to_end())
    memory, events_ = record_hook_end(plan.memory, plan.hooks[0], "it says no")
    assert [(event.reason, event.message) for event in events_] == [("FailedPreStopHook", "PreStopHook failed")]
    assert kinds(look(memory, at=1)) == ["Signal"]


def test_it_waits_at_most_until_the_end_of_the_grace_period() -> None:
    plan = look(told_to_end())
    assert plan.wake_at == NOW + 30
    late = look(plan.memory, at=30)
    assert (kinds(late), late.hooks, events(late)) == (["Signal"], (), ["FailedPreStopHook"])
    assert look(signalled(late, at=30), at=31).wake_at == NOW + 32
    assert kinds(look(signalled(late, at=30), at=32)) == ["Kill"]


def test_what_it_leaves_of_the_grace_period_is_the_containers() -> None:
    plan = look(ended(look(told_to_end())), at=20)
    memory = signalled(plan, at=20)
    assert look(memory, at=21).wake_at == NOW + 30
    assert kinds(look(memory, at=30)) == ["Kill"]


def test_an_end_that_nobody_waits_for_any_more_changes_nothing() -> None:
    plan = look(told_to_end())
    late = look(plan.memory, at=30)
    assert record_hook_end(late.memory, plan.hooks[0], "killed") == (late.memory, ())


def test_a_worker_that_takes_over_after_the_grace_period_only_signals() -> None:
    plan = look(told_to_end())
    assert kinds(look(plan.memory, at=500)) == ["Signal"]


def test_an_orphans_hook_is_known_by_its_label() -> None:
    plan = look(told_to_end(), pod=None)
    assert [run.handler for run in plan.hooks] == [C.lifecycle.pre_stop if C.lifecycle else None]


@pytest.mark.parametrize(("host", "asked"), [("", POD_IP), ("192.0.2.9", "192.0.2.9")])
def test_an_http_hook_goes_to_the_pods_address(host: str, asked: str) -> None:
    hook = {"preStop": {"httpGet": {"port": 80, "host": host}}}
    runtime = a_runtime(running(a_pod(a_container(lifecycle=hook)).spec.containers[0]))
    (run,) = look(told_to_end(), runtime).hooks
    assert run.handler.http_get is not None
    assert run.handler.http_get.host == asked


def a_sleeper(seconds: int) -> tuple[Pod, RuntimePod]:
    pod = a_pod(a_container(lifecycle={"preStop": {"sleep": {"seconds": seconds}}}))
    return pod, a_runtime(running(pod.spec.containers[0]))


def test_a_sleep_is_a_stored_instant_that_nobody_has_to_run() -> None:
    """H05: so it ends in time, whoever owns the pod by then."""
    pod, runtime = a_sleeper(3)
    plan = look(told_to_end(pod=pod), runtime, pod=pod)
    assert (kinds(plan), plan.hooks, plan.wake_at) == ([], (), NOW + 3)
    again = look(plan.memory, runtime, at=2, pod=pod)
    assert (again.memory, again.wake_at) == (plan.memory, NOW + 3)
    done = look(again.memory, runtime, at=3, pod=pod)
    assert (kinds(done), events(done)) == (["Signal"], [])


def test_a_sleep_of_zero_is_over_at_once() -> None:
    """H05."""
    pod, runtime = a_sleeper(0)
    assert kinds(look(told_to_end(pod=pod), runtime, pod=pod)) == ["Signal"]


@pytest.mark.parametrize("delta", [-3600.0, 3600.0])
def test_a_step_of_the_clock_moves_a_sleeps_end(delta: float) -> None:
    pod, runtime = a_sleeper(3)
    memory = rebase(look(told_to_end(pod=pod), runtime, pod=pod).memory, delta)
    assert look(memory, runtime, at=delta + 1, pod=pod).wake_at == NOW + delta + 3


# -- the grace period ---------------------------------------------------------------------------------------


def test_a_shorter_grace_gives_a_running_hook_up_at_once() -> None:
    """W09: the kubelet's stop keeps its first timeout; this one doesn't."""
    plan = look(told_to_end(60))
    memory = begin_termination(plan.memory, NOW + 10, 4, "deleted")
    assert look(memory, at=11).wake_at == NOW + 14
    assert kinds(look(memory, at=14)) == ["Signal"]


def test_a_shorter_grace_brings_sigkill_forward() -> None:
    """W09: spec 60, deletion with 4, TERM ignored: dead after 4 s."""
    memory = signalled(look(ended(look(told_to_end(60)))), at=0)
    shorter = begin_termination(memory, NOW + 10, 4, "deleted")
    assert kinds(look(shorter, at=13.9)) == []
    assert kinds(look(shorter, at=14)) == ["Kill"]


def test_a_longer_grace_changes_nothing() -> None:
    memory = look(told_to_end(5)).memory
    assert begin_termination(memory, NOW + 1, 60, "deleted") is memory


def test_a_pod_that_never_ran_ends_at_once() -> None:
    """W10: stuck in ErrImagePull."""
    memory = look(told_to_end(), a_runtime(sandboxes=())).memory
    assert memory.terminated_at == NOW


# -- several containers --------------------------------------------------------------------------------------


def containers_of(*names: str, grace: int = 30, **fields: Any) -> tuple[Pod, dict[str, RuntimeContainer]]:
    """Sidecars s1, s2... and regular ones; all run."""
    made = {name: a_container(name, **fields) for name in names}
    pod = a_pod(
        *(c for name, c in made.items() if not name.startswith("s")),
        initContainers=[{**c, "restartPolicy": "Always"} for name, c in made.items() if name.startswith("s")],
        terminationGracePeriodSeconds=grace,
    )
    places = {c.name: place for place, c in enumerate(pod.spec.init_containers)}
    every = (*pod.spec.init_containers, *pod.spec.containers)
    return pod, {c.name: running(c, sidecar=places.get(c.name)) for c in every}


def stopped(plan: Plan) -> set[str]:
    return {action.container_id.removesuffix("-0") for action in plan.actions if isinstance(action, Signal)}


def test_all_containers_end_side_by_side() -> None:
    """H10."""
    pod, shown = containers_of("a", "b")
    assert stopped(look(told_to_end(pod=pod), a_runtime(*shown.values()), pod=pod)) == {"a", "b"}


@pytest.mark.parametrize("knows_spec", [True, False])
def test_sidecars_end_after_the_regular_containers_the_last_one_first(knows_spec: bool) -> None:
    """I11; an orphan's order is known by its labels."""
    pod, shown = containers_of("s1", "s2", "main")
    known = pod if knows_spec else None
    first = look(told_to_end(pod=pod), a_runtime(*shown.values()), pod=known)
    assert (stopped(first), first.wake_at) == ({"main"}, NOW + 30)
    without_main = a_runtime(exited(pod.spec.containers[0]), shown["s2"], shown["s1"])
    second = look(signalled(first, at=0), without_main, at=1, pod=known)
    assert stopped(second) == {"s2"}
    third = look(signalled(second, at=1), a_runtime(shown["s1"]), at=2, pod=known)
    assert stopped(third) == {"s1"}


def test_their_pre_stop_hooks_begin_at_once() -> None:
    pod, shown = containers_of("s1", "main", lifecycle=BYE)
    plan = look(told_to_end(pod=pod), a_runtime(*shown.values()), pod=pod)
    assert {run.name for run in plan.hooks} == {"s1", "main"}


def test_a_sidecar_waits_for_others_no_longer_than_its_grace() -> None:
    """Then it has two seconds."""
    pod, shown = containers_of("s1", "main", grace=5)
    runtime = a_runtime(*shown.values())
    memory = signalled(look(told_to_end(5, pod=pod), runtime, pod=pod), at=0)
    plan = look(memory, runtime, at=5, pod=pod)
    assert sorted(kinds(plan)) == ["Kill", "Signal"]
    assert stopped(plan) == {"s1"}
    assert look(signalled(plan, at=5), a_runtime(shown["s1"]), at=6, pod=pod).wake_at == NOW + 7


def test_a_plain_init_container_holds_sidecars_up_too() -> None:
    pod, shown = containers_of("s1", "main")
    init = replace(shown["main"], id="init-0", name="init")
    plan = look(told_to_end(pod=pod), a_runtime(init, shown["s1"]), pod=pod)
    assert stopped(plan) == {"init"}


def test_a_single_sidecars_kill_waits_for_nobody() -> None:
    pod, shown = containers_of("s1", "main", livenessProbe={"exec": {"command": ["x"]}})
    memory = a_memory(verdicts={"s1-0": Verdicts(liveness="failure")})
    assert stopped(look(memory, a_runtime(*shown.values()), pod=pod)) == {"s1"}


def test_a_stop_of_before_the_upgrade_needs_no_hook() -> None:
    """A stored stop without pre_stop goes on to its signal."""
    memory = a_memory(
        termination=Termination(at=NOW, grace=30, reason="removed"),
        stops={"c-0": Stop(deadline=NOW + 30, reason="terminating")},
    )
    assert kinds(look(memory)) == ["Signal"]
