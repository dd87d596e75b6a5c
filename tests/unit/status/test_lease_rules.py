"""The Lease: what it says, whose it is, when it's renewed."""

from __future__ import annotations

import json
import re
from pathlib import Path

from services.status.core.lease import new_lease, renewed, seconds_to_next
from shared.kube.times import parse_rfc3339

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "api"
T0 = 1_764_547_200.25


def test_the_lease_is_the_recorded_kubelets_but_for_what_the_server_adds() -> None:
    """Node case 22. Differences: creationTimestamp, resourceVersion and uid, which the API server gives."""
    recorded = json.loads((GOLDEN / "lease.json").read_text())
    renew_time = recorded["spec"]["renewTime"]
    uid = recorded["metadata"]["ownerReferences"][0]["uid"]
    for key in ("creationTimestamp", "resourceVersion", "uid"):
        del recorded["metadata"][key]
    made = new_lease("peer", uid, 40, parse_rfc3339(renew_time))
    assert made == recorded


def test_there_is_no_lease_without_an_owner() -> None:
    assert new_lease("peer", "", 40, T0) is None


def test_a_renewal_changes_the_time_and_nothing_else() -> None:
    recorded = json.loads((GOLDEN / "lease.json").read_text())
    again = renewed(recorded, "peer", "another", 40, T0)
    assert again["metadata"] == recorded["metadata"]
    assert again["spec"] == {**recorded["spec"], "renewTime": "2025-12-01T00:00:00.250000Z"}


def test_renewal_is_told_with_microseconds_even_when_there_are_none() -> None:
    """Node case 22."""
    made = new_lease("peer", "u1", 40, 1_764_547_200.0)
    assert made is not None and re.fullmatch(r".*:00\.000000Z", made["spec"]["renewTime"])


def test_a_lease_without_an_owner_gets_it_once_the_node_is_known() -> None:
    orphan = {"metadata": {"name": "peer"}, "spec": {}}
    assert "ownerReferences" not in renewed(orphan, "peer", "", 40, T0)["metadata"]
    owned = renewed(orphan, "peer", "u1", 40, T0)["metadata"]["ownerReferences"]
    assert owned == [{"apiVersion": "v1", "kind": "Node", "name": "peer", "uid": "u1"}]


def test_a_lease_is_renewed_four_times_in_its_duration() -> None:
    assert seconds_to_next(40, 0.0) == 10.0
    assert 10.0 < seconds_to_next(40, 1.0) <= 10.4
