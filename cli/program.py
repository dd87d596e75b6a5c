"""A process that the supervisor keeps running, and what it knows of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cli.liveness import Liveness
from cli.log_files import RotatingFile
from cli.outage import Outage
from shared.runtime.backoff import Delays

FIRST_DELAY = 0.2
MOST_DELAY = 10.0
"""Seconds from an end to the next start."""


@dataclass(frozen=True)
class Program:
    """One process to keep running."""

    name: str
    body: Callable[[int, str], int]
    """Runs in the child with (descriptor to write a line to when ready, why its predecessor ended); its exit code."""
    stage: int
    """At the end the smallest is told first, and the next only when it's gone."""
    stop_seconds: float
    """From SIGTERM to SIGKILL."""
    answers: Callable[[], bool] | None = None
    """Asked until true instead of waiting for the line: for programs that can't write one."""
    alive: Callable[[], bool] | None = None
    """Asked every ten seconds once it's ready; when it says no again and again the process hangs, and is killed."""
    blocked_by: Callable[[], str] | None = None
    """A cause outside it that keeps it from working, for people, "" = none: then its restarts are told once."""
    is_echoed: bool = True
    """Whether people at the terminal see its log lines too."""


@dataclass
class Process:
    """A program's process, or the pause before the next one."""

    program: Program
    log: RotatingFile
    liveness: Liveness
    outage: Outage
    delays: Delays = field(default_factory=lambda: Delays(FIRST_DELAY, MOST_DELAY))
    pid: int = 0
    started_at: float = 0.0
    is_ready: bool = False
    was_ready: bool = False
    ends_before_ready: int = 0
    start_at: float | None = 0.0
    """When to start it; None = it runs."""
    reason: str = ""
    output: int | None = None
    ready: int | None = None
    signalled_at: float | None = None
    killed: bool = False
    exit_code: int = 0

    @classmethod
    def of(cls, program: Program, log: RotatingFile) -> Process:
        return cls(program, log, Liveness(program.alive), Outage(program.blocked_by))
