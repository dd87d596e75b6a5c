"""Roles and the texts of refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.api.core.access import Identity, allowed, forbidden_text, subresources

ADMIN = Identity("a", ("podbus:admin",))
MASTER = Identity("m", ("system:masters", "system:authenticated"))
VIEW = Identity("v", ("podbus:view", "system:authenticated"))
METRICS = Identity("p", ("podbus:metrics",))
NOBODY = Identity("n", ("system:authenticated",))

READ = [
    "/pods",
    "/runningpods",
    "/healthz",
    "/healthz/syncloop",
    "/stats",
    "/stats/summary",
    "/metrics",
    "/metrics/cadvisor",
    "/containerLogs/ns/p/c",
    "/podbus",
    "/podbus/sources",
]
POWER = [
    "/exec/ns/p/c",
    "/exec/ns/p/u/c",
    "/attach/ns/p/c",
    "/portForward/ns/p",
    "/run/ns/p/c",
    "/configz",
    "/logs/x",
    "/debug/pprof/profile",
    "/checkpoint/ns/p/c",
]
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


@pytest.mark.parametrize("who", [ADMIN, MASTER])
@pytest.mark.parametrize("path", READ + POWER)
def test_an_admin_may_everything(who: Identity, path: str) -> None:
    assert all(allowed(who, method, path) for method in METHODS)


@pytest.mark.parametrize("path", READ)
def test_a_viewer_may_read_by_get_only(path: str) -> None:
    assert [method for method in METHODS if allowed(VIEW, method, path)] == ["GET"]


@pytest.mark.parametrize("path", POWER)
def test_a_viewer_may_nothing_that_acts_by_no_method(path: str) -> None:
    assert not any(allowed(VIEW, method, path) for method in METHODS)


@pytest.mark.parametrize("path", READ + POWER)
def test_a_metrics_reader_sees_numbers_and_health_only(path: str) -> None:
    may = path.startswith(("/metrics", "/stats", "/healthz"))
    assert allowed(METRICS, "GET", path) is may
    assert not allowed(METRICS, "POST", path)


def test_a_path_counts_by_whole_segments() -> None:
    assert not allowed(VIEW, "GET", "/podsx")
    assert not allowed(METRICS, "GET", "/metricsx")
    assert subresources("/metricsx") == ("proxy",)


@given(st.sampled_from(METHODS), st.text(alphabet="/abcdexecpodsrun.", max_size=30))
def test_without_a_role_nothing_is_allowed(method: str, path: str) -> None:
    assert not allowed(NOBODY, method, "/" + path)


@pytest.mark.parametrize(
    ("method", "path", "text"),
    [
        ("GET", "/pods", "verb=get, resource=nodes, subresource(s)=[pods proxy]"),
        ("GET", "/runningpods", "verb=get, resource=nodes, subresource(s)=[pods proxy]"),
        ("GET", "/stats/summary", "verb=get, resource=nodes, subresource(s)=[stats]"),
        ("GET", "/metrics/cadvisor", "verb=get, resource=nodes, subresource(s)=[metrics]"),
        ("GET", "/logs/x", "verb=get, resource=nodes, subresource(s)=[log]"),
        ("GET", "/healthz", "verb=get, resource=nodes, subresource(s)=[healthz proxy]"),
        ("OPTIONS", "/pods", "verb=, resource=nodes, subresource(s)=[pods proxy]"),
        ("PATCH", "/pods", "verb=patch, resource=nodes, subresource(s)=[pods proxy]"),
        ("POST", "/exec/a/b/c", "verb=create, resource=nodes, subresource(s)=[proxy]"),
        ("GET", "/podbus", "verb=get, resource=nodes, subresource(s)=[proxy]"),
    ],
)
def test_a_refusal_names_what_would_have_been_needed(method: str, path: str, text: str) -> None:
    assert forbidden_text(Identity("bob"), method, path) == f"Forbidden (user=bob, {text})\n"
