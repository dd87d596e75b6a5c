"""Which paths exist, before anybody is asked who they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.api.core.routing import Found, Moved, Unknown, acceptable, match


@pytest.mark.parametrize(
    ("path", "inner"),
    [
        ("/pods", "/pods"),
        ("/pods/", "/pods"),
        ("/pods/x", "/pods/x"),
        ("/runningpods/", "/runningpods"),
        ("/stats", "/stats"),
        ("/stats/", "/stats"),
        ("/containerLogs/n/p/c/", "/containerLogs/n/p/c"),
        ("/healthz/syncloop", "/healthz/syncloop"),
        ("/exec", "/exec"),
        ("/podbus/sources", "/podbus/sources"),
    ],
)
def test_known_paths_go_inside(path: str, inner: str) -> None:
    assert match(path) == Found(inner)


@pytest.mark.parametrize(
    "path", ["/", "/foo", "/livez", "/healthz/", "/healthz/x", "/podsx", "/cri/exec/x", "/statsx", "/openapi.json"]
)
def test_other_paths_are_unknown(path: str) -> None:
    assert match(path) == Unknown()


@pytest.mark.parametrize(
    ("path", "clean"),
    [
        ("/runningpods", "/runningpods/"),
        ("//runningpods", "/runningpods/"),
        ("//pods", "/pods"),
        ("/pods/../healthz", "/healthz"),
        ("/pods/./", "/pods/"),
        ("/../../etc", "/etc"),
        ("//evil.example/x", "/evil.example/x"),
        ("", "/"),
    ],
)
def test_unclean_paths_move(path: str, clean: str) -> None:
    assert match(path) == Moved(clean)


@given(st.text(alphabet="/.ab", max_size=20))
def test_a_redirect_leads_to_a_place_of_ours_that_does_not_move_on(path: str) -> None:
    found = match("/" + path)
    if isinstance(found, Moved):
        assert found.path.startswith("/") and not found.path.startswith("//")
        assert not isinstance(match(found.path), Moved)


@pytest.mark.parametrize(
    ("accept", "ok"),
    [
        ("", True),
        ("*/*", True),
        ("application/json", True),
        ("text/html, application/json;q=0.9", True),
        ("application/json; charset=utf-8", True),
        ("text/html", False),
        ("application/vnd.kubernetes.protobuf", False),
        ("application/*", False),
    ],
)
def test_json_is_acceptable_by_its_name_or_by_anything(accept: str, ok: bool) -> None:
    assert acceptable(accept) is ok
