"""Which probes run, what their results amount to, and when they are due (lifecycle 5)."""

from __future__ import annotations

from typing import Any

import pytest

from services.podworker.core.model import Failure, PodMemory, PostStart, RuntimePod, Stop, Termination, Verdicts
from services.podworker.core.probe_checks import TcpCheck
from services.podworker.core.probe_schedule import asks_at_once, first_tick, next_tick
from services.podworker.core.probes import (
    Found,
    ProbeKind,
    Streak,
    WantedProbe,
    count,
    wanted_probes,
    with_verdict,
    with_verdicts,
)
from shared.kube.pod import Pod, Probe
from tests.support.builders import NODE_IP, NOW, POD_IP, a_container, a_memory, a_pod, a_runtime, exited, running

TCP: dict[str, Any] = {"tcpSocket": {"port": 80}}
ALL: dict[str, Any] = {"startupProbe": TCP, "livenessProbe": TCP, "readinessProbe": TCP}


def of(pod: Pod, memory: PodMemory, runtime: RuntimePod) -> set[tuple[str, str]]:
    return set(wanted_probes(pod, memory, runtime, NODE_IP))


def started(pod: Pod, **fields: Any) -> tuple[RuntimePod, str]:
    """The pod's first container runs; (what the engine shows, its id)."""
    instance = running(pod.spec.containers[0], **fields)
    return a_runtime(instance), instance.id


# -- which


def test_nothing_is_probed_before_the_container_runs() -> None:
    pod = a_pod(a_container(**ALL))
    assert of(pod, a_memory(pod), a_runtime()) == set()


def test_nothing_is_probed_once_the_container_has_exited() -> None:
    pod = a_pod(a_container(**ALL))
    runtime = a_runtime(exited(pod.spec.containers[0]))
    assert of(pod, a_memory(pod), runtime) == set()


def test_nothing_is_probed_before_the_post_start_hook_has_succeeded() -> None:
    pod = a_pod(a_container(readinessProbe=TCP, lifecycle={"postStart": {"exec": {"command": ["x"]}}}))
    runtime, id_ = started(pod)
    assert of(pod, a_memory(pod, post_starts={id_: PostStart(state="running")}), runtime) == set()
    assert of(pod, a_memory(pod, post_starts={id_: PostStart(state="done")}), runtime) == {("c", "readiness")}


def test_before_startup_has_succeeded_only_that_is_asked() -> None:
    pod = a_pod(a_container(**ALL))
    runtime, _ = started(pod)
    assert of(pod, a_memory(pod), runtime) == {("c", "startup")}


def test_once_started_the_startup_probe_rests_and_the_others_run() -> None:
    pod = a_pod(a_container(**ALL))
    runtime, id_ = started(pod)
    memory = a_memory(pod, verdicts={id_: Verdicts(startup="success")})
    assert of(pod, memory, runtime) == {("c", "liveness"), ("c", "readiness")}


def test_without_a_startup_probe_a_running_container_has_started() -> None:
    pod = a_pod(a_container(livenessProbe=TCP, readinessProbe=TCP))
    runtime, _ = started(pod)
    assert of(pod, a_memory(pod), runtime) == {("c", "liveness"), ("c", "readiness")}


def test_a_container_whose_startup_has_failed_is_not_asked_any_more() -> None:
    pod = a_pod(a_container(**ALL))
    runtime, id_ = started(pod)
    assert of(pod, a_memory(pod, verdicts={id_: Verdicts(startup="failure")}), runtime) == set()


def test_liveness_is_on_hold_after_its_failure_until_there_is_a_new_container() -> None:
    pod = a_pod(a_container(livenessProbe=TCP, readinessProbe=TCP))
    runtime, id_ = started(pod)
    memory = a_memory(pod, verdicts={id_: Verdicts(liveness="failure")})
    assert of(pod, memory, runtime) == {("c", "readiness")}
    again, _ = started(pod, attempt=1, id="c-1")
    assert of(pod, memory, again) == {("c", "liveness"), ("c", "readiness")}


@pytest.mark.parametrize(
    "ending",
    [
        {"termination": Termination(at=NOW, grace=30, reason="removed")},
        {"failure": Failure(reason="DeadlineExceeded", message="")},
    ],
)
def test_during_termination_only_readiness_is_asked(ending: dict[str, Any]) -> None:
    pod = a_pod(a_container(livenessProbe=TCP, readinessProbe=TCP), a_container("s", startupProbe=TCP))
    instances = tuple(running(c) for c in pod.spec.containers)
    runtime = a_runtime(*instances)
    assert of(pod, a_memory(pod, **ending), runtime) == {("c", "readiness")}


def test_a_container_that_was_told_to_end_is_asked_for_readiness_only() -> None:
    pod = a_pod(a_container(livenessProbe=TCP, readinessProbe=TCP))
    runtime, id_ = started(pod)
    memory = a_memory(pod, stops={id_: Stop(deadline=NOW + 30, reason="definition")})
    assert of(pod, memory, runtime) == {("c", "readiness")}


def test_sidecars_are_probed_and_plain_init_containers_are_not() -> None:
    pod = a_pod(
        initContainers=[
            a_container("plain", readinessProbe=TCP),
            a_container("side", restartPolicy="Always", readinessProbe=TCP),
        ]
    )
    instances = tuple(running(c) for c in pod.spec.init_containers)
    assert of(pod, a_memory(pod), a_runtime(*instances)) == {("side", "readiness")}


# -- where


def only(pod: Pod, runtime: RuntimePod, node_ip: str = NODE_IP) -> WantedProbe:
    (wanted,) = wanted_probes(pod, a_memory(pod), runtime, node_ip).values()
    return wanted


def test_the_default_host_is_the_address_of_the_containers_sandbox() -> None:
    pod = a_pod(a_container(readinessProbe=TCP))
    runtime, id_ = started(pod)
    wanted = only(pod, runtime)
    assert (wanted.container_id, wanted.check) == (id_, TcpCheck(host=POD_IP, port=80))


@pytest.mark.parametrize(("node_ip", "host"), [(NODE_IP, NODE_IP), ("", "127.0.0.1")])
def test_on_the_host_network_it_is_the_nodes(node_ip: str, host: str) -> None:
    pod = a_pod(a_container(readinessProbe=TCP), hostNetwork=True)
    runtime, _ = started(pod)
    assert only(pod, runtime, node_ip).check == TcpCheck(host=host, port=80)


def test_the_initial_delay_counts_from_the_containers_start() -> None:
    """P13"""
    pod = a_pod(a_container(readinessProbe={**TCP, "initialDelaySeconds": 8}))
    runtime, _ = started(pod, started_at=NOW)
    assert only(pod, runtime).not_before == NOW + 8


# -- counting


def verdicts_of(outcomes: str, **thresholds: int) -> list[str | None]:
    """s = success, f = failure; the verdict after each."""
    streak, found, probe = Streak(), [], Probe(**thresholds)  # type: ignore[arg-type]
    for one in outcomes:
        streak, verdict = count(streak, "success" if one == "s" else "failure", probe)
        found.append(verdict)
    return found  # type: ignore[return-value]


def test_a_verdict_takes_as_many_equal_results_in_a_row() -> None:
    assert verdicts_of("ffsff" + "f", failure_threshold=3, success_threshold=1) == [
        *(None, None),
        "success",
        *(None, None),
        "failure",
    ]


def test_success_may_take_several_too() -> None:
    assert verdicts_of("ssfss", failure_threshold=1, success_threshold=2) == [
        None,
        "success",
        "failure",
        None,
        "success",
    ]


# -- the memory


@pytest.mark.parametrize(("kind", "verdict"), [("readiness", "failure"), ("liveness", "success")])
def test_what_is_assumed_anyway_is_not_stored(kind: ProbeKind, verdict: Any) -> None:
    memory = a_memory()
    assert with_verdict(memory, Found(container_id="x", kind=kind, verdict=verdict)) is memory


@pytest.mark.parametrize("kind", ["readiness", "liveness", "startup"])
def test_a_verdict_is_stored_once(kind: ProbeKind) -> None:
    found = Found(container_id="x", kind=kind, verdict="failure" if kind == "liveness" else "success")
    memory = with_verdict(a_memory(), found)
    assert memory.verdicts == {"x": Verdicts(**{kind: found.verdict})}
    assert with_verdict(memory, found) is memory


def test_verdicts_of_containers_that_are_gone_are_forgotten() -> None:
    pod = a_pod(a_container(readinessProbe=TCP))
    runtime, id_ = started(pod)
    memory = a_memory(pod, verdicts={"gone": Verdicts(readiness="success")})
    news = [Found(container_id=name, kind="readiness", verdict="success") for name in (id_, "gone")]
    assert with_verdicts(memory, news, runtime).verdicts == {id_: Verdicts(readiness="success")}


# -- when


def test_ticks_are_a_period_apart() -> None:
    assert next_tick(100.0, 10, earliest=100.0, after=float("-inf")) == 100.0
    assert next_tick(100.0, 10, earliest=100.2, after=100.0) == 110.0
    assert next_tick(100.0, 10, earliest=127.0, after=110.0) == 130.0


def test_a_timer_that_fires_a_little_early_makes_no_double_run() -> None:
    assert next_tick(100.0, 10, earliest=109.9999, after=110.0) == 120.0


def test_a_run_that_took_longer_than_the_period_leaves_ticks_out() -> None:
    assert next_tick(100.0, 1, earliest=103.5, after=101.0) == 104.0


def test_a_young_prober_and_a_container_found_running_spread_their_probes() -> None:
    """kubelet: the first sleep is random while it's younger than the period."""
    assert first_tick(100, 10, prober_age=1, is_adopted=False, share=0.5) == 105
    assert first_tick(100, 10, prober_age=3600, is_adopted=True, share=0.5) == 105
    assert first_tick(100, 10, prober_age=3600, is_adopted=False, share=0.5) == 100


def test_a_look_asks_an_unready_container_at_once_but_not_in_a_loop() -> None:
    assert asks_at_once(100.0, earliest=99.0, ended_at=98.0)
    assert not asks_at_once(100.0, earliest=101.0, ended_at=98.0)
    assert not asks_at_once(100.0, earliest=99.0, ended_at=99.5)
