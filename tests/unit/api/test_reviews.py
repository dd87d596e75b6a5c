"""What the API server is asked and what its answers mean; what is kept, for how long, and who asks."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from services.api.core.access import Identity, subresources
from services.api.core.reviews import (
    LARGEST_CACHED,
    Kept,
    UnusableAnswer,
    retry_delays,
    reviewed_access,
    reviewed_identity,
)
from services.api.handlers.reviews import ApiServerReviews, KeepSeconds
from services.api.ports import ReviewFailed
from shared.apiserver.kubeconfig import KubeconfigError, current_server

YES = {"status": {"authenticated": True, "user": {"username": "bob"}}}
NO: dict[str, Any] = {"status": {"authenticated": False}}


class Server:
    """Answers in turn; the last one for ever."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.bodies: list[dict[str, Any]] = []
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, path: str, body: dict[str, Any]) -> Any:
        self.bodies.append(body)
        await self.open.wait()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def _reviews(server: Server, now: list[float], slept: list[float] | None = None) -> ApiServerReviews:
    async def sleep(seconds: float) -> None:
        (slept if slept is not None else []).append(seconds)

    return ApiServerReviews(
        server, "n1", b"k" * 32, lambda: now[0], keep=KeepSeconds(), chance=random.Random(1), sleep=sleep
    )


@pytest.mark.parametrize(("answer", "who"), [(YES, "bob"), (NO, None)])
async def test_a_clear_word_on_a_token_counts_two_minutes(answer: Any, who: str | None) -> None:
    server, now = Server(answer), [0.0]
    reviews = _reviews(server, now)
    for now[0] in (0.0, 119.0, 121.0):
        found = await reviews.identify("t")
        assert (found.user if found else None) == who
    assert len(server.bodies) == 2


async def test_a_yes_counts_five_minutes_and_a_no_half_a_one() -> None:
    for allowed, times in ((True, (0.0, 299.0, 301.0)), (False, (0.0, 29.0, 31.0))):
        server, now = Server({"status": {"allowed": allowed}}), [0.0]
        reviews = _reviews(server, now)
        for now[0] in times:
            assert await reviews.allows(Identity("bob"), "GET", "pods") is allowed
        assert len(server.bodies) == 2


async def test_who_asks_at_the_same_moment_shares_an_answer() -> None:
    server = Server(YES)
    server.open.clear()
    reviews = _reviews(server, [0.0])
    asking = [asyncio.ensure_future(reviews.identify("t")) for _ in range(5)]
    await asyncio.sleep(0)
    asking[0].cancel()  # who leaves takes the answer from nobody
    await asyncio.sleep(0)
    server.open.set()
    assert [one.user for one in await asyncio.gather(*asking[1:]) if one] == ["bob"] * 4
    assert len(server.bodies) == 1


async def test_what_may_pass_is_tried_five_times_and_not_kept() -> None:
    server = Server(ReviewFailed("later", transient=True))
    slept: list[float] = []
    reviews = _reviews(server, [0.0], slept)
    with pytest.raises(ReviewFailed):
        await reviews.identify("t")
    assert len(server.bodies) == 5 and len(slept) == 4
    server.answers = [YES]
    assert await reviews.identify("t") is not None


async def test_what_will_not_pass_is_not_tried_again() -> None:
    server = Server(ReviewFailed("forbidden"))
    with pytest.raises(ReviewFailed):
        await _reviews(server, [0.0]).allows(Identity("bob"), "GET", "pods")
    assert len(server.bodies) == 1


async def test_long_attributes_are_asked_each_time() -> None:
    server = Server({"status": {"allowed": True}})
    reviews = _reviews(server, [0.0])
    for _ in range(2):
        await reviews.allows(Identity("b" * LARGEST_CACHED), "GET", "pods")
    assert len(server.bodies) == 2


async def test_no_token_is_kept_as_it_is() -> None:
    reviews = _reviews(Server(YES), [0.0])
    await reviews.identify("s3cret-token")
    assert "s3cret-token" not in repr(vars(reviews)["_identities"].__dict__)


def test_the_delays_grow_by_half_with_a_fifth_by_chance() -> None:
    delays = retry_delays(random.Random(3).random)
    assert len(delays) == 4
    for step, delay in enumerate(delays):
        assert 0.5 * 1.5**step <= delay <= 0.5 * 1.5**step * 1.2


def test_the_least_used_answer_goes_first() -> None:
    kept: Kept[int] = Kept(2)
    kept.keep("a", 1, 10.0)
    kept.keep("b", 2, 10.0)
    kept.find("a", 0.0)
    kept.keep("c", 3, 10.0)
    assert (kept.find("a", 0.0), kept.find("b", 0.0), kept.find("c", 0.0)) == ((1,), None, (3,))
    assert kept.find("a", 10.0) is None


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {},
        {"status": []},
        {"status": {"authenticated": True}},
        {"status": {"authenticated": True, "user": {"username": ""}}},
        {"status": {"error": "no such issuer"}},
    ],
)
def test_an_unclear_word_on_a_token_is_a_failure(answer: Any) -> None:
    with pytest.raises(UnusableAnswer):
        reviewed_identity(answer)


def test_both_yes_and_no_is_a_failure() -> None:
    with pytest.raises(UnusableAnswer):
        reviewed_access({"status": {"allowed": True, "denied": True}})


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/checkpoint/a/b/c", ("checkpoint",)),
        ("/statusz", ("statusz",)),
        ("/flagz", ("configz",)),
        ("/configz", ("configz", "proxy")),
        ("/healthz/ping", ("healthz", "proxy")),
        ("/run/a/b/c", ("proxy",)),
    ],
)
def test_the_newest_kubelets_map_of_subresources(path: str, names: tuple[str, ...]) -> None:
    assert subresources(path) == names


def _kubeconfig(cluster: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }


def test_a_kubeconfigs_current_context_counts() -> None:
    user = {"client-certificate": "a.crt", "client-key": "/b.key", "tokenFile": "t"}
    server = current_server(_kubeconfig({"server": "https://h:6443/x/"}, user), Path("/etc/k"))
    assert (server.host, server.port, server.base, server.secure) == ("h", 6443, "/x", True)
    assert (server.certificate, server.key) == (Path("/etc/k/a.crt"), Path("/b.key"))
    assert server.files == [Path("/etc/k/a.crt"), Path("/b.key"), Path("/etc/k/t")]


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({}, {}),
        ({"server": "ftp://h"}, {}),
        ({"server": "https://h:port"}, {}),
        ({"server": "https://h"}, {"exec": {"command": "x"}}),
        ({"server": "https://h"}, {"client-certificate": "x"}),
        ({"server": "https://h"}, {"client-certificate-data": "?", "client-key-data": "?"}),
    ],
)
def test_a_kubeconfig_that_can_not_be_used_says_why(cluster: dict[str, Any], user: dict[str, Any]) -> None:
    with pytest.raises(KubeconfigError):
        current_server(_kubeconfig(cluster, user), Path("/"))
