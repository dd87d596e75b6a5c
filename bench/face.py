"""How fast the API answers."""

from __future__ import annotations

from bench.http_load import Endpoint, Latency, latency, requests_per_second
from bench.node import BenchNode
from bench.report import NOT_YET, Row, percentile

PAGES = {
    "list": ("/pods", 3.0),
    "summary": ("/stats/summary", 5.0),
    "cadvisor": ("/metrics/cadvisor", 20.0),
}
"""Path, and the target of its p50 in ms."""


def page(node: BenchNode, key: str, seconds: float) -> Row:
    """p50 and p99 on one keep-alive TLS connection, then how many a second four connections get."""
    path, target = PAGES[key]
    link = node.endpoint.connect()
    found = latency(link, path, seconds)
    link.close()
    if found.status != 200:
        return Row(key, NOT_YET if found.status in (404, 501) else f"answers {found.status}")
    rate = requests_per_second(node.endpoint, path, seconds)
    row = _row(key, found, rate)
    row.met = percentile(found.milliseconds, 0.5) <= target
    return row


def healthz(node: BenchNode, seconds: float) -> Row:
    """The loopback listener, which kubelets have on 10248."""

    endpoint = Endpoint(("127.0.0.1", node.healthz_port))
    found = latency(endpoint.connect(), "/healthz", seconds)
    return _row("healthz", found, requests_per_second(endpoint, "/healthz", seconds))


def _row(key: str, found: Latency, rate: float) -> Row:
    p50, p99 = percentile(found.milliseconds, 0.5), percentile(found.milliseconds, 0.99)
    return Row(
        key,
        f"{p50:.2f} ms",
        None,
        [
            f"p99 {p99:.2f} ms, {found.size / 1000:.0f} kB a body, {len(found.milliseconds)} requests;"
            f" {rate:.0f}/s over 4 connections"
        ],
        {"p50_ms": p50, "p99_ms": p99, "bytes": found.size, "requests_per_second": rate},
    )
