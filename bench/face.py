"""How fast the API answers."""

from __future__ import annotations

from bench.http_load import Endpoint, Latency, latency, requests_per_second
from bench.node import BenchNode
from bench.report import NOT_YET, Row, percentile
from bench.wrk import CONNECTIONS, wrk_load

PAGES = {
    "list": ("/pods", 3.0),
    "summary": ("/stats/summary", 5.0),
    "cadvisor": ("/metrics/cadvisor", 20.0),
}
"""Path, and the target of its p50 in ms."""
RATES = {"list": 1500, "healthz": 3000}
"""Requests a second that a page must bear, with this p99 in ms:"""
LOADED_P99 = 20.0


def page(node: BenchNode, key: str, seconds: float) -> Row:
    """p50 and p99 on one keep-alive TLS connection, then how many a second four connections get."""
    path, target = PAGES[key]
    link = node.endpoint.connect()
    found = latency(link, path, seconds)
    link.close()
    if found.status != 200:
        return Row(key, NOT_YET if found.status in (404, 501) else f"answers {found.status}")
    row, is_enough = _row(key, found, node.endpoint, path, seconds)
    row.met = percentile(found.milliseconds, 0.5) <= target and is_enough
    return row


def healthz(node: BenchNode, seconds: float) -> Row:
    """The loopback listener, which kubelets have on 10248."""

    endpoint = Endpoint(("127.0.0.1", node.healthz_port))
    row, is_enough = _row("healthz", latency(endpoint.connect(), "/healthz", seconds), endpoint, "/healthz", seconds)
    row.met = is_enough
    return row


def _row(key: str, found: Latency, endpoint: Endpoint, path: str, seconds: float) -> tuple[Row, bool]:
    """The row, and whether the rate is what it should be: by wrk, for clients in Python take a core of two."""
    p50, p99 = percentile(found.milliseconds, 0.5), percentile(found.milliseconds, 0.99)
    load, least = wrk_load(endpoint, path, seconds), RATES.get(key, 0)
    facts: dict[str, object] = {"p50_ms": p50, "p99_ms": p99, "bytes": found.size}
    if load is None:
        rate, is_enough = requests_per_second(endpoint, path, seconds), True
        told = f"{rate:.0f}/s by four clients in Python (wrk isn't installed)"
        facts["requests_per_second"] = rate
    else:
        is_fast = not least or (load.per_second >= least and load.p99 <= LOADED_P99)
        is_enough = is_fast and not load.failed
        told = f"{load.per_second:.0f}/s with p99 {load.p99:.1f} ms by wrk over {CONNECTIONS} connections"
        told += f", {load.failed} failed" if load.failed else ""
        facts |= {"requests_per_second": load.per_second, "loaded_p99_ms": load.p99}
    counted = f"{found.size / 1000:.0f} kB a body, {len(found.milliseconds)} requests"
    return Row(key, f"{p50:.2f} ms", None, [f"p99 {p99:.2f} ms, {counted}; {told}"], facts), is_enough
