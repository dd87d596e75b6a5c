"""When the node runs out of something."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from services.status.core.model import DISK_PRESSURE, MEMORY_PRESSURE, PID_PRESSURE, Observation
from services.status.core.pressure import HOLD_SECONDS, hold, met_thresholds, pressures
from tests.support.node_observations import DISK, FINE, MI


@pytest.mark.parametrize(
    ("signal", "text", "seen", "is_met"),
    [
        ("memory.available", "100Mi", replace(FINE, memory_available=100 * MI - 1), True),
        ("memory.available", "100Mi", replace(FINE, memory_available=100 * MI), False),
        ("memory.available", "50%", replace(FINE, memory_available=499 * MI), True),
        ("memory.available", "0%", replace(FINE, memory_available=0), False),
        ("memory.available", "100%", replace(FINE, memory_available=0), False),
        ("memory.available", "100Mi", replace(FINE, memory_available=None), False),
        ("nodefs.available", "10%", replace(FINE, nodefs=replace(DISK, available=99 * MI)), True),
        ("nodefs.available", "10%", replace(FINE, nodefs=None), False),
        ("nodefs.inodesFree", "5%", replace(FINE, nodefs=replace(DISK, inodes_free=49)), True),
        ("nodefs.inodesFree", "5%", replace(FINE, nodefs=replace(DISK, inodes=0, inodes_free=0)), False),
        ("imagefs.available", "15%", replace(FINE, imagefs=replace(DISK, available=149 * MI)), True),
        ("imagefs.available", "15%", replace(FINE, imagefs=None), False),
        ("pid.available", "901", FINE, True),
        ("pid.available", "900", FINE, False),
    ],
)
def test_a_signal_is_met_strictly_below_its_threshold_and_only_when_observed(
    signal: str, text: str, seen: Observation, is_met: bool
) -> None:
    assert met_thresholds({signal: text}, seen) == ({signal} if is_met else set())


@pytest.mark.parametrize(
    ("signals", "kinds"),
    [
        (set(), set()),
        ({"memory.available"}, {MEMORY_PRESSURE}),
        ({"nodefs.available", "imagefs.inodesFree"}, {DISK_PRESSURE}),
        ({"pid.available", "memory.available"}, {PID_PRESSURE, MEMORY_PRESSURE}),
    ],
)
def test_signals_make_the_condition_of_their_resource(signals: set[str], kinds: set[str]) -> None:
    assert pressures(signals) == kinds


def test_a_pressure_is_held_five_minutes_after_it_was_last_seen() -> None:
    seen = hold({}, {DISK_PRESSURE}, 100.0)
    seen = hold(seen, {DISK_PRESSURE}, 110.0)
    assert hold(seen, set(), 110.0 + HOLD_SECONDS - 1).keys() == {DISK_PRESSURE}
    assert hold(seen, set(), 110.0 + HOLD_SECONDS) == {}
