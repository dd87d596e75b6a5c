"""docs/metrics.md: every family of /metrics and /metrics/probes, from the code that makes them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from services.api.core.metrics_view import PROBES
from services.api.core.node_view import NodeView
from services.api.handlers.node_gauges import node_gauges
from services.api.handlers.traffic import Traffic
from services.podworker.handlers.measures import Measures, worker_gauges
from shared.contracts.docs import markdown_table
from shared.runtime.clock import SystemClock
from shared.runtime.metrics import Declared, Metrics
from shared.runtime.process_metrics import bus_metrics, database_metrics, process_metrics

_INTRODUCTION = """Two pages of the HTTPS API tell of podbus itself; `/metrics/cadvisor` and `/metrics/resource`, with
the kubelet's names, tell of pods and containers. Who may get `/metrics/cadvisor` may get these.

Every process tells its own every ten seconds, and the API puts them together when it is asked: counters and histograms
of several workers are added up. A process that has been silent for 35 s is left out. `kubelet_...`, `kubernetes_...`
and `process_...` mean what they mean with a kubelet, so its dashboards and alerts work; `podbus_...` are podbus' own. A
family with labels shows once something was counted.
"""


def declared() -> list[Declared]:
    """All that the processes of a node may tell, by name."""
    metrics = Metrics()
    nothing: Any = SimpleNamespace()
    process_metrics(metrics, "")
    bus_metrics(metrics, nothing, "")
    database_metrics(metrics, "", ())
    Measures(metrics)
    worker_gauges(metrics, "", lambda: 0, lambda: 0, nothing)
    Traffic(metrics)
    node_gauges(metrics, "", "", NodeView(0.0), SystemClock())
    return sorted(metrics.declared, key=lambda one: one.name)


def metrics_markdown() -> str:
    pages = (("/metrics", lambda name: name != PROBES[0]), ("/metrics/probes", lambda name: name in PROBES))
    parts = [_INTRODUCTION]
    for title, is_there in pages:
        rows = [
            (f"`{one.name}`", one.kind, ", ".join(f"`{label}`" for label in one.labels), one.help)
            for one in declared()
            if is_there(one.name)
        ]
        parts.append(f"## {title}\n\n" + markdown_table(("name", "type", "labels", "meaning"), rows))
    return "\n".join(parts) + "\n"
