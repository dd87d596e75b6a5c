"""More reserved than there is."""

from __future__ import annotations

import pytest

from shared.kube.allocatable import reservation_faults

MI = 1 << 20
CAPACITY = {"cpu": 2000, "memory": 1000 * MI, "ephemeral-storage": 1000 * MI}


@pytest.mark.parametrize(
    ("system", "kube", "hard", "told"),
    [
        ({"cpu": "1500m"}, {"cpu": "501m"}, {}, "cpu"),
        ({"memory": "500Mi"}, {"memory": "501Mi"}, {}, "memory"),
        ({}, {"memory": "950Mi"}, {"memory.available": "100Mi"}, "memory"),
        ({}, {"ephemeral-storage": "950Mi"}, {"nodefs.available": "10%"}, "ephemeral-storage"),
    ],
)
def test_reservations_above_capacity_are_told_with_the_resource(
    system: dict[str, str], kube: dict[str, str], hard: dict[str, str], told: str
) -> None:
    """Node case 15."""
    (fault,) = reservation_faults(CAPACITY, hard, {"systemReserved": system, "kubeReserved": kube})
    assert f": {told}: " in fault and "is more than the machine's" in fault


def test_all_of_the_machine_may_be_reserved() -> None:
    """kubelet 1.36: nothing left is allowed."""
    reserved = {"systemReserved": {"cpu": "2", "memory": "1000Mi"}, "kubeReserved": {}}
    assert reservation_faults(CAPACITY, {}, reserved) == []


def test_a_threshold_alone_is_no_reservation() -> None:
    """A small machine below the default thresholds has pressure, not a wrong configuration."""
    assert reservation_faults(CAPACITY, {"memory.available": "2Gi"}, {"systemReserved": {}, "kubeReserved": {}}) == []


def test_what_is_not_known_is_not_judged() -> None:
    assert reservation_faults({"cpu": 1000}, {}, {"systemReserved": {"memory": "1Ti"}}) == []
