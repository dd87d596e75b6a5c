"""ConfigMaps and Secrets of an API server, for the pods that refer to them."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, cast

import pytest

from services.source.core.api_pods import ApiListing, plan_api
from services.source.core.state import SourceState
from services.source.handlers.cluster_configs import ClusterConfigs
from services.source.handlers.configs import ConfigDesk
from shared.bus import Bus, RemoteError
from shared.contracts.configs import ConfigMapQuery, SecretQuery
from tests.support.model_lists import ModelLists
from tests.support.virtual_loop import run_virtually

MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"


class Joined:
    def __init__(self) -> None:
        self.server = ModelLists()
        self.cluster = ClusterConfigs(self.server, Random(1))
        self.desk = ConfigDesk(cast(Bus, object()), [], self.cluster)
        self.state = SourceState()

    def list_pods(self, *pods: dict[str, Any]) -> None:
        plan = plan_api(self.state, ApiListing("kubeconfig", pods), 1.0, {})
        self.state = plan.state
        assert self.desk.took("api", plan, is_listed=True) == []

    def told(self) -> list[str]:
        uids = list(self.desk._changed)
        self.desk._changed.clear()
        return uids

    async def map_of(self, uid: str) -> bytes:
        return (await self.desk.config_map(ConfigMapQuery(uid=uid, name="m"))).data["k"]


def a_pod(uid: str, *names: str) -> dict[str, Any]:
    sources = [{"configMapRef": {"name": name}} for name in names]
    return {
        "metadata": {"namespace": "default", "name": uid, "uid": uid, "resourceVersion": "1"},
        "spec": {"containers": [{"name": "c", "image": "x:1", "envFrom": [*sources, {"secretRef": {"name": "s"}}]}]},
    }


def a_map(text: str) -> dict[str, Any]:
    return {"metadata": {"namespace": "default", "name": "m"}, "data": {"k": text}}


def virtually(body: Callable[[Joined], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        joined = Joined()
        task = asyncio.create_task(joined.cluster.run())
        await body(joined)
        assert not task.done()
        task.cancel()
        await asyncio.wait([task])

    run_virtually(run)


def test_only_what_pods_refer_to_is_asked_for_and_once_for_all_of_them() -> None:
    async def body(one: Joined) -> None:
        one.list_pods(a_pod("p", "m"), a_pod("q", "m"))
        await asyncio.sleep(5)
        assert sorted(one.server.requests) == sorted(
            f"{how} {path}" for how in ("GET", "WATCH") for path in (MAPS, SECRETS)
        )
        one.list_pods()
        await asyncio.sleep(1)
        one.server.drop_connections()
        await asyncio.sleep(30)
        assert len(one.server.requests) == 4

    virtually(body)


def test_a_change_is_told_to_the_pods_that_refer_to_it() -> None:
    """E07: made later, it is there for the pod that waits."""

    async def body(one: Joined) -> None:
        one.list_pods(a_pod("p", "m"), a_pod("q", "other"))
        await asyncio.sleep(1)
        one.told()
        with pytest.raises(RemoteError) as error:
            await one.map_of("p")
        assert error.value.code == "not_found"
        one.server.put(f"{MAPS}/m", a_map("1"))
        await asyncio.sleep(1)
        assert one.told() == ["p"]
        assert await one.map_of("p") == b"1"
        one.server.put(f"{MAPS}/m", a_map("2"))
        await asyncio.sleep(1)
        assert one.told() == ["p"]
        assert await one.map_of("p") == b"2"

    virtually(body)


def test_what_is_known_stays_while_the_server_is_away() -> None:
    async def body(one: Joined) -> None:
        one.server.put(f"{MAPS}/m", a_map("1"))
        one.list_pods(a_pod("p", "m"))
        await asyncio.sleep(1)
        one.server.go_down()
        await asyncio.sleep(300)
        assert await one.map_of("p") == b"1"

    virtually(body)


def test_nothing_is_said_to_be_missing_before_the_server_has_answered() -> None:
    async def body(one: Joined) -> None:
        one.server.go_down()
        one.list_pods(a_pod("p", "m"))
        with pytest.raises(RemoteError) as error:
            await one.map_of("p")
        assert error.value.code == "unavailable"
        assert "refused" in error.value.message

    virtually(body)


def test_a_server_that_does_not_know_of_the_pod_yet_is_asked_again_at_once() -> None:
    """The Node authorizer learns a moment later which pods the node has."""

    async def body(one: Joined) -> None:
        one.server.put(f"{MAPS}/m", a_map("1"))
        one.server.refusal = 403
        one.list_pods(a_pod("p", "m"))
        asking = asyncio.create_task(one.map_of("p"))
        await asyncio.sleep(0.6)
        one.server.refusal = 0
        assert await asking == b"1"

    virtually(body)


def test_a_secret_goes_to_a_pod_that_refers_to_it_and_to_no_other() -> None:
    async def body(one: Joined) -> None:
        secret = {"metadata": {"namespace": "default", "name": "s"}, "data": {"k": b64encode(b"v").decode()}}
        one.server.put(f"{SECRETS}/s", secret)
        one.list_pods(a_pod("p"))
        found = await one.desk.secret(SecretQuery(uid="p", name="s"))
        assert (found.data, found.type) == ({"k": b"v"}, "Opaque")
        for query, code in (
            (SecretQuery(uid="p", name="t"), "forbidden"),
            (SecretQuery(uid="x", name="s"), "conflict"),
        ):
            with pytest.raises(RemoteError) as error:
                await one.desk.secret(query)
            assert error.value.code == code

    virtually(body)
