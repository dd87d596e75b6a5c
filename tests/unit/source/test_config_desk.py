"""Who is answered what, over several sources and before they are listed."""

from __future__ import annotations

from typing import Any, cast

import pytest

from services.source.core.merge import Listing, SourcePlan, plan_sources
from services.source.core.state import SourceState
from services.source.handlers.configs import ConfigDesk
from shared.bus import Bus, RemoteError
from shared.contracts.configs import ConfigMapQuery, SecretQuery

POD = """apiVersion: v1
kind: Pod
metadata: {{name: {name}, uid: {name}}}
spec:
  containers: [{{name: c, image: "x:1", envFrom: [{{configMapRef: {{name: m}}}}]}}]
"""
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\ndata: {{k: {value}}}\n"
FILE, URL = "/m/a.yaml", "http://h/pods"


def plan(source: str, *documents: str, path: str = "") -> SourcePlan:
    place = path or (FILE if source == "file" else URL)
    listing = Listing(origin=place, files={place: "---\n".join(documents).encode()})
    return plan_sources(SourceState(), listing, "n1", 1.0, source=source)


def desk(*sources: str) -> ConfigDesk:
    return ConfigDesk(cast(Bus, object()), sources)


def told(of: ConfigDesk) -> list[str]:
    """The pods that would be hinted at."""
    uids = list(of._changed)
    of._changed.clear()
    return uids


async def value(of: ConfigDesk, uid: str = "p") -> bytes:
    return (await of.config_map(ConfigMapQuery(uid=uid, name="m"))).data["k"]


async def refusal(of: ConfigDesk, query: Any) -> str:
    with pytest.raises(RemoteError) as error:
        await (of.secret(query) if isinstance(query, SecretQuery) else of.config_map(query))
    return error.value.code


async def test_a_pod_may_use_what_another_source_holds() -> None:
    one = desk("file", "http")
    assert one.took("http", plan("http", MAP.format(value="url")), is_listed=True) == []
    assert one.took("file", plan("file", POD.format(name="p")), is_listed=True) == []
    assert await value(one) == b"url"


async def test_of_two_the_file_wins() -> None:
    """Both are told as an error where they stand; here the answer must only be the same each time."""
    one = desk("file", "http")
    one.took("http", plan("http", MAP.format(value="url")), is_listed=True)
    one.took("file", plan("file", MAP.format(value="file"), POD.format(name="p")), is_listed=True)
    assert await value(one) == b"file"


async def test_nothing_is_missing_while_a_source_has_not_answered() -> None:
    one = desk("file", "http")
    assert one.took("file", plan("file", POD.format(name="p")), is_listed=True) == []
    query = ConfigMapQuery(uid="p", name="m")
    assert await refusal(one, query) == "unavailable"
    assert await refusal(one, ConfigMapQuery(uid="other", name="m")) == "unavailable"
    one.took("http", plan("http"), is_listed=False)
    assert await refusal(one, query) == "unavailable"
    told(one)
    one.took("http", plan("http"), is_listed=True)
    assert told(one) == ["p"]  # it may ask again now
    assert await refusal(one, query) == "not_found"
    assert await refusal(one, ConfigMapQuery(uid="other", name="m")) == "conflict"


async def test_what_is_there_is_given_before_all_have_answered() -> None:
    one = desk("file", "http")
    one.took("file", plan("file", MAP.format(value="v"), POD.format(name="p")), is_listed=True)
    assert await value(one) == b"v"


async def test_only_what_the_pod_refers_to_is_given() -> None:
    one = desk("file")
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: m}\nstringData: {k: x}\n"
    one.took("file", plan("file", secret, POD.format(name="p")), is_listed=True)
    assert await refusal(one, SecretQuery(uid="p", name="m")) == "forbidden"  # it refers to the ConfigMap of that name
    assert await refusal(one, ConfigMapQuery(uid="p", name="other")) == "forbidden"


async def test_the_problem_is_told_where_the_pod_stands_now() -> None:
    one = desk("file")
    for path in ("/m/a.yaml", "/m/b.yaml"):
        (problem,) = one.took("file", plan("file", POD.format(name="p"), path=path), is_listed=True)
        assert problem.path == path


async def test_a_change_is_told_to_those_who_refer_to_it_once() -> None:
    one = desk("file")
    pods = [POD.format(name=name) for name in ("p", "q")]
    one.took("file", plan("file", MAP.format(value="one"), *pods), is_listed=True)
    told(one)
    one.took("file", plan("file", MAP.format(value="one"), *pods), is_listed=True)
    assert told(one) == []
    one.took("file", plan("file", MAP.format(value="two"), *pods), is_listed=True)
    assert sorted(told(one)) == ["p", "q"]
    assert await value(one, "q") == b"two"
