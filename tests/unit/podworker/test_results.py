"""What comes of actions, in the pod's memory."""

from __future__ import annotations

from services.podworker.core.model import Backoff, Stop, Waiting
from services.podworker.core.plan import (
    CreateSandbox,
    Kill,
    PullImage,
    RemoveContainer,
    Signal,
    StartContainer,
    SyncConfig,
)
from services.podworker.core.results import (
    record_done,
    record_pull_failed,
    record_pull_progress,
    record_sandbox_failed,
    record_start_failed,
)
from tests.support.builders import NOW, a_memory

CONFIG = SyncConfig()
PULL = PullImage(container="c", reference="x:1", policy="IfNotPresent", reason="")
START = StartContainer(name="c", attempt=2, reason="", backoff=Backoff(delay=20, updated_at=NOW))
WAITING = {"c": Waiting(reason="CrashLoopBackOff", message="", at=NOW)}


def test_a_start_counts_and_ends_the_waiting() -> None:
    memory = record_done(a_memory(waiting=WAITING), START, now=NOW)
    assert memory.restarts == {"c": 2}
    assert memory.backoffs == {"c": Backoff(delay=20, updated_at=NOW)}
    assert not memory.waiting


def test_a_refused_start_counts_as_it_left_an_exited_container() -> None:
    memory = record_start_failed(a_memory(), START, "RunContainerError", "no such file", now=NOW, config=CONFIG)
    assert memory.restarts == {"c": 2}
    assert memory.backoffs["c"].delay == 20
    assert memory.waiting["c"] == Waiting(reason="RunContainerError", message="no such file", at=NOW)


def test_a_refused_create_does_not_count_and_waits_ten_seconds() -> None:
    memory = record_start_failed(a_memory(), START, "CreateContainerError", "bad mount", now=NOW, config=CONFIG)
    assert not memory.restarts
    assert not memory.backoffs
    assert memory.waiting["c"].retry_at == NOW + 10


def test_failed_pulls_wait_longer_each_time_and_keep_the_error() -> None:
    memory, now, delays = a_memory(), NOW, []
    for _ in range(6):
        memory = record_pull_failed(memory, PULL, "ErrImagePull", "not found", now=now, config=CONFIG)
        delays.append(memory.image_backoffs["x:1"].delay)
        now += delays[-1]
    assert delays == [10, 20, 40, 80, 160, 300]
    assert memory.image_backoffs["x:1"].error == "ErrImagePull: not found"
    assert (memory.waiting["c"].reason, memory.waiting["c"].message) == ("ErrImagePull", "not found")


def test_two_containers_that_fail_on_one_image_at_once_count_once() -> None:
    other = PullImage(container="d", reference="x:1", policy="IfNotPresent", reason="")
    memory = record_pull_failed(a_memory(), PULL, "ErrImagePull", "a", now=NOW, config=CONFIG)
    memory = record_pull_failed(memory, other, "ErrImagePull", "b", now=NOW + 1, config=CONFIG)
    assert memory.image_backoffs["x:1"] == Backoff(delay=10, updated_at=NOW, error="ErrImagePull: b")
    assert set(memory.waiting) == {"c", "d"}


def test_an_image_that_may_not_be_pulled_has_no_growing_delay() -> None:
    memory = record_pull_failed(a_memory(), PULL, "ErrImageNeverPull", "", now=NOW, config=CONFIG)
    assert not memory.image_backoffs
    assert memory.waiting["c"].retry_at == NOW + 10


def test_a_pull_that_worked_forgets_the_back_off_and_the_progress() -> None:
    memory = record_pull_failed(a_memory(), PULL, "ErrImagePull", "", now=NOW, config=CONFIG)
    memory = record_pull_progress(memory, PULL, 1, 2, now=NOW)
    assert memory.waiting["c"].message == 'Pulling image "x:1": 50 % (0.0/0.0 MiB)'
    memory = record_done(memory, PULL, now=NOW)
    assert not memory.image_backoffs
    assert not memory.waiting


def test_a_pull_that_worked_leaves_a_crash_loops_reason() -> None:
    assert record_done(a_memory(waiting=WAITING), PULL, now=NOW).waiting == WAITING


def test_a_sandbox_that_failed_is_remembered_until_one_is_made() -> None:
    memory = record_sandbox_failed(a_memory(), "FailedCreatePodSandBox", "port", now=NOW, config=CONFIG)
    assert memory.waiting["POD"].retry_at == NOW + 10
    assert not record_done(memory, CreateSandbox(attempt=0, reason=""), now=NOW).waiting


def test_signals_are_dated_in_the_stop_that_they_belong_to() -> None:
    memory = a_memory(stops={"x": Stop(deadline=NOW + 5, reason="terminating")})
    memory = record_done(memory, Signal(container_id="x", name="c", signal="", reason=""), now=NOW)
    assert memory.stops["x"] == Stop(deadline=NOW + 5, reason="terminating", signalled_at=NOW)
    memory = record_done(memory, Kill(container_id="x", name="c", reason=""), now=NOW + 5)
    assert memory.stops["x"].killed_at == NOW + 5
    assert record_done(memory, Kill(container_id="gone", name="c", reason=""), now=NOW) == memory


def test_other_actions_leave_no_trace() -> None:
    memory = a_memory(waiting=WAITING)
    assert record_done(memory, RemoveContainer(container_id="x", name="c", reason=""), now=NOW) == memory
