"""What the API tells of the node: from the bus, so that each pod counts once however many workers there are."""

from __future__ import annotations

import os

from services.api.core.node_view import NodeView
from shared.kube.version import KUBERNETES_VERSION
from shared.runtime.clock import Clock
from shared.runtime.metrics import Labels, Metrics

_BUILD_LABELS = (
    *("major", "minor", "git_version", "git_commit", "git_tree_state", "build_date", "go_version"),
    *("compiler", "platform"),
)
"""kubelet's; what podbus doesn't have is empty, which is no label to Prometheus."""


def node_gauges(metrics: Metrics, node: str, version: str, view: NodeView, clock: Clock) -> None:
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".", 2)
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    git_version, compiler, platform = f"{KUBERNETES_VERSION}+podbus.{version}", "cpython", f"linux/{machine}"
    build = (major, minor, git_version, "", "", "", "", compiler, platform)
    metrics.gauge("kubelet_node_name", "The node's name. The count is always 1.", ("node",), lambda: {(node,): 1.0})
    metrics.gauge(
        "kubernetes_build_info",
        "A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build"
        " date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
        _BUILD_LABELS,
        lambda: {build: 1.0},
    )
    metrics.gauge(
        "kubelet_running_pods",
        "Number of pods that have a running pod sandbox",
        (),
        lambda: {(): float(view.tally().running_pods)},
    )
    metrics.gauge(
        "kubelet_running_containers",
        "Number of containers currently running",
        ("container_state",),
        lambda: {(state,): float(number) for state, number in view.tally().containers.items()},
    )

    def pods() -> dict[Labels, float]:
        wanted, ending = view.count()
        return {("wanted",): float(wanted), ("ending",): float(ending)}

    metrics.gauge(
        "podbus_known_pods", "Pods of the node: those that sources want, and those that still end.", ("state",), pods
    )
    metrics.gauge(
        "podbus_workers",
        "Workers that were heard lately.",
        (),
        lambda: {(): float(len(view.live_workers(clock.now())))},
    )
