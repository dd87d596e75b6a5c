"""What a worker counts and measures. Names, labels and buckets are the kubelet's (pkg/kubelet/metrics/metrics.go)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from services.podworker.ports import ImagePullFailed, RuntimeRefused, RuntimeUnavailable
from shared.kube.pod import Pod
from shared.runtime.metrics import Metrics

_OPERATION_BOUNDS = tuple(0.005 * 2.5**power for power in range(14))
"""kubelet: 14 buckets from 5 ms, each 2.5 times the last."""
_START_BOUNDS = (
    0.5,
    1,
    2,
    3,
    4,
    5,
    6,
    8,
    10,
    20,
    30,
    45,
    60,
    120,
    180,
    240,
    300,
    360,
    480,
    600,
    900,
    1200,
    1800,
    2700,
    3600,
)
"""kubelet: of what may wait for an image."""


def container_type(pod: Pod, name: str) -> str:
    """kubelet: container, init_container, ephemeral_container."""
    if any(one.name == name for one in pod.spec.init_containers):
        return "init_container"
    return "container" if any(one.name == name for one in pod.spec.containers) else "ephemeral_container"


class Measures:
    """Of one worker; the API adds up those of all."""

    def __init__(self, metrics: Metrics | None = None) -> None:
        made = Metrics() if metrics is None else metrics
        self._operations = made.counter(
            "kubelet_runtime_operations_total",
            "Cumulative number of runtime operations by operation type.",
            "operation_type",
        )
        self._operation_errors = made.counter(
            "kubelet_runtime_operations_errors_total",
            "Cumulative number of runtime operation errors by operation type.",
            "operation_type",
        )
        self._operation_seconds = made.histogram(
            "kubelet_runtime_operations_duration_seconds",
            "Duration in seconds of runtime operations. Broken down by operation type.",
            "operation_type",
            bounds=_OPERATION_BOUNDS,
        )
        self.relist_seconds = made.histogram(
            "kubelet_pleg_relist_duration_seconds", "Duration in seconds for relisting pods in PLEG."
        )
        self.relist_interval = made.histogram(
            "kubelet_pleg_relist_interval_seconds", "Interval in seconds between relisting in PLEG."
        )
        self.sync_seconds = made.histogram(
            "kubelet_pod_worker_duration_seconds",
            "Duration in seconds to sync a single pod. Broken down by operation type: create, update, sync, or kill.",
            "operation_type",
        )
        self.worker_start_seconds = made.histogram(
            "kubelet_pod_worker_start_duration_seconds",
            "Duration in seconds from seeing a pod to starting a worker.",
        )
        self.pod_start_seconds = made.histogram(
            "kubelet_pod_start_duration_seconds",
            "Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run.",
            bounds=_START_BOUNDS,
        )
        self.started_pods = made.counter("kubelet_started_pods_total", "Cumulative number of pods started.")
        self.started_pod_errors = made.counter(
            "kubelet_started_pods_errors_total", "Cumulative number of errors when starting pods."
        )
        self.started_containers = made.counter(
            "kubelet_started_containers_total", "Cumulative number of containers started.", "container_type"
        )
        self.started_container_errors = made.counter(
            "kubelet_started_containers_errors_total",
            "Cumulative number of errors when starting containers.",
            "code",
            "container_type",
        )
        self.pull_seconds = made.histogram(
            "podbus_image_pull_duration_seconds",
            "Duration in seconds of pulls that ended well.",
            bounds=_START_BOUNDS,
        )
        self.probes = made.counter(
            "prober_probe_total",
            "Cumulative number of a liveness, readiness or startup probe for a container by result.",
            *("container", "namespace", "pod", "pod_uid", "probe_type", "result"),
        )

    @contextmanager
    def operation(self, name: str) -> Iterator[None]:
        """Around one call to the engine, named as CRI does."""
        began_at = time.monotonic()
        self._operations.add(name)
        try:
            yield
        except (RuntimeRefused, RuntimeUnavailable, ImagePullFailed):
            self._operation_errors.add(name)
            raise
        finally:
            self._operation_seconds.observe(time.monotonic() - began_at, name)


class Listed(Protocol):
    @property
    def listed_at(self) -> float: ...


def worker_gauges(
    metrics: Metrics, process: str, slots: Callable[[], int], pods: Callable[[], int], relist: Listed
) -> None:
    """What a worker holds just now."""
    metrics.gauge(
        "kubelet_pleg_last_seen_seconds",
        "Timestamp in seconds when PLEG was last seen active.",
        (),
        lambda: {(): relist.listed_at} if relist.listed_at else {},  # a worker that begins has seen nothing yet
        merge="min",
    )
    metrics.gauge(
        "podbus_owned_slots",
        "Ownership slots of the node (256 in all) that a worker holds.",
        ("process",),
        lambda: {(process,): float(slots())},
    )
    metrics.gauge(
        "podbus_owned_pods", "Pods that a worker looks after.", ("process",), lambda: {(process,): float(pods())}
    )
