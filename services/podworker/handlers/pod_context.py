"""What all pods of a worker share."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from services.podworker.core.admission import NodeLimits
from services.podworker.handlers.desired_pods import DesiredPods
from services.podworker.handlers.executor import Executor
from services.podworker.handlers.hooks import HookRunner
from services.podworker.handlers.measures import Measures
from services.podworker.handlers.placing import LocalNode, NodeView
from services.podworker.handlers.pod_record import Recorder
from services.podworker.handlers.prober import Prober
from services.podworker.handlers.reports import Reports

if TYPE_CHECKING:
    from services.podworker.handlers.pod_task import PodTask


@dataclass(frozen=True)
class PodContext:
    """Handed to each pod's task."""

    desired: DesiredPods
    executor: Executor
    hooks: HookRunner
    prober: Prober
    recorder: Recorder
    reports: Reports
    limits: NodeLimits
    node_ip: str
    sync_seconds: float
    rng: Random
    may_start: Callable[[PodTask], bool]
    """No other pod of the same name is there."""
    ended: Callable[[PodTask], None]
    """Nothing of the pod is left: forget it."""
    handled: Callable[[str, int, bool], None]
    """(uid, gen, begin): told before and after each look, for the chaos test's record."""
    preempt: Callable[[Collection[str]], None] = lambda _: None
    """These pods make room for a critical one."""
    node: NodeView = field(default_factory=LocalNode)
    measures: Measures = field(default_factory=Measures)
