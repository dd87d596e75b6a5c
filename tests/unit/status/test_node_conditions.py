"""Flips of the node's conditions, and what is remembered and told of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from services.status.core.conditions import Judgement, judge, reboot_event
from services.status.core.model import DISK_PRESSURE, MEMORY_PRESSURE, PID_PRESSURE, READY, NodeMemory

FRESH = NodeMemory(created_at=1000.0, boot_id="one")
T1, T2 = 1_764_547_200.0, 1_764_547_260.0
TEXT1, TEXT2 = "2025-12-01T00:00:00Z", "2025-12-01T00:01:00Z"


def first(pressures: set[str] | None = None, problems: list[str] | None = None) -> Judgement:
    return judge("n1", FRESH, pressures or set(), problems or [], T1)


def then(before: Judgement, pressures: set[str] | None = None, problems: list[str] | None = None) -> Judgement:
    return judge("n1", before.memory, pressures or set(), problems or [], T2)


def told(verdict: Judgement) -> list[str]:
    return [event.reason for event in verdict.events]


@pytest.mark.parametrize(
    ("kind", "pressures", "problems", "status", "reason", "message"),
    [
        (MEMORY_PRESSURE, set(), [], "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        (
            MEMORY_PRESSURE,
            {MEMORY_PRESSURE},
            [],
            "True",
            "KubeletHasInsufficientMemory",
            "kubelet has insufficient memory available",
        ),
        (DISK_PRESSURE, set(), [], "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        (DISK_PRESSURE, {DISK_PRESSURE}, [], "True", "KubeletHasDiskPressure", "kubelet has disk pressure"),
        (PID_PRESSURE, set(), [], "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        (
            PID_PRESSURE,
            {PID_PRESSURE},
            [],
            "True",
            "KubeletHasInsufficientPID",
            "kubelet has insufficient PID available",
        ),
        (READY, set(), [], "True", "KubeletReady", "kubelet is posting ready status"),
        (READY, set(), ["it is down"], "False", "KubeletNotReady", "it is down"),
        (READY, set(), ["it is down", "it is old"], "False", "KubeletNotReady", "[it is down, it is old]"),
    ],
)
def test_each_condition_has_the_kubelets_reason_and_message(
    kind: str, pressures: set[str], problems: list[str], status: str, reason: str, message: str
) -> None:
    found = next(c for c in first(pressures, problems).conditions if c.type == kind)
    assert (found.status, found.reason, found.message) == (status, reason, message)


def test_ready_is_the_last_condition() -> None:
    assert [c.type for c in first().conditions] == [MEMORY_PRESSURE, DISK_PRESSURE, PID_PRESSURE, READY]


def test_the_transition_time_moves_only_with_the_status() -> None:
    """Another message of the same status is no transition; the heartbeat always moves."""
    before = first(problems=["starting"])
    same = then(before, problems=["down"])
    ready = same.conditions[-1]
    assert (ready.last_transition_time, ready.last_heartbeat_time, ready.message) == (TEXT1, TEXT2, "down")
    flipped = then(before).conditions[-1]
    assert (flipped.last_transition_time, flipped.last_heartbeat_time) == (TEXT2, TEXT2)


def test_the_first_pressures_are_told_and_the_first_ready_is_not() -> None:
    assert told(first()) == ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"]


def test_nothing_is_told_while_nothing_flips() -> None:
    assert told(then(first())) == []
    assert told(then(first(problems=["a"]), problems=["b"])) == []


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (first(problems=["x"]), {}, "NodeReady"),
        (first(), {"problems": ["x"]}, "NodeNotReady"),
        (first(), {"pressures": {MEMORY_PRESSURE}}, "NodeHasInsufficientMemory"),
        (first({DISK_PRESSURE}), {}, "NodeHasNoDiskPressure"),
        (first(), {"pressures": {PID_PRESSURE}}, "NodeHasInsufficientPID"),
    ],
)
def test_a_flip_is_told_once(before: Judgement, after: dict[str, object], reason: str) -> None:
    verdict = then(before, **after)  # type: ignore[arg-type]
    assert told(verdict) == [reason]
    assert verdict.events[0].message == f"Node n1 status is now: {reason}"
    assert told(then(verdict, **after)) == []  # type: ignore[arg-type]


def test_a_reboot_is_told_and_the_first_boot_is_not() -> None:
    assert reboot_event("n1", replace(FRESH, boot_id=""), "one") is None
    assert reboot_event("n1", FRESH, "one") is None
    assert reboot_event("n1", FRESH, "") is None
    event = reboot_event("n1", FRESH, "two")
    assert event is not None
    assert (event.type, event.reason) == ("Warning", "Rebooted")
    assert event.message == "Node n1 has been rebooted, boot id: two"
