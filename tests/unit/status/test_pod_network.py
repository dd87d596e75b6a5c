"""A range of addresses for pods that the cluster gave, and the one that they have."""

from __future__ import annotations

import pytest

from services.status.core.pod_network import range_warning


@pytest.mark.parametrize(
    ("cidrs", "subnets"),
    [
        ([], ["172.17.0.0/16"]),
        (["10.1.0.0/24"], []),
        (["10.1.0.0/24"], ["10.1.0.0/24"]),
        (["10.1.0.0/24", "fd00:0::/64"], ["fd00::/64", "10.1.0.0/24"]),
        (["10.1.0.0/24"], ["10.1.0.1/24"]),
    ],
)
def test_a_range_that_fits_or_is_not_known_is_not_told(cidrs: list[str], subnets: list[str]) -> None:
    assert range_warning("n1", cidrs, subnets) is None


@pytest.mark.parametrize("cidrs", [["10.1.0.0/24"], ["172.17.0.0/16", "10.1.0.0/24"], ["10.1.0.0/24x"]])
def test_a_range_that_the_pods_are_not_in_is_told_with_both(cidrs: list[str]) -> None:
    event = range_warning("n1", cidrs, ["172.17.0.0/16"])
    assert event is not None and event.type == "Warning"
    assert cidrs[-1] in event.message and "172.17.0.0/16" in event.message and "PODBUS_NETWORK" in event.message
