"""The bodies of /healthz, as k8s.io/apiserver's healthz writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    name: str
    failure: str | None = None
    """Why it fails; None = it passes."""


@dataclass(frozen=True)
class HealthAnswer:
    status: int
    body: str
    nosniff: bool


def healthz(checks: Sequence[Check], *, verbose: bool, excluded: Sequence[str]) -> HealthAnswer:
    """/healthz: "ok", or a line a check. A failure is always verbose; why, tells only the check's own path."""
    left = dict.fromkeys(excluded)
    lines: list[str] = []
    failed = False
    for check in checks:
        if check.name in left:
            del left[check.name]
            lines.append(f"[+]{check.name} excluded: ok")
        elif check.failure is None:
            lines.append(f"[+]{check.name} ok")
        else:
            failed = True
            lines.append(f"[-]{check.name} failed: reason withheld")
    if left:
        names = ",".join(f'"{name}"' for name in sorted(left))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    if failed:
        return HealthAnswer(500, "\n".join([*lines, "healthz check failed", ""]), nosniff=True)
    if not verbose:
        return HealthAnswer(200, "ok", nosniff=True)
    return HealthAnswer(200, "\n".join([*lines, "healthz check passed", ""]), nosniff=True)


def single(check: Check) -> HealthAnswer:
    """/healthz/<check>"""
    if check.failure is None:
        return HealthAnswer(200, "ok", nosniff=False)
    return HealthAnswer(500, f"internal server error: {check.failure}\n", nosniff=True)
