"""Who refers to what, and whom a change concerns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from services.source.core.manifest import ObjectKey
from services.source.core.references import Referrer, concerned, missing_references, referrer
from services.source.core.state import SourceObject
from shared.kube.pod import Pod
from shared.kube.references import ConfigRef, referenced, uses

EVERYWHERE: dict[str, Any] = {
    "initContainers": [
        {"name": "i", "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "init", "key": "k"}}}]}
    ],
    "containers": [
        {
            "name": "c",
            "env": [
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": "env", "key": "k"}}},
                {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "C", "value": "v"},
            ],
            "envFrom": [{"configMapRef": {"name": "from"}}, {"secretRef": {"name": "from", "optional": True}}],
        }
    ],
    "volumes": [
        {"name": "v", "configMap": {"name": "volume"}},
        {"name": "w", "secret": {"secretName": "volume", "optional": True}},
        {"name": "x", "projected": {"sources": [{"secret": {"name": "part"}}, {"configMap": {"name": "part"}}]}},
        {"name": "y", "emptyDir": {}},
    ],
}


def an_object(kind: str, name: str, hash_: str = "1") -> SourceObject:
    return SourceObject(ObjectKey(kind, "default", name), "f.yaml", 3, 1, "default", name, "", hash_, {})


def configs(*items: SourceObject) -> Mapping[ObjectKey, SourceObject]:
    return {item.key: item for item in items}


def a_pod(uid: str, **spec: Any) -> Referrer:
    body = {"metadata": {"name": "p-n1"}, "spec": {"containers": [{"name": "c"}], **spec}}
    key = ObjectKey("Pod", "default", "p")
    return referrer(SourceObject(key, "p.yaml", 2, 1, "default", "p-n1", uid, "h", body))


def test_every_reference_of_a_pod_is_found() -> None:
    pod = msgspec.convert({"metadata": {"name": "p"}, "spec": EVERYWHERE}, Pod)
    found = list(uses(pod))
    names = {"ConfigMap": ["init", "from", "volume", "part"], "Secret": ["env", "from", "volume", "part"]}
    assert referenced(found) == {
        ConfigRef("ConfigMap" if kind == "ConfigMap" else "Secret", name) for kind in names for name in names[kind]
    }
    assert {use.ref.name for use in found if use.optional} == {"from", "volume"}
    assert [use.where for use in found][:2] == ["container i", "container c"]


def test_what_is_missing_is_told_once_per_object_with_its_places() -> None:
    pod = a_pod("u", **EVERYWHERE)
    there = configs(*(an_object("ConfigMap", n) for n in ("init", "from", "volume")), an_object("Secret", "env"))
    told = [(problem.path, problem.line, problem.message) for problem in missing_references([pod], there)]
    assert told == [
        ("p.yaml", 2, 'Pod "default/p" needs Secret "default/part" (volume x), which no manifest holds'),
        ("p.yaml", 2, 'Pod "default/p" needs ConfigMap "default/part" (volume x), which no manifest holds'),
    ]


def test_a_change_concerns_those_who_refer_to_it() -> None:
    one = a_pod("one", volumes=[{"name": "v", "configMap": {"name": "m"}}])
    two = a_pod("two", volumes=[{"name": "v", "secret": {"secretName": "m"}}])
    before = configs(an_object("ConfigMap", "m"), an_object("Secret", "m"))
    assert concerned([one, two], before, before) == []
    assert concerned([one, two], before, configs(an_object("ConfigMap", "m", "2"), an_object("Secret", "m"))) == ["one"]
    assert concerned([one, two], before, configs(an_object("ConfigMap", "m"))) == ["two"]
    assert concerned([one, two], {}, before) == ["one", "two"]
    assert one.refers_to(ConfigRef("ConfigMap", "m")) is not one.refers_to(ConfigRef("Secret", "m"))
