"""What holds for the statuses of a pod over its whole life, whatever the engine shows from look to look (lifecycle 2.1,
4)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from services.podworker.core.generate import generate_status
from services.podworker.core.model import (
    Failure,
    PodMemory,
    PostStart,
    RuntimeContainer,
    Termination,
    Verdicts,
    Waiting,
)
from shared.kube.pod import Container, Pod
from shared.kube.status import ContainerStatus, PodStatus
from shared.kube.times import parse_rfc3339
from tests.support.builders import (
    NODE_IP,
    NOW,
    a_container,
    a_memory,
    a_pod,
    a_runtime,
    a_sandbox,
    cannot_run,
    exited,
    running,
    stored,
)

PROBE = {"exec": {"command": ["true"]}}
INIT = [a_container("i"), a_container("s", restartPolicy="Always", startupProbe=PROBE)]
REGULAR = [
    a_container("c", readinessProbe=PROBE),
    a_container("d", lifecycle={"postStart": {"exec": {"command": ["true"]}}}, restartPolicy="OnFailure"),
]
NAMES = ("i", "s", "c", "d")
LOOKS = 8


def instance(spec: Container, kind: str, attempt: int) -> RuntimeContainer:
    match kind:
        case "runs":
            return running(spec, attempt)
        case "created" | "unknown":
            return running(spec, attempt, state=kind, started_at=None)
        case "refused":
            return cannot_run(spec, attempt)
        case _:
            return exited(spec, int(kind), attempt)


looks = st.lists(
    st.fixed_dictionaries(
        {
            "kinds": st.fixed_dictionaries(
                {
                    name: st.sampled_from(["", "runs", "created", "unknown", "refused", "0", "1", "137"])
                    for name in NAMES
                }
            ),
            "newer": st.sets(st.sampled_from(NAMES)),
            "keeps_older": st.booleans(),
            "sandbox": st.booleans(),
            "verdicts": st.sampled_from(["", "success", "failure"]),
            "hook": st.sampled_from(["", "running", "done", "failed"]),
            "waiting": st.sampled_from(["", "CrashLoopBackOff", "ErrImagePull"]),
            "seconds": st.integers(0, 100),
        }
    ),
    min_size=1,
    max_size=LOOKS,
)


def life(pod: Pod, seen: list[dict[str, Any]], end: str, source: str) -> list[tuple[PodMemory, PodStatus, PodStatus]]:
    """(memory, its status, the same generated again) after each look; at the last but one the pod fails or is told to
    end."""
    specs = {c.name: c for c in (*pod.spec.init_containers, *pod.spec.containers)}
    attempts = dict.fromkeys(NAMES, 0)
    memory, now, statuses = a_memory(pod, source=source), NOW, []
    for number, look in enumerate(seen):
        now += look["seconds"]
        found: list[RuntimeContainer] = []
        for name in NAMES:
            attempts[name] += name in look["newer"]
            kind = look["kinds"][name]
            if kind:
                found.append(instance(specs[name], kind, attempts[name]))
                if look["keeps_older"] and attempts[name]:
                    found.append(exited(specs[name], 1, attempts[name] - 1))
        ids = [container.id for container in found]
        memory = msgspec.structs.replace(
            memory,
            verdicts={key: Verdicts(startup=look["verdicts"], readiness=look["verdicts"]) for key in ids},
            post_starts={key: PostStart(state=look["hook"]) for key in ids},
            waiting={"c": Waiting(reason=look["waiting"], message="", at=now)} if look["waiting"] else {},
            restarts=dict(attempts),
        )
        if end == "failed" and number == len(seen) - 2:
            memory = msgspec.structs.replace(memory, failure=Failure(reason="DeadlineExceeded", message="m"))
        if end == "ended" and number >= len(seen) - 2:
            over = NOW if number == len(seen) - 1 else None
            termination = Termination(at=NOW, grace=1, reason="deleted")
            memory = msgspec.structs.replace(memory, termination=termination, terminated_at=over)
        runtime = a_runtime(*found, sandboxes=(a_sandbox(ready=look["sandbox"]),))
        memory = stored(pod, memory, runtime, now)
        assert memory.status is not None
        again = generate_status(pod, memory, runtime, node_ip=NODE_IP, now=now + 1000)
        statuses.append((memory, memory.status, again))
    return statuses


lives = given(
    policy=st.sampled_from(["Always", "OnFailure", "Never"]),
    seen=looks,
    end=st.sampled_from(["", "failed", "ended"]),
    source=st.sampled_from(["file", "api"]),
)


@lives
@settings(max_examples=60, deadline=None)
def test_a_pods_life_goes_one_way(policy: str, seen: list[dict[str, Any]], end: str, source: str) -> None:
    """The start time stays, terminal phases and their causes too, what was initialized stays initialized; a condition's
    time moves exactly when its status does."""
    pod = a_pod(*REGULAR, restartPolicy=policy, initContainers=INIT)
    statuses = [status for _, status, _ in life(pod, seen, end, source)]
    for before, after in pairwise(statuses):
        assert after.start_time == before.start_time
        if before.phase in ("Succeeded", "Failed"):
            assert (after.phase, after.reason, after.message) == (before.phase, before.reason, before.message)
        earlier = {c.type: c for c in before.conditions}
        for condition in after.conditions:
            old = earlier[condition.type]
            moved = parse_rfc3339(condition.last_transition_time) - parse_rfc3339(old.last_transition_time)
            assert moved >= 0
            assert moved == 0 or condition.status != old.status
        if earlier["Initialized"].status == "True":
            assert after.condition("Initialized") is not None
            assert {c.type: c.status for c in after.conditions}["Initialized"] == "True"


@lives
@settings(max_examples=60, deadline=None)
def test_each_status_agrees_with_itself(policy: str, seen: list[dict[str, Any]], end: str, source: str) -> None:
    """One state per container; ready only when started; a pod is Ready only when it runs and all of it is ready; a
    terminal one is never; at the end of an API pod the phase is terminal and nothing seems to run."""
    pod = a_pod(*REGULAR, restartPolicy=policy, initContainers=INIT)
    for memory, status, again in life(pod, seen, end, source):
        shown = [*status.init_container_statuses, *status.container_statuses]
        assert [s.name for s in shown] == ["i", "s", "c", "d"]
        for one in shown:
            _check_container(one)
        conditions = {c.type: c.status for c in again.conditions}
        if status.phase not in ("Succeeded", "Failed"):  # the look after that settles what never ended
            assert {c.type: c.status for c in status.conditions} == conditions
        if conditions["Ready"] == "True":
            assert status.phase == "Running" or _is_pending_init(status)
            assert all(one.ready for one in shown if one.name != "i")
        if status.phase in ("Succeeded", "Failed"):
            assert conditions["Ready"] == conditions["ContainersReady"] == "False"
        if memory.terminated_at is not None and source == "api":
            assert status.phase in ("Succeeded", "Failed")
        if memory.failure is not None and end == "failed":
            assert status.phase in ("Succeeded", "Failed")


def _check_container(one: ContainerStatus) -> None:
    states = [one.state.waiting, one.state.running, one.state.terminated]
    assert sum(state is not None for state in states) == 1
    assert one.last_state.running is None
    if one.name == "i":
        assert one.ready == (one.state.terminated is not None and one.state.terminated.exit_code == 0)
        return
    assert one.started or not one.ready
    assert one.state.running is not None or not one.started
    last, end = one.last_state.terminated, one.state.terminated
    if end is not None and last is not None and end.container_id:
        assert last.container_id != end.container_id


def _is_pending_init(status: PodStatus) -> bool:
    """A plain init container that runs again: the API's phase goes by it, whatever else is ready."""
    init = status.init_container_statuses[0]
    return status.phase == "Pending" and init.state.terminated is None
