"""Whose place a critical pod takes, as the kubelet chooses; what becomes of those."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.podworker.core.admission import Demand, NodeLimits, Usage, judge, lacking
from services.podworker.core.demand import demand_of
from services.podworker.core.generate import generate_status
from services.podworker.core.model import Failure, PodMemory, RuntimePod, Termination
from services.podworker.core.preemption import (
    PREEMPTED,
    SYSTEM_CRITICAL,
    Candidate,
    candidate_of,
    choose_victims,
    is_critical,
    may_preempt,
    preempt,
)
from shared.kube.pod import Pod, decode_pod

LIMITS = NodeLimits(cpu_milli=1000, memory_bytes=1000, pods=3)
FULL = Usage(pods=3, cpu_milli=900, memory_bytes=900)


def pod(**spec: Any) -> Pod:
    body = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}], **spec}}
    return decode_pod(msgspec.json.encode(body))


def a_candidate(uid: str, cpu: int = 0, memory: int = 0, **more: Any) -> Candidate:
    return Candidate(uid=uid, asks={"cpu": cpu, "memory": memory, "pods": 1}, **more)


def chosen(lacks: dict[str, int], *candidates: Candidate, priority: int | None = None) -> tuple[str, ...]:
    victims, unmet = choose_victims(lacks, priority, candidates)
    assert not unmet
    return victims


def memory(**more: Any) -> PodMemory:
    return PodMemory(uid="u", namespace="default", name="a", source="api", admitted=True, **more)


# -- who is critical, and who may preempt whom --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("priority", "source", "critical"),
    [
        (None, "file", True),
        (None, "http", True),
        (None, "api", False),
        (SYSTEM_CRITICAL - 1, "api", False),
        (SYSTEM_CRITICAL, "api", True),
    ],
)
def test_static_pods_and_those_of_system_priority_are_critical(
    priority: int | None, source: str, critical: bool
) -> None:
    assert is_critical(pod(priority=priority), source) is critical


@pytest.mark.parametrize(
    ("priority", "other", "may"),
    [
        (None, a_candidate("x"), True),
        (5, a_candidate("x", priority=9), True),
        (None, a_candidate("x", is_critical=True), False),
        (5, a_candidate("x", is_critical=True, priority=5), False),
        (6, a_candidate("x", is_critical=True, priority=5), True),
        (6, a_candidate("x", is_critical=True), False),
    ],
)
def test_a_critical_pod_preempts_those_that_are_not_or_have_less_priority(
    priority: int | None, other: Candidate, may: bool
) -> None:
    assert may_preempt(priority, other) is may


# -- when ---------------------------------------------------------------------------------------------------------


def demand(given_pod: Pod, **more: Any) -> Demand:
    return msgspec.structs.replace(demand_of(given_pod), cpu_milli=200, **more)


def test_only_a_critical_pod_that_lacks_nothing_but_room_preempts() -> None:
    critical = demand(pod(priority=SYSTEM_CRITICAL))
    assert lacking(critical, LIMITS, FULL, "api") == {"pods": 1, "cpu": 100}
    assert lacking(demand(pod()), LIMITS, FULL, "file") == {"pods": 1, "cpu": 100}
    assert lacking(demand(pod()), LIMITS, FULL, "api") == {}
    assert lacking(msgspec.structs.replace(critical, is_misplaced=True), LIMITS, FULL, "api") == {}
    assert lacking(critical, LIMITS, Usage(), "api") == {}


def test_another_pod_of_the_api_is_told_what_it_lacks() -> None:
    """34"""
    found = judge(demand(pod()), LIMITS, Usage(cpu_milli=900), "api")
    assert found is not None
    assert (found.reason, found.message) == (
        "OutOfcpu",
        "Node didn't have enough resource: cpu, requested: 200, used: 900, capacity: 1000",
    )
    one_more = judge(demand(pod()), LIMITS, Usage(pods=3), "api")
    assert one_more is not None
    assert (one_more.reason, one_more.message) == (
        "OutOfpods",
        "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
    )


def test_a_critical_pod_for_which_nobody_can_go_says_so() -> None:
    found = judge(demand(pod(priority=SYSTEM_CRITICAL)), LIMITS, FULL, "api")
    assert found is not None
    assert found.reason == "UnexpectedAdmissionError"
    assert found.message.endswith(
        "preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: "
        "[(res: pods, q: 1), (res: cpu, q: 100), ]"
    )


# -- whom ---------------------------------------------------------------------------------------------------------


def test_a_lower_class_goes_before_a_higher_one() -> None:
    best, burst, guaranteed = (
        a_candidate("b"),
        a_candidate("u", cpu=100, qos="Burstable"),
        a_candidate("g", cpu=500, qos="Guaranteed"),
    )
    assert chosen({"pods": 1}, guaranteed, burst, best) == ("b",)
    assert chosen({"cpu": 100}, guaranteed, burst, best) == ("u",)
    assert chosen({"cpu": 300}, guaranteed, burst, best) == ("g",)
    assert chosen({"cpu": 600}, guaranteed, burst, best) == ("u", "g")


def test_within_a_class_the_one_that_leaves_least_lacking_goes_and_of_equals_the_smaller() -> None:
    small, large = a_candidate("s", cpu=100, qos="Burstable"), a_candidate("l", cpu=300, qos="Burstable")
    assert chosen({"cpu": 250}, small, large) == ("l",)
    assert chosen({"cpu": 100}, large, small) == ("s",)
    more_memory = a_candidate("m", cpu=100, memory=5, qos="Burstable")
    assert chosen({"cpu": 50}, more_memory, large) == ("l",)  # memory is looked at before cpu


def test_without_a_sufficient_set_nobody_goes() -> None:
    assert choose_victims({"cpu": 100, "pods": 1}, None, [a_candidate("a", cpu=40)]) == ((), {"cpu": 60})
    assert choose_victims({"cpu": 10}, None, [a_candidate("a", cpu=40, is_critical=True)]) == ((), {"cpu": 10})


def test_those_that_were_preempted_before_are_waited_for_first() -> None:
    going = a_candidate("g", cpu=100, is_going=True)
    assert chosen({"cpu": 100}, going, a_candidate("a", cpu=100)) == ("g",)
    assert chosen({"cpu": 150}, going, a_candidate("a", cpu=100)) == ("g", "a")


def test_one_that_ends_for_another_reason_is_not_preempted() -> None:
    assert choose_victims({"cpu": 10}, None, [a_candidate("a", cpu=40, is_ending=True)]) == ((), {"cpu": 10})


candidates = st.lists(
    st.builds(
        a_candidate,
        st.uuids().map(str),
        cpu=st.integers(0, 50),
        memory=st.integers(0, 50),
        qos=st.sampled_from(["BestEffort", "Burstable", "Guaranteed"]),
        is_critical=st.booleans(),
        is_going=st.booleans(),
    ),
    max_size=8,
)
lack = st.dictionaries(st.sampled_from(["cpu", "memory", "pods"]), st.integers(1, 90), min_size=1)


@given(lack, candidates)
def test_the_victims_suffice_and_none_is_critical(lacks: dict[str, int], given_pods: list[Candidate]) -> None:
    victims, unmet = choose_victims(lacks, None, given_pods)
    gone = [one for one in given_pods if one.uid in victims]
    if unmet:
        assert not victims
        return
    assert all(sum(one.asks[name] for one in gone) >= amount for name, amount in lacks.items())
    assert all(one.is_going or not one.is_critical for one in gone)


@given(lack, candidates)
def test_the_order_of_the_candidates_does_not_matter(lacks: dict[str, int], given_pods: list[Candidate]) -> None:
    one, other = (choose_victims(lacks, None, pods) for pods in (given_pods, given_pods[::-1]))
    assert (sorted(one[0]), one[1]) == (sorted(other[0]), other[1])


# -- what becomes of them -----------------------------------------------------------------------------------------


def test_a_preempted_pod_fails_with_the_kubelets_words() -> None:
    before = memory()
    after, events = preempt(pod(), before, RuntimePod(uid="u", namespace="default", name="a"))
    assert [(event.type, event.reason, event.message) for event in events] == [
        ("Warning", "Preempting", "Preempted in order to admit critical pod")
    ]
    status = generate_status(
        pod(), after, RuntimePod(uid="u", namespace="default", name="a"), node_ip="10.0.0.1", now=5.0
    )
    assert (status.phase, status.reason, status.message) == (
        "Failed",
        "Preempting",
        "Preempted in order to admit critical pod",
    )
    assert [(c.type, c.reason) for c in status.conditions if c.type == "DisruptionTarget"] == [
        ("DisruptionTarget", "TerminationByKubelet")
    ]


@pytest.mark.parametrize(
    "before",
    [
        memory(termination=Termination(at=1.0, grace=5, reason="deleted")),
        memory(failure=Failure(reason="DeadlineExceeded", message="")),
        msgspec.structs.replace(memory(), admitted=False),
        memory(failure=PREEMPTED),
    ],
)
def test_one_that_ends_anyway_stays_as_it_is(before: PodMemory) -> None:
    assert preempt(pod(), before, RuntimePod(uid="u", namespace="default", name="a")) == (before, [])


def test_what_a_row_tells_of_a_candidate() -> None:
    asks = {"cpu": 5, "memory": 6}
    found = candidate_of(pod(priority=7), memory(), asks)
    assert found == Candidate(uid="u", asks={**asks, "pods": 1}, priority=7)
    assert candidate_of(pod(), memory(failure=PREEMPTED), asks).is_going
    assert candidate_of(pod(), memory(termination=Termination(at=1.0, grace=5, reason="deleted")), asks).is_ending
