"""Which credentials of which Secret a registry is shown, and who may have an image that is there."""

from __future__ import annotations

import base64
import json

import pytest

from services.podworker.core.config_objects import ConfigObject
from services.podworker.core.image_access import ALWAYS_VERIFY, NEVER_VERIFY, PulledImage, may_use
from services.podworker.core.image_credentials import (
    DOCKER_CFG,
    DOCKER_CONFIG_JSON,
    Credential,
    UnusableSecret,
    credentials_of,
    failures,
    matching,
)


def secret(kind: str, entries: object, name: str = "s") -> ConfigObject:
    key = ".dockercfg" if kind == DOCKER_CFG else ".dockerconfigjson"
    return ConfigObject(kind="Secret", namespace="d", name=name, type=kind, data={key: json.dumps(entries).encode()})


def credential(server: str, user: str = "u", password: str = "p") -> Credential:
    return Credential(username=user, password=password, server=server, secret="s")


def auth(text: str) -> dict[str, str]:
    return {"auth": base64.b64encode(text.encode()).decode()}


def test_both_types_of_secret_are_read_and_auth_wins() -> None:
    entry = {"username": "x", "password": "y", **auth("a:b:c")}
    for found in (secret(DOCKER_CONFIG_JSON, {"auths": {"r.test": entry}}), secret(DOCKER_CFG, {"r.test": entry})):
        (one,) = credentials_of(found)
        assert (one.username, one.password, one.server) == ("a", "b:c", "r.test")
    (plain,) = credentials_of(secret(DOCKER_CFG, {"r.test": {"username": "x", "password": "y"}}))
    assert (plain.username, plain.password) == ("x", "y")


@pytest.mark.parametrize(
    "found",
    [
        secret("Opaque", {}),
        secret(DOCKER_CFG, [1]),
        secret(DOCKER_CONFIG_JSON, {"auths": {"r.test": {"auth": "%%"}}}),
        secret(DOCKER_CONFIG_JSON, {"auths": {"r.test": auth("no colon but hunter2")}}),
        ConfigObject(kind="Secret", namespace="d", name="s", type=DOCKER_CFG, data={".dockercfg": b"{hunter2"}),
    ],
)
def test_a_secret_that_can_not_be_used_says_why_without_a_value(found: ConfigObject) -> None:
    with pytest.raises(UnusableSecret) as told:
        credentials_of(found)
    assert "hunter2" not in str(told.value)


def test_no_password_is_in_a_repr() -> None:
    assert "hunter2" not in repr(credential("r.test", password="hunter2"))


@pytest.mark.parametrize(
    ("server", "reference", "matches"),
    [
        ("r.test", "r.test/a:1", True),
        ("https://r.test/v1/", "r.test/a:1", True),
        ("http://r.test:5000/v2/", "r.test:5000/a", True),
        ("r.test", "r.test:5000/a", False),
        ("*.test", "r.test/a", True),
        ("*.test", "x.r.test/a", False),
        ("r.test/team", "r.test/team/a", True),
        ("r.test/team", "r.test/other/a", False),
        ("other.test", "r.test/a", False),
        ("https://index.docker.io/v1/", "busybox:1.36", True),
        ("https://index.docker.io/v1/", "library/busybox", True),
        ("https://index.docker.io/v1/", "docker.io/library/busybox", True),
        ("https://index.docker.io/v1/", "r.test/busybox", False),
        ("r.test:port", "r.test/a", False),
    ],
)
def test_credentials_match_by_registry_and_path(server: str, reference: str, matches: bool) -> None:
    assert bool(matching([credential(server)], reference)) is matches


def test_the_longest_match_comes_first_then_the_order_of_the_secrets() -> None:
    short, other = credential("r.test", "1"), credential("r.test", "2")
    long, twin = credential("r.test/team", "3"), credential("r.test", "1")
    assert matching([short, long, other, twin], "r.test/team/a:1") == [long, short, other]


def test_several_refusals_are_told_once_each() -> None:
    assert failures(["no"]) == "no"
    assert failures(["a", "b", "a"]) == "[a, b]"


def pulled(reference: str, *access: str, image_id: str = "sha256:1") -> PulledImage:
    return PulledImage(image_id=image_id, reference=reference, pulled_at=0, used_at=0, access=access)


def test_an_image_that_nobody_pulled_is_for_all_unless_all_are_verified() -> None:
    assert may_use("r.test/a:1", [], [])
    assert not may_use("r.test/a:1", [], [], ALWAYS_VERIFY)


def test_an_image_pulled_with_a_secret_is_for_those_who_show_it() -> None:
    mine = credential("r.test")
    records = [pulled("r.test/a:1", mine.fingerprint)]
    assert may_use("r.test/a:2", records, [credential("elsewhere", "u", "p")])
    assert not may_use("r.test/a:1", records, [])
    assert not may_use("r.test/a:1", records, [credential("r.test", password="q")])
    assert not may_use("sha256:1", records, []) and may_use("sha256:1", records, [mine])
    assert may_use("r.test/a:1", records, [], NEVER_VERIFY)
    assert may_use("r.test/a:1", [pulled("r.test/a:1", mine.fingerprint, "")], [])


def test_a_name_that_somebody_else_has_given_is_for_all() -> None:
    """A preloaded image that is pulled under another name, too, with a Secret."""
    records = [pulled("r.test/a:1", credential("r.test").fingerprint)]
    assert may_use("busybox:1.36", records, [])
    assert not may_use("busybox:1.36", records, [], ALWAYS_VERIFY)


def test_a_pull_that_never_ended_gives_access_to_nobody() -> None:
    assert not may_use("r.test/a:1", [pulled("r.test/a:1", image_id="")], [credential("r.test")])
    assert may_use("r.test/a:1", [pulled("r.test/a:2", image_id="")], [])
