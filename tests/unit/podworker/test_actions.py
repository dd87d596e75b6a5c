"""Single looks of the planner: which actions, for which reason, when to look again."""

from __future__ import annotations

import msgspec
import pytest

from services.podworker.core.actions import compute_pod_actions
from services.podworker.core.model import (
    Backoff,
    PodMemory,
    Rejection,
    RuntimePod,
    Stop,
    Termination,
    Waiting,
)
from services.podworker.core.plan import (
    CreateSandbox,
    Kill,
    Plan,
    PullImage,
    RemoveContainer,
    RemoveSandbox,
    Signal,
    StartContainer,
    StopSandbox,
)
from shared.kube.pod import Pod
from shared.kube.times import rfc3339
from tests.support.builders import (
    NOW,
    a_container,
    a_memory,
    a_pod,
    a_runtime,
    a_sandbox,
    exited,
    nothing,
    running,
)

POD = a_pod()
C = POD.spec.containers[0]
GONE = "the pod is not in any pod source"
ENDING = Termination(at=NOW, grace=30, reason="removed")
DEAD_SANDBOX = (a_sandbox(ready=False),)


def look(runtime: RuntimePod, memory: PodMemory | None = None, pod: Pod | None = POD, now: float = NOW) -> Plan:
    return compute_pod_actions(pod, memory or a_memory(), runtime, now=now)


def kinds(plan: Plan) -> list[str]:
    return [type(action).__name__ for action in plan.actions]


def test_a_new_pod_gets_its_sandbox_images_and_containers_in_one_plan() -> None:
    plan = look(nothing(), pod=a_pod(a_container("a"), a_container("b", image="x")))
    assert kinds(plan) == [
        "CreateSandbox",
        "PullImage",
        "StartContainer",
        "PullImage",
        "StartContainer",
    ]
    assert plan.actions[3] == PullImage(
        container="b",
        reference="x:latest",
        policy="IfNotPresent",
        reason="Container b needs image x:latest",
    )
    assert plan.actions[4] == StartContainer(name="b", attempt=0, reason="Container b has no instance yet")


def test_a_pod_as_it_should_be_needs_nothing() -> None:
    plan = look(a_runtime(running(C)))
    assert (plan.actions, plan.wake_at, plan.memory) == ((), None, a_memory())


@pytest.mark.parametrize(
    ("memory", "pod"),
    [
        (a_memory(admitted=False), POD),
        (a_memory(admitted=False, rejection=Rejection(reason="R", message="")), POD),
        (a_memory(), None),
    ],
)
def test_without_admission_or_definition_nothing_starts(memory: PodMemory, pod: Pod | None) -> None:
    plan = look(nothing(), memory, pod)
    assert not plan.actions
    assert plan.reasons


@pytest.mark.parametrize(
    "sandboxes",
    [
        (a_sandbox(ready=False),),
        (a_sandbox(1, ready=False), a_sandbox(0)),
        (a_sandbox(1), a_sandbox(0)),
        (a_sandbox(ips=()),),
        (a_sandbox(host_network=True),),
    ],
)
def test_an_unusable_sandbox_first_ends_all_containers(sandboxes: tuple[object, ...]) -> None:
    runtime = msgspec.structs.replace(a_runtime(running(C)), sandboxes=sandboxes)
    plan = look(runtime)
    assert "Signal" in kinds(plan)
    assert "CreateSandbox" not in kinds(plan)
    assert plan.memory.stops["c-0"].reason == "sandbox"
    assert plan.memory.stops["c-0"].deadline == NOW + 30


def test_a_new_sandbox_comes_only_after_every_ready_one_was_stopped() -> None:
    plan = look(a_runtime(exited(C, 137), sandboxes=(a_sandbox(1), a_sandbox(0))))
    assert kinds(plan)[:3] == ["StopSandbox", "StopSandbox", "CreateSandbox"]
    assert isinstance(plan.actions[2], CreateSandbox)
    assert plan.actions[2].attempt == 2


def test_on_failure_a_new_sandbox_starts_only_what_has_not_succeeded() -> None:
    pod = a_pod(a_container("a"), a_container("b"), restartPolicy="OnFailure")
    a, b = pod.spec.containers
    plan = look(a_runtime(exited(a), exited(b, 1), sandboxes=DEAD_SANDBOX), pod=pod)
    assert [x.name for x in plan.actions if isinstance(x, StartContainer)] == ["b"]


def test_a_finished_pod_needs_no_new_sandbox() -> None:
    for policy, code in (("Never", 1), ("OnFailure", 0)):
        pod = a_pod(restartPolicy=policy)
        assert not look(a_runtime(exited(C, code), sandboxes=DEAD_SANDBOX), pod=pod).actions


def test_a_failed_sandbox_is_tried_again_after_its_wait() -> None:
    waiting = {"POD": Waiting(reason="FailedCreatePodSandBox", message="", at=NOW, retry_at=NOW + 10)}
    plan = look(nothing(), a_memory(waiting=waiting))
    assert (plan.actions, plan.wake_at) == ((), NOW + 10)
    assert kinds(look(nothing(), a_memory(waiting=waiting), now=NOW + 10))[0] == "CreateSandbox"


def test_a_restart_waits_for_its_back_off_and_tells_it_once() -> None:
    memory = a_memory(backoffs={"c": Backoff(delay=20, updated_at=NOW - 30)})
    runtime = a_runtime(exited(C, 1, finished_at=NOW - 5))
    plan = look(runtime, memory)
    assert (plan.actions, plan.wake_at) == ((), NOW + 15)
    assert plan.memory.waiting["c"].reason == "CrashLoopBackOff"
    assert plan.memory.waiting["c"].message.endswith(f"; next try at {rfc3339(NOW + 15)}")
    assert [e.reason for e in plan.events] == ["Exited", "BackOff"]
    assert plan.events[1].message.endswith("; next try in 15s")
    again = look(runtime, plan.memory, now=NOW + 1)
    assert "BackOff" not in [e.reason for e in again.events]
    assert again.wake_at == NOW + 15


def test_a_restart_that_is_due_carries_the_next_delay() -> None:
    memory = a_memory(backoffs={"c": Backoff(delay=20, updated_at=NOW - 30)})
    plan = look(a_runtime(exited(C, 1, finished_at=NOW - 20)), memory)
    (start,) = [x for x in plan.actions if isinstance(x, StartContainer)]
    assert (start.attempt, start.backoff) == (1, Backoff(delay=40, updated_at=NOW))
    assert plan.memory.backoffs == memory.backoffs, "only a start that was tried counts"


def test_a_changed_definition_ends_the_container_with_its_grace() -> None:
    plan = look(a_runtime(running(C, hash="old")))
    assert kinds(plan) == ["Signal"]
    assert plan.events[0].message == "Container c definition changed, will be restarted"
    assert plan.memory.stops["c-0"] == Stop(deadline=NOW + 30, reason="definition", begun_at=NOW)


def test_a_container_without_a_hash_is_left_alone() -> None:
    assert not look(a_runtime(running(C, hash=""))).actions


def test_a_container_in_a_lost_sandbox_is_replaced() -> None:
    runtime = a_runtime(running(C), sandboxes=(a_sandbox(1), a_sandbox(0, ready=False)))
    plan = look(runtime)
    assert kinds(plan) == ["Signal", "RemoveSandbox"]
    assert plan.memory.stops["c-0"].reason == "sandbox"


def test_one_left_created_is_adopted_where_it_fits() -> None:
    fitting = running(C, attempt=3, state="created", started_at=None)
    assert kinds(look(a_runtime(fitting))) == ["PullImage", "StartContainer"]
    assert look(a_runtime(fitting)).actions[1] == StartContainer(name="c", attempt=3, reason="Container c is created")


@pytest.mark.parametrize("change", [{"hash": "old"}, {"sandbox_id": "gone"}])
def test_one_left_created_that_does_not_fit_goes_first(change: dict[str, str]) -> None:
    left = msgspec.structs.replace(running(C, state="created", started_at=None), **change)
    plan = look(a_runtime(left))
    assert kinds(plan) == ["RemoveContainer", "PullImage", "StartContainer"]


def test_one_in_an_unknown_state_goes_and_the_next_attempt_starts() -> None:
    plan = look(a_runtime(running(C, state="unknown", attempt=1)))
    assert kinds(plan) == ["RemoveContainer", "PullImage", "StartContainer"]
    assert isinstance(plan.actions[2], StartContainer)
    assert plan.actions[2].attempt == 2


def test_an_invalid_image_is_told_without_asking_anybody() -> None:
    plan = look(a_runtime(), pod=a_pod(a_container(image="UPPER")))
    assert not plan.actions
    assert plan.memory.waiting["c"].reason == "InvalidImageName"
    assert [e.reason for e in plan.events] == ["InspectFailed", "Failed"]


def test_older_dead_instances_and_sandboxes_go() -> None:
    runtime = a_runtime(
        running(C, attempt=3, sandbox_id="sandbox-2"),
        exited(C, 1, 2),
        exited(C, 1, 1),
        exited(C, 1, 0),
        sandboxes=(a_sandbox(2), a_sandbox(1, ready=False), a_sandbox(0, ready=False)),
    )
    plan = look(runtime)
    removed = [x.container_id for x in plan.actions if isinstance(x, RemoveContainer)]
    gone = [x.sandbox_id for x in plan.actions if isinstance(x, RemoveSandbox)]
    assert (removed, gone) == (["c-1", "c-0"], ["sandbox-1", "sandbox-0"])


def test_a_pod_that_ran_to_its_end_loses_only_its_sandboxs_process() -> None:
    plan = look(a_runtime(exited(C, 1)), pod=a_pod(restartPolicy="Never"))
    assert plan.actions == (StopSandbox(sandbox_id="sandbox-0", reason="The pod has finished"),)


# -- ending


def test_a_stop_is_planned_before_it_is_carried_out() -> None:
    plan = look(a_runtime(running(C)), a_memory(termination=ENDING))
    assert plan.actions == (Signal(container_id="c-0", name="c", signal="", reason=f"Stopping container c: {GONE}"),)
    assert plan.memory.stops["c-0"] == Stop(deadline=NOW + 30, reason="terminating", begun_at=NOW)
    again = look(a_runtime(running(C)), plan.memory, now=NOW + 1)
    assert kinds(again) == ["Signal"], "until the signal is known to be sent"
    assert not again.events


def test_between_signal_and_deadline_it_waits() -> None:
    stops = {"c-0": Stop(deadline=NOW + 30, reason="terminating", signalled_at=NOW)}
    plan = look(a_runtime(running(C)), a_memory(termination=ENDING, stops=stops), now=NOW + 1)
    assert (plan.actions, plan.wake_at) == ((), NOW + 30)


def test_at_the_deadline_it_is_killed_and_again_ten_seconds_later() -> None:
    stop = Stop(deadline=NOW + 30, reason="terminating", signalled_at=NOW)
    memory = a_memory(termination=ENDING, stops={"c-0": stop})
    plan = look(a_runtime(running(C)), memory, now=NOW + 30)
    assert isinstance(plan.actions[0], Kill)
    assert plan.wake_at == NOW + 40
    killed = a_memory(termination=ENDING, stops={"c-0": msgspec.structs.replace(stop, killed_at=NOW + 30)})
    assert not look(a_runtime(running(C)), killed, now=NOW + 31).actions
    assert kinds(look(a_runtime(running(C)), killed, now=NOW + 40)) == ["Kill"]


def test_an_orphan_ends_without_a_definition() -> None:
    plan = look(a_runtime(running(C)), a_memory(termination=ENDING), pod=None)
    assert kinds(plan) == ["Signal"]


def test_once_all_have_ended_everything_goes_the_oldest_first() -> None:
    runtime = a_runtime(exited(C, 143, 1), exited(C, 1, 0))
    plan = look(runtime, a_memory(termination=ENDING), now=NOW + 3)
    assert kinds(plan) == ["RemoveContainer", "RemoveContainer", "RemoveSandbox"]
    assert isinstance(plan.actions[0], RemoveContainer)
    assert plan.actions[0].container_id == "c-0"
    assert plan.memory.terminated_at == NOW + 3
    assert look(nothing(), plan.memory, now=NOW + 4).actions == ()


def test_a_container_found_late_still_gets_two_seconds() -> None:
    memory = look(a_runtime(running(C)), a_memory(termination=ENDING), now=NOW + 100).memory
    stops = {"c-0": msgspec.structs.replace(memory.stops["c-0"], signalled_at=NOW + 100)}
    plan = look(a_runtime(running(C)), msgspec.structs.replace(memory, stops=stops), now=NOW + 101)
    assert (kinds(plan), plan.wake_at) == ([], NOW + 102)


def test_a_termination_shortens_a_stop_that_was_under_way_for_another_reason() -> None:
    stops = {"c-0": Stop(deadline=NOW + 300, reason="definition", signalled_at=NOW - 1)}
    plan = look(a_runtime(running(C)), a_memory(termination=ENDING, stops=stops))
    assert plan.memory.stops["c-0"].deadline == NOW + 30
    assert plan.wake_at == NOW + 30


def test_stops_of_containers_that_are_gone_are_forgotten() -> None:
    stops = {"gone": Stop(deadline=NOW, reason="definition")}
    assert not look(a_runtime(running(C)), a_memory(stops=stops)).memory.stops
