"""Tokens of service accounts: bound to the pod, renewed in time, kept over an outage while they're good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.source.core.tokens import IssuedToken, issued_token, token_request
from services.source.handlers.tokens import Tokens
from shared.bus import RemoteError
from shared.kube.times import rfc3339
from tests.support.model_lists import ModelLists

PATH = "/api/v1/namespaces/shop/serviceaccounts/seller/token"
POD: dict[str, Any] = {
    "metadata": {"namespace": "shop", "name": "web", "uid": "u1"},
    "spec": {"serviceAccountName": "seller"},
}


class HandClock:
    def __init__(self) -> None:
        self.seconds = 1_800_000_000.0

    def now(self) -> float:
        return self.seconds

    def boot_seconds(self) -> float:
        return self.seconds

    def boot_id(self) -> str:
        return "b"


def server_at(clock: HandClock, life: int = 3600) -> tuple[ModelLists, Callable[[str], None]]:
    server = ModelLists()

    def issue(text: str) -> None:
        server.answers[PATH] = {"status": {"token": text, "expirationTimestamp": rfc3339(clock.now() + life)}}

    issue("first")
    return server, issue


def test_a_token_is_asked_for_the_pods_account_and_bound_to_the_pod() -> None:
    path, body = token_request(POD, "vault", 7200)
    assert path == PATH
    assert body["spec"] == {
        "audiences": ["vault"],
        "expirationSeconds": 7200,
        "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u1"},
    }
    assert "audiences" not in token_request(POD, "", 3600)[1]["spec"]


@given(life=st.floats(600, 1e7), age=st.floats(0, 1e7))
def test_a_token_is_renewed_at_four_fifths_of_its_life_and_each_day(life: float, age: float) -> None:
    token = IssuedToken("t", 0.0, life)
    assert token.is_fresh(age) == (age < min(life * 0.8, 86400))


async def test_a_token_is_used_until_it_is_to_be_renewed() -> None:
    clock = HandClock()
    server, issue = server_at(clock)
    tokens = Tokens(server, clock)
    assert (await tokens.get(POD, "", 3600)).text == "first"
    issue("second")
    clock.seconds += 3600 * 0.79
    assert (await tokens.get(POD, "", 3600)).text == "first"
    clock.seconds += 3600 * 0.02
    issue("second")
    assert (await tokens.get(POD, "", 3600)).text == "second"
    assert len(server.posted) == 2


async def test_while_the_server_is_away_the_old_token_is_given_as_long_as_it_is_good() -> None:
    clock = HandClock()
    server, _ = server_at(clock)
    tokens = Tokens(server, clock)
    await tokens.get(POD, "", 3600)
    server.go_down()
    clock.seconds += 3599
    assert (await tokens.get(POD, "", 3600)).text == "first"
    clock.seconds += 2
    with pytest.raises(RemoteError) as error:
        await tokens.get(POD, "", 3600)
    assert error.value.code == "unavailable"


async def test_of_pods_that_are_gone_no_token_stays() -> None:
    clock = HandClock()
    server, issue = server_at(clock)
    tokens = Tokens(server, clock)
    await tokens.get(POD, "", 3600)
    tokens.keep({"other"})
    issue("second")
    assert (await tokens.get(POD, "", 3600)).text == "second"


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"status": None},
        {"status": {"token": ""}},
        {"status": {"token": "t"}},
        {"status": {"token": "t", "expirationTimestamp": "soon"}},
    ],
)
def test_an_answer_without_a_token_is_none(answer: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        issued_token(answer, 1.0)


def test_a_token_is_in_no_repr() -> None:
    assert "secret" not in repr(IssuedToken("secret", 1.0, 2.0))
