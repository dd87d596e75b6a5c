"""A pod's own resources must leave room for those of its containers."""

from __future__ import annotations

from typing import Any

from services.source.core.field_errors import FieldErrors
from services.source.core.validate_pod_resources import validate_pod_consistency


def problems(spec: dict[str, Any]) -> list[str]:
    errors = FieldErrors()
    validate_pod_consistency(spec, "spec", errors)
    return [f"{problem.field}: {problem.message}" for problem in errors.found]


def container(requests: dict[str, str], limits: dict[str, str]) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests, "limits": limits}}


def test_a_request_below_what_the_containers_ask_for_is_refused() -> None:
    spec = {
        "resources": {"requests": {"cpu": "250m"}},
        "initContainers": [{**container({"cpu": "100m"}, {}), "restartPolicy": "Always"}],
        "containers": [container({"cpu": "200m"}, {})],
    }
    (told,) = problems(spec)
    assert "spec.resources.requests[cpu]" in told
    assert "must be greater than or equal to aggregate container requests of 300m" in told
    spec["resources"] = {"requests": {"cpu": "300m"}}
    assert problems(spec) == []


def test_a_containers_limit_above_the_pods_is_refused() -> None:
    spec = {"resources": {"limits": {"memory": "64Mi"}}, "containers": [container({}, {"memory": "65Mi"})]}
    (told,) = problems(spec)
    assert "spec.containers[0].resources.limits[memory]" in told
    assert "must be less than or equal to pod limits of 64Mi" in told
