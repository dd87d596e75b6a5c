"""Taints of the node: only NoExecute counts here, and only for pods of the API."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from services.podworker.core.admission import NodeLimits, NodeTraits, Usage, judge
from services.podworker.core.demand import demand_of
from services.podworker.core.model import Rejection
from services.podworker.core.node_match import tolerates_running
from shared.kube.pod import Pod, decode_pod
from shared.kube.scheduling import Taint

GONE = Taint(key="example.com/gone", value="yes", effect="NoExecute")
LIMITS = NodeLimits(cpu_milli=1000, memory_bytes=1000, pods=3)


def pod(*tolerations: dict[str, Any], **spec: Any) -> Pod:
    body = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}], "tolerations": tolerations, **spec}}
    return decode_pod(msgspec.json.encode(body))


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        ({"key": "example.com/gone", "value": "yes"}, True),
        ({"key": "example.com/gone", "operator": "Equal", "value": "yes", "effect": "NoExecute"}, True),
        ({"key": "example.com/gone", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, False),
        ({"key": "example.com/gone", "value": "no"}, False),
        ({"key": "example.com/other", "operator": "Exists"}, False),
        ({"key": "example.com/gone", "operator": "Gt", "value": "yes"}, False),
    ],
)
def test_what_tolerates_a_taint(toleration: dict[str, Any], tolerates: bool) -> None:
    assert tolerates_running(pod(toleration), [GONE]) is tolerates


def test_each_taint_has_to_be_tolerated_and_those_of_the_scheduler_do_not_count() -> None:
    other = Taint(key="x", effect="NoExecute")
    assert not tolerates_running(pod({"key": "x", "operator": "Exists"}), [other, GONE])
    assert tolerates_running(pod(), [Taint(key="a", effect="NoSchedule"), Taint(key="b", effect="PreferNoSchedule")])


def verdict(source: str, given: Pod, usage: Usage | None = None) -> Rejection | None:
    return judge(demand_of(given, NodeTraits(taints=(GONE,))), LIMITS, usage or Usage(), source)


def test_a_pod_of_the_api_is_refused_and_a_static_one_is_exempt() -> None:
    assert verdict("api", pod()) == Rejection(
        reason="TaintToleration",
        message="Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
    )
    assert verdict("file", pod()) is None
    assert verdict("api", pod({"operator": "Exists"})) is None


def test_the_first_thing_that_is_wrong_is_told() -> None:
    """35"""
    misplaced = verdict("api", pod(nodeSelector={"disk": "ssd"}))
    assert misplaced is not None and misplaced.reason == "NodeAffinity"
    full = verdict("api", pod(), Usage(pods=3))
    assert full is not None and full.reason == "OutOfpods"
