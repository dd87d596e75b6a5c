"""/metrics/resource: what metrics-server reads.

It drops a whole pod for one container without CPU time or memory, and takes a start time newer than its last
sample for a restart: so a container that has ended isn't told, and a counter begins anew only with a new start time.
"""

from __future__ import annotations

from collections.abc import Iterable

from services.stats.core.exposition import Page, seconds
from services.stats.core.live import told_containers, told_pod
from services.stats.core.model import CgroupSample, NodeHistory, PodHistory

FAMILIES = {
    "container_cpu_usage_seconds_total": (
        "counter",
        "[STABLE] Cumulative cpu time consumed by the container in core-seconds",
    ),
    "container_memory_working_set_bytes": ("gauge", "[STABLE] Current working set of the container in bytes"),
    "container_start_time_seconds": ("gauge", "[STABLE] Start time of the container since unix epoch in seconds"),
    "container_swap_limit_bytes": (
        "gauge",
        "[ALPHA] Current amount of the container swap limit in bytes. Reported only on non-windows systems",
    ),
    "container_swap_usage_bytes": (
        "gauge",
        "[ALPHA] Current amount of the container swap usage in bytes. Reported only on non-windows systems",
    ),
    "node_cpu_usage_seconds_total": ("counter", "[STABLE] Cumulative cpu time consumed by the node in core-seconds"),
    "node_memory_working_set_bytes": ("gauge", "[STABLE] Current working set of the node in bytes"),
    "node_swap_usage_bytes": (
        "gauge",
        "[ALPHA] Current swap usage of the node in bytes. Reported only on non-windows systems",
    ),
    "pod_cpu_usage_seconds_total": ("counter", "[STABLE] Cumulative cpu time consumed by the pod in core-seconds"),
    "pod_memory_working_set_bytes": ("gauge", "[STABLE] Current working set of the pod in bytes"),
    "pod_swap_usage_bytes": (
        "gauge",
        "[ALPHA] Current amount of the pod swap usage in bytes. Reported only on non-windows systems",
    ),
    "resource_scrape_error": ("gauge", "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise"),
    "scrape_error": ("gauge", "[ALPHA] 1 if there was an error while getting container metrics, 0 otherwise"),
}


def resource_page(node: NodeHistory, pods: Iterable[PodHistory], *, failed: bool = False) -> bytes:
    """`failed`: the engine doesn't answer, and what it runs isn't known: no pods then, and 1 in the error."""
    page = Page(FAMILIES)
    _usage(page, "node", {}, node.window)
    for pod in () if failed else pods:
        if not told_pod(pod):
            continue
        named = {"namespace": pod.target.namespace, "pod": pod.target.name}
        for container in told_containers(pod):
            target = container.target
            if not container.window[-1].usage.cpu_ns:
                continue  # it has only just been made
            pairs = {"container": target.name, **named}
            _usage(page, "container", pairs, container.window)
            if target.started_at > 0:
                page.add("container_start_time_seconds", pairs, target.started_at)
            swap_limit = container.window[-1].usage.swap_limit
            if swap_limit is not None:
                page.add("container_swap_limit_bytes", pairs, swap_limit, container.window[-1].at)
        _usage(page, "pod", named, pod.window)
    for name in ("scrape_error", "resource_scrape_error"):
        page.add(name, {}, int(failed))
    return page.encoded()


def _usage(page: Page, what: str, pairs: dict[str, str], window: tuple[CgroupSample, ...]) -> None:
    if not window:
        return
    newest = window[-1]
    if newest.usage.cpu_ns is not None:
        page.add(f"{what}_cpu_usage_seconds_total", pairs, seconds(newest.usage.cpu_ns), newest.at)
    memory = newest.usage.memory
    if memory is not None:
        page.add(f"{what}_memory_working_set_bytes", pairs, memory.working_set, newest.at)
        if memory.swap is not None:
            page.add(f"{what}_swap_usage_bytes", pairs, memory.swap, newest.at)
