"""A pod's way from its first sight to its end (lifecycle 2.1)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.podworker.core.actions import compute_pod_actions
from services.podworker.core.model import Backoff, Rejection, Stop, Termination, Waiting
from services.podworker.core.state import (
    adopt,
    begin_termination,
    is_finished,
    merge_update,
    nothing_of,
    readmit,
    rebase,
    sync_state,
)
from shared.contracts.pods import PodDesired
from shared.kube.status import PodStatus
from tests.support.builders import (
    NOW,
    UID,
    a_container,
    a_memory,
    a_pod,
    a_runtime,
    a_sandbox,
    exited,
    nothing,
    running,
)

C = a_pod().spec.containers[0]
ENDING = Termination(at=NOW, grace=30, reason="removed")
FAILED = PodStatus(phase="Failed", qos_class="BestEffort")


def desired(gen: int = 1, **fields: Any) -> PodDesired:
    values: dict[str, Any] = {
        "v": 1,
        "node": "n",
        "ts": NOW,
        "uid": UID,
        "namespace": "default",
        "name": "p-node1",
        "source": "file",
        "gen": gen,
        "hash": "h",
        "seen": NOW - 5,
        "body": msgspec.Raw(b"{}"),
        **fields,
    }
    return PodDesired(**values)


def test_a_new_pod_waits_for_admission() -> None:
    memory = merge_update(None, desired(3))
    assert (memory.uid, memory.gen, memory.seen_at, memory.source) == (UID, 3, NOW - 5, "file")
    assert sync_state(memory, nothing_of(memory)) == "waiting"


def test_a_newer_version_is_taken_over_and_an_older_one_is_not() -> None:
    memory = a_memory(gen=5, hash="old", restarts={"c": 2})
    newer = merge_update(memory, desired(6, hash="new"))
    assert (newer.gen, newer.hash, newer.restarts) == (6, "new", {"c": 2})
    assert merge_update(memory, desired(4, hash="new")) is memory


def test_a_terminating_pod_ignores_updates() -> None:
    memory = a_memory(gen=1, termination=ENDING)
    assert merge_update(memory, desired(9)) is memory


def test_the_states_follow_each_other() -> None:
    admitted = a_memory()
    assert sync_state(admitted, a_runtime(running(C))) == "sync"
    ending = a_memory(termination=ENDING)
    assert sync_state(ending, a_runtime(running(C))) == "terminating"
    ended = a_memory(termination=ENDING, terminated_at=NOW)
    assert sync_state(ended, a_runtime(exited(C))) == "terminated"
    assert sync_state(ended, nothing()) == "finished"
    assert sync_state(a_memory(admitted=False, rejection=Rejection(reason="R", message="")), nothing()) == ("finished")


def test_a_pod_has_finished_when_its_phase_is_terminal_and_nothing_runs() -> None:
    memory = a_memory(status=FAILED)
    assert not is_finished(memory, a_runtime(running(C)))
    assert not is_finished(memory, a_runtime(exited(C)))
    assert is_finished(memory, a_runtime(exited(C), sandboxes=(a_sandbox(ready=False),)))
    assert not is_finished(a_memory(), nothing())


def test_a_termination_gives_at_least_a_second() -> None:
    assert begin_termination(a_memory(), NOW, 0, "removed").termination == Termination(
        at=NOW, grace=1, reason="removed"
    )


def test_a_longer_grace_changes_nothing_and_a_shorter_one_moves_every_deadline() -> None:
    stops = {"x": Stop(deadline=NOW + 30, reason="terminating", signalled_at=NOW)}
    memory = a_memory(termination=ENDING, stops=stops)
    assert begin_termination(memory, NOW + 1, 60, "deleted") is memory
    assert begin_termination(memory, NOW + 26, 5, "deleted") is memory
    shorter = begin_termination(memory, NOW + 10, 4, "deleted")
    assert shorter.termination == Termination(at=NOW, grace=14, reason="removed")
    assert shorter.stops["x"].deadline == NOW + 14


@given(st.lists(st.tuples(st.floats(0, 50), st.integers(0, 100)), min_size=1, max_size=10))
def test_the_end_of_the_grace_never_moves_later(requests: list[tuple[float, int]]) -> None:
    memory, now, end = a_memory(), NOW, float("inf")
    for pause, grace in requests:
        now += pause
        memory = begin_termination(memory, now, grace, "deleted")
        assert memory.termination is not None
        assert memory.termination.at + memory.termination.grace <= end
        end = memory.termination.at + memory.termination.grace


def test_a_rejected_static_pod_is_judged_again_and_any_other_is_not() -> None:
    rejection = Rejection(reason="NodePorts", message="")
    rejected = a_memory(admitted=False, rejection=rejection, status=FAILED, started_at=NOW)
    again = readmit(rejected)
    assert (again.rejection, again.status, again.started_at) == (None, None, NOW)
    of_api = msgspec.structs.replace(rejected, source="api")
    assert readmit(of_api) is of_api
    ran = msgspec.structs.replace(rejected, restarts={"c": 0})
    assert readmit(ran) is ran
    failed = a_memory(status=FAILED)
    assert readmit(failed) is failed


FULL = a_memory(
    started_at=NOW - 100,
    termination=ENDING,
    stops={"c-0": Stop(deadline=NOW + 30, reason="terminating", signalled_at=NOW, killed_at=NOW + 30)},
    backoffs={"c": Backoff(delay=20, updated_at=NOW)},
    image_backoffs={"x:1": Backoff(delay=20, updated_at=NOW, error="e")},
    waiting={"c": Waiting(reason="R", message="", at=NOW, retry_at=NOW + 10)},
)


def test_rebasing_moves_what_is_counted_from_and_nothing_else() -> None:
    moved = rebase(FULL, 1000.0)
    assert moved.started_at == NOW - 100
    assert moved.stops["c-0"] == Stop(
        deadline=NOW + 1030, reason="terminating", signalled_at=NOW + 1000, killed_at=NOW + 1030
    )
    assert moved.waiting["c"].retry_at == NOW + 1010
    assert moved.image_backoffs["x:1"].error == "e"


@pytest.mark.parametrize("delta", [0.0, 3600.0, -3600.0])
def test_rebasing_there_and_back_changes_nothing(delta: float) -> None:
    assert rebase(rebase(FULL, delta), -delta) == FULL


@pytest.mark.parametrize("delta", [3600.0, -3600.0])
def test_what_remains_of_a_deadline_remains(delta: float) -> None:
    memory = begin_termination(a_memory(), NOW, 30, "removed")
    memory = compute_pod_actions(a_pod(), memory, a_runtime(running(C)), now=NOW).memory
    moved = rebase(memory, delta)
    assert moved.stops["c-0"].deadline - (NOW + 10 + delta) == 20


def test_a_pod_whose_row_was_lost_is_taken_over_as_it_runs() -> None:
    """Its containers have had their postStart hooks: a lost database doesn't run them again."""
    pod = a_pod(a_container(lifecycle={"postStart": {"exec": {"command": ["x"]}}}))
    shown = a_runtime(running(pod.spec.containers[0]))
    memory = adopt(a_memory(pod, admitted=False), shown, NOW)
    assert (memory.admitted, memory.started_at) == (True, a_sandbox().created_at)
    plan = compute_pod_actions(pod, memory, shown, now=NOW)
    assert (plan.actions, plan.hooks) == ((), ())
