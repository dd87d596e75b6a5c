"""With a kubeconfig the API server says who somebody is and what they may: the real process, a small API server."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import socket
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.component.api.process import ApiProcess
from tests.component.api.test_access import UPGRADES
from tests.support.certificates import TestCa
from tests.support.eventually import eventually
from tests.support.nats_server import NatsServer
from tests.support.review_server import ReviewServer

pytestmark = pytest.mark.nats


@pytest.fixture(scope="module")
def joined(
    module_nats: NatsServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ApiProcess, ReviewServer, TestCa]]:
    server = ReviewServer(tmp_path_factory.mktemp("cluster"))
    server.start()
    ca = TestCa(tmp_path_factory.mktemp("clients"))
    api = ApiProcess(
        tmp_path_factory.mktemp("data"), module_nats, client_ca=ca.pair.certificate, kubeconfig=server.kubeconfig()
    )
    api.start()
    yield api, server, ca
    api.stop()
    server.stop()


@pytest.fixture
def asked(joined: tuple[ApiProcess, ReviewServer, TestCa]) -> tuple[ApiProcess, ReviewServer]:
    """What was asked before is forgotten; each test uses a user of its own, as answers are kept."""
    api, server, _ca = joined
    server.token_reviews.clear()
    server.access_reviews.clear()
    return api, server


def _user(server: ReviewServer, name: str, *rights: tuple[str, str]) -> str:
    """A user whom only the API server knows."""
    server.users[f"{name}-token"] = {"username": name, "uid": "u-1", "groups": ["g"], "extra": {"k": ["v"]}}
    server.rights |= {(name, verb, subresource) for verb, subresource in rights}
    return name


def test_c44_each_path_asks_for_its_subresource(asked: tuple[ApiProcess, ReviewServer]) -> None:
    """C44."""
    api, server = asked
    user = _user(server, "c44")
    for path in ("/stats/summary", "/metrics/cadvisor", "/logs/x", "/containerLogs/ns/p1/c1"):
        assert api.ask(path, user=user).status == 403
    assert api.ask("/exec/ns/p1/c1?command=ls&output=1", user=user, method="POST").status == 403
    wanted = [("get", "stats"), ("get", "metrics"), ("get", "log"), ("get", "proxy"), ("create", "proxy")]
    assert server.subresources() == wanted
    assert server.access_reviews[0] == {
        "resourceAttributes": {
            "verb": "get",
            "version": "v1",
            "resource": "nodes",
            "subresource": "stats",
            "name": "n1",
        },
        "user": "c44",
        "uid": "u-1",
        "groups": ["g", "system:authenticated"],
        "extra": {"k": ["v"]},
    }
    assert server.callers == {"system:node:n1"}


def test_c45_the_right_to_pods_opens_pods_only(asked: tuple[ApiProcess, ReviewServer]) -> None:
    """C45."""
    api, server = asked
    user = _user(server, "c45", ("get", "pods"))
    assert api.ask("/pods", user=user).status == 200
    # the runtime isn't there to be asked: it's let through all the same
    assert api.ask("/runningpods/", user=user).status not in (401, 403)
    refused = api.ask("/configz", user=user)
    assert (refused.status, refused.body) == (
        403,
        b"Forbidden (user=c45, verb=get, resource=nodes, subresource(s)=[configz proxy])\n",
    )


def test_c46_the_first_right_that_is_there_is_enough(asked: tuple[ApiProcess, ReviewServer]) -> None:
    """C46."""
    api, server = asked
    assert api.ask("/pods", user=_user(server, "c46-pods", ("get", "pods"))).status == 200
    assert server.subresources() == [("get", "pods")]
    server.access_reviews.clear()
    assert api.ask("/pods", user=_user(server, "c46-proxy", ("get", "proxy"))).status == 200
    assert server.subresources() == [("get", "pods"), ("get", "proxy")]


def test_c48_without_an_answer_nobody_is_let_in_and_nothing_is_kept(asked: tuple[ApiProcess, ReviewServer]) -> None:
    """C48."""
    api, server = asked
    user = _user(server, "c48", ("get", "pods"))
    server.token_status[:] = [403]
    assert api.ask("/pods", user=user).status == 401
    server.access_status[:] = [403]
    failed = api.ask("/pods", user=user)
    assert (failed.status, failed.body) == (
        500,
        b"Authorization error (user=c48, verb=get, resource=nodes, subresource=pods)",
    )
    assert api.ask("/pods", user=user).status == 200
    assert len(server.token_reviews) == 2


def test_c48_an_api_server_that_is_away_lets_nobody_in_but_the_nodes_own(
    asked: tuple[ApiProcess, ReviewServer],
) -> None:
    """C48."""
    api, server = asked
    user = _user(server, "c48-away", ("get", "pods"))
    server.stop()
    try:
        assert api.ask("/pods", user=user).status == 401
        assert api.ask("/pods").status == 200
    finally:
        server.start()
    assert api.ask("/pods", user=user).status == 200


def test_c49_a_client_certificate_brings_its_names(joined: tuple[ApiProcess, ReviewServer, TestCa]) -> None:
    """C49."""
    api, server, ca = joined
    server.access_reviews.clear()
    assert api.ask("/stats/summary", user=None, pair=ca.client("bob", "g1", "g2")).status == 403
    (spec,) = server.access_reviews
    assert spec["user"] == "bob"
    assert spec["groups"] == ["g1", "g2", "system:authenticated"]


def test_a_failure_that_may_pass_is_tried_again(asked: tuple[ApiProcess, ReviewServer]) -> None:
    api, server = asked
    user = _user(server, "patient", ("get", "pods"))
    server.token_status[:] = [500]
    assert api.ask("/pods", user=user).status == 200
    assert len(server.token_reviews) == 2


def test_answers_are_kept_those_against_too(asked: tuple[ApiProcess, ReviewServer]) -> None:
    api, server = asked
    user = _user(server, "kept", ("get", "pods"))
    for _ in range(3):
        assert api.ask("/pods", user=user).status == 200
        assert api.ask("/pods", user="stranger").status == 401
    assert sorted(spec["token"] for spec in server.token_reviews) == ["kept-token", "stranger-token"]
    assert len(server.access_reviews) == 1


def test_the_nodes_own_tokens_and_roles_need_no_api_server(asked: tuple[ApiProcess, ReviewServer]) -> None:
    api, server = asked
    assert api.ask("/pods", user="view").status == 200
    assert server.token_reviews == server.access_reviews == []


def test_a_websockets_token_is_reviewed_after_a_bad_header(asked: tuple[ApiProcess, ReviewServer]) -> None:
    api, server = asked
    user = _user(server, "socket", ("get", "proxy"))
    token = urlsafe_b64encode(f"{user}-token".encode()).decode().rstrip("=")
    headers = {
        **UPGRADES["GET"],
        "Sec-WebSocket-Protocol": f"base64url.bearer.authorization.k8s.io.{token}, v4.channel.k8s.io",
    }
    assert api.ask("/exec/ns/p1/c1?command=ls&output=1", user="wrong", headers=headers).status == 404
    assert [spec["token"] for spec in server.token_reviews] == ["wrong-token", "socket-token"]


def test_no_token_is_logged(asked: tuple[ApiProcess, ReviewServer]) -> None:
    api, server = asked
    server.token_status[:] = [403]
    api.ask("/pods", user="s3cret")
    assert "a token could not be reviewed" in api.log()
    assert "s3cret" not in api.log()


def test_anonymous_is_who_shows_nothing_and_no_one_else(tmp_path: Path, module_nats: NatsServer) -> None:
    server = ReviewServer(tmp_path)
    server.start()
    server.rights.add(("system:anonymous", "get", "healthz"))
    api = ApiProcess(tmp_path / "data", module_nats, kubeconfig=server.kubeconfig(), anonymous=True)
    api.start()
    try:
        assert api.ask("/healthz/ping", user=None).status == 200
        assert server.access_reviews[0]["groups"] == ["system:unauthenticated"]
        assert api.ask("/healthz/ping", user="wrong").status == 401
        assert api.ask("/pods", user=None).body.startswith(b"Forbidden (user=system:anonymous, verb=get")
    finally:
        api.stop()
        server.stop()


def test_a_renewed_certificate_of_the_kubeconfig_is_shown_from_then_on(tmp_path: Path, module_nats: NatsServer) -> None:
    server = ReviewServer(tmp_path)
    server.start()
    api = ApiProcess(tmp_path / "data", module_nats, kubeconfig=server.kubeconfig())
    api.start()
    try:
        assert api.ask("/pods", user="first").status == 401
        assert server.callers == {"system:node:n1"}
        server.kubeconfig("system:node:renewed")
        numbers = itertools.count()  # an answer is kept: each time another token

        def renewed() -> bool:
            api.ask("/pods", user=f"token-{next(numbers)}")
            return "system:node:renewed" in server.callers

        eventually(renewed, within=5)
    finally:
        api.stop()
        server.stop()


async def test_an_api_server_that_says_nothing_does_not_hold_up_the_end(
    tmp_path: Path, module_nats: NatsServer
) -> None:
    server = ReviewServer(tmp_path)
    server.start()
    kubeconfig = server.kubeconfig()
    server.stop()
    with socket.create_server(("127.0.0.1", server.port)) as silent:
        api = ApiProcess(tmp_path / "data", module_nats, kubeconfig=kubeconfig)
        api.start()
        asking = asyncio.create_task(api.ask_async("/pods", user="unknown"))
        link, _ = await asyncio.to_thread(silent.accept)
        with link:
            assert await asyncio.to_thread(api.stop, within=6) == 0
        with contextlib.suppress(OSError, http.client.HTTPException):
            await asking
