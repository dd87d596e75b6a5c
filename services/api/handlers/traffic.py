"""Counts and times requests, by the kubelet's names (pkg/kubelet/server/metrics)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from services.api.core.served_paths import is_long_running, path_label
from shared.runtime.metrics import Labels, Metrics

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_LABELS = ("method", "path", "server_type", "long_running")


class Traffic:
    """Of all ports of this process."""

    def __init__(self, metrics: Metrics) -> None:
        self._total = metrics.counter(
            "kubelet_http_requests_total", "Number of the http requests received since the server started", *_LABELS
        )
        self._seconds = metrics.histogram(
            "kubelet_http_requests_duration_seconds", "Duration in seconds to serve http requests", *_LABELS
        )
        self._inflight: dict[Labels, float] = {}
        metrics.gauge(
            "kubelet_http_inflight_requests", "Number of the inflight http requests", _LABELS, lambda: self._inflight
        )

    @contextmanager
    def request(self, method: str, path: str, server: str) -> Iterator[None]:
        """Around one request; `server` is readwrite or readonly."""
        known = method if method in _METHODS else "other"
        labels = (known, path_label(path), server, "true" if is_long_running(path) else "false")
        self._total.add(*labels)
        self._inflight[labels] = self._inflight.get(labels, 0.0) + 1
        began_at = time.monotonic()
        try:
            yield
        finally:
            self._inflight[labels] -= 1
            self._seconds.observe(time.monotonic() - began_at, *labels)
