"""ready and started (lifecycle 4.4, 5, 6): by the probes' verdicts, and never before the postStart hook is over."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from services.podworker.core.container_states import all_statuses
from services.podworker.core.model import PodMemory, PostStart, RuntimePod, Verdicts, Waiting
from shared.kube.pod import Pod
from shared.kube.status import ContainerStatus
from tests.support.builders import a_container, a_memory, a_pod, a_runtime, exited, running, stored

PROBE = {"exec": {"command": ["true"]}}
HOOK = {"lifecycle": {"postStart": {"exec": {"command": ["true"]}}}}


def the_status(pod: Pod, memory: PodMemory, runtime: RuntimePod) -> ContainerStatus:
    (status,) = all_statuses(pod, memory, runtime).regular
    return status


def shown(verdicts: Verdicts | None, **fields: Any) -> tuple[bool, bool]:
    """(started, ready) of a running container with these fields."""
    pod = a_pod(a_container("c", **fields))
    memory = a_memory(verdicts={} if verdicts is None else {"c-0": verdicts})
    status = the_status(pod, memory, a_runtime(running(pod.spec.containers[0])))
    return status.started, status.ready


@pytest.mark.parametrize(("readiness", "ready"), [(None, False), ("", False), ("failure", False), ("success", True)])
def test_a_readiness_probe_makes_ready_only_by_a_success(readiness: Any, ready: bool) -> None:
    verdicts = None if readiness is None else Verdicts(readiness=readiness)
    assert shown(verdicts, readinessProbe=PROBE) == (True, ready)


@pytest.mark.parametrize(("startup", "started"), [(None, False), ("", False), ("failure", False), ("success", True)])
def test_a_startup_probe_makes_started_and_without_it_nothing_is_ready(startup: Any, started: bool) -> None:
    verdicts = None if startup is None else Verdicts(startup=startup, readiness="success")
    assert shown(verdicts, startupProbe=PROBE) == (started, started)
    assert shown(verdicts, startupProbe=PROBE, readinessProbe=PROBE) == (started, started)


def test_a_liveness_probe_changes_neither() -> None:
    assert shown(Verdicts(liveness="failure"), livenessProbe=PROBE) == (True, True)
    assert shown(None, livenessProbe=PROBE) == (True, True)


def test_a_verdict_is_that_of_one_instance() -> None:
    pod = a_pod(a_container("c", readinessProbe=PROBE))
    memory = a_memory(verdicts={"c-0": Verdicts(readiness="success")})
    assert not the_status(pod, memory, a_runtime(running(pod.spec.containers[0], attempt=1))).ready
    assert not the_status(pod, memory, a_runtime(exited(pod.spec.containers[0]))).ready


def test_a_sidecar_is_ready_and_started_by_its_probes_and_a_plain_init_container_by_its_exit() -> None:
    sidecar = a_container("s", restartPolicy="Always", startupProbe=PROBE, readinessProbe=PROBE)
    pod = a_pod(initContainers=[sidecar, a_container("i")])
    side, plain = pod.spec.init_containers

    def of(verdicts: Verdicts, instance: Any) -> list[tuple[bool, bool]]:
        memory = a_memory(verdicts={"s-0": verdicts})
        return [(s.started, s.ready) for s in all_statuses(pod, memory, a_runtime(running(side), instance)).init]

    assert of(Verdicts(), running(plain)) == [(False, False), (True, False)]
    assert of(Verdicts(startup="success"), exited(plain)) == [(True, False), (False, True)]
    assert of(Verdicts(startup="success", readiness="success"), exited(plain, 1)) == [(True, True), (False, False)]


@pytest.mark.parametrize("state", [None, "", "running", "failed"])
def test_until_its_post_start_hook_has_succeeded_a_container_waits(state: Any) -> None:
    """H01: the kubelet shows it as Running only then."""
    pod = a_pod(a_container("c", **HOOK))
    runtime = a_runtime(running(pod.spec.containers[0]))
    hooks = {} if state is None else {"c-0": PostStart(state=state, message="exit code 1")}
    status = the_status(pod, a_memory(post_starts=hooks), runtime)
    reason = {"reason": "PostStartHookError", "message": "exit code 1"}
    assert msgspec.to_builtins(status.state) == {
        "waiting": reason if state == "failed" else {"reason": "ContainerCreating"}
    }
    assert (status.started, status.ready) == (False, False)
    done = the_status(pod, a_memory(post_starts={"c-0": PostStart(state="done")}), runtime)
    assert done.state.running
    assert (done.started, done.ready) == (True, True)


def test_with_init_containers_it_is_initializing_meanwhile() -> None:
    pod = a_pod(a_container("c", **HOOK), initContainers=[a_container("i")])
    waiting = the_status(pod, a_memory(), a_runtime(running(pod.spec.containers[0]))).state.waiting
    assert waiting is not None
    assert waiting.reason == "PodInitializing"


def test_what_a_container_waited_for_stays_shown_while_its_post_start_hook_runs() -> None:
    pod = a_pod(a_container("c", **HOOK))
    spec = pod.spec.containers[0]
    waiting = {"c": Waiting(reason="CrashLoopBackOff", message="back-off", at=0)}
    memory = stored(pod, a_memory(waiting=waiting), a_runtime(exited(spec, 1)))
    again = msgspec.structs.replace(memory, waiting={})
    status = the_status(pod, again, a_runtime(running(spec, attempt=1), exited(spec, 1)))
    assert msgspec.to_builtins(status.state) == {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    assert status.last_state.terminated is not None
    assert status.last_state.terminated.exit_code == 1


def test_one_that_ended_during_its_hook_has_ended() -> None:
    pod = a_pod(a_container("c", **HOOK))
    assert the_status(pod, a_memory(), a_runtime(exited(pod.spec.containers[0], 2))).state.terminated
