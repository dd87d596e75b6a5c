"""Hooks and stop signals that a pod may have."""

from __future__ import annotations

import pytest

from services.source.core.manifest import read_manifests

PRE_STOP = "{exec: {command: [x]}}"


def problems_of(container: str, spec: str = "") -> list[str]:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n"
        f"  containers: [{{name: c, image: x:1, {container}}}]\n" + (f"  {spec}\n" if spec else "")
    )
    result = read_manifests("f", text.encode())
    return [f"{problem.field}: {problem.message}" for problem in result.problems if problem.is_error]


@pytest.mark.parametrize(
    ("container", "spec"),
    [
        (f"lifecycle: {{preStop: {PRE_STOP}, postStart: {PRE_STOP}}}", ""),
        ("lifecycle: {preStop: {httpGet: {port: web}}}", ""),
        ("lifecycle: {preStop: {sleep: {seconds: 0}}}", ""),
        ("lifecycle: {preStop: {sleep: {seconds: 30}}}", ""),
        ("lifecycle: {preStop: {sleep: {seconds: 40}}}", "terminationGracePeriodSeconds: 40"),
        ("lifecycle: {preStop: {tcpSocket: {port: 80}}}", ""),
        ("lifecycle: {stopSignal: SIGUSR1}", "os: {name: linux}"),
        ("lifecycle: {stopSignal: SIGRTMIN+1}", "os: {name: linux}"),
    ],
)
def test_these_are_accepted(container: str, spec: str) -> None:
    """H05: a sleep of 0 is valid; tcpSocket is taken, as the API does, and fails when it's run."""
    assert problems_of(container, spec) == []


@pytest.mark.parametrize(
    ("container", "spec", "field"),
    [
        ("lifecycle: {preStop: {sleep: {seconds: 31}}}", "", "preStop.sleep.seconds"),
        ("lifecycle: {preStop: {sleep: {seconds: 6}}}", "terminationGracePeriodSeconds: 5", "preStop.sleep.seconds"),
        ("lifecycle: {preStop: {exec: {command: [x]}, sleep: {seconds: 1}}}", "", "preStop.sleep"),
        ("lifecycle: {postStart: {}}", "", "postStart"),
        ("lifecycle: {postStart: {exec: {}}}", "", "postStart.exec.command"),
        ("lifecycle: {stopSignal: SIGUSR1}", "", "stopSignal"),
        ("lifecycle: {stopSignal: SIGNAL}", "os: {name: linux}", "stopSignal"),
        ("lifecycle: {stopSignal: TERM}", "os: {name: linux}", "stopSignal"),
    ],
)
def test_these_are_refused(container: str, spec: str, field: str) -> None:
    """H05: a sleep above the grace period can't end in time."""
    (problem,) = problems_of(container, spec)
    assert problem.startswith(f"spec.containers[0].lifecycle.{field}: ")


def test_a_sidecar_may_have_hooks_and_a_plain_init_container_may_not() -> None:
    hooked = f"name: i, image: x, lifecycle: {{preStop: {PRE_STOP}}}"
    assert problems_of("", f"initContainers: [{{{hooked}, restartPolicy: Always}}]") == []
    (problem,) = problems_of("", f"initContainers: [{{{hooked}}}]")
    assert problem.startswith("spec.initContainers[0].lifecycle: ")
