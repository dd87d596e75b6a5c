"""source answers for ConfigMaps and Secrets on a real nats-server: to the right asker, about the right pod."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.source.handlers.configs import ConfigDesk
from shared.bus import Bus, RemoteError, connect
from shared.contracts.configs import ConfigMapData, ConfigMapQuery, ConfigsChanged, SecretQuery
from shared.contracts.registry import CONFIG_MAP, CONFIGS_CHANGED, SECRET
from tests.component.source.running import Shown, reader, running_source
from tests.support.eventually import eventually_async
from tests.support.nats_server import NatsServer

pytestmark = pytest.mark.nats

CANARY = "canary-5f1c"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\ndata: {{k: {value}}}\nbinaryData: {{b: /w==}}\n"
SECRET_YAML = (
    "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {b: /w==}\n" + f"stringData: {{token: {CANARY}}}\n"
)
POD = """apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, uid: {name}}}
spec:
  containers:
  - name: c
    image: busybox:1.36
    envFrom: [{{configMapRef: {{name: m}}}}]
    volumeMounts: [{{name: v, mountPath: /v}}]
  volumes: [{{name: v, secret: {{secretName: s}}}}]
"""


def pod(name: str = "p", namespace: str = "default") -> str:
    return POD.format(name=name, namespace=namespace)


@asynccontextmanager
async def worker(server: NatsServer) -> AsyncIterator[tuple[Bus, list[str]]]:
    """podworker's connection, and the pods that it was told of."""
    bus = await connect(server.credentials("podworker"), node="n1", service="podworker", name="podworker-0")
    told: list[str] = []

    def note(_: str, changed: ConfigsChanged) -> None:
        told.extend(changed.uids)

    await bus.on_hint(CONFIGS_CHANGED, note)
    await bus.flush()
    yield bus, told
    await bus.drain()


async def code_of(bus: Bus, uid: str, secret: str) -> str:
    with pytest.raises(RemoteError) as error:
        await bus.request(SECRET, SecretQuery(uid=uid, name=secret))
    assert CANARY not in str(error.value)
    return error.value.code


async def test_a_pod_gets_what_it_refers_to_in_its_namespace(
    nats_server: NatsServer, data: Path, manifests: Path
) -> None:
    (manifests / "all.yaml").write_text("---\n".join([MAP.format(value="v"), SECRET_YAML, pod()]))
    async with (
        worker(nats_server) as (bus, _),
        running_source(nats_server, data, manifests),
        reader(nats_server) as seen,
    ):
        await eventually_async(lambda: seen.pods, within=5)
        found = await bus.request(CONFIG_MAP, ConfigMapQuery(uid="p", name="m"))
        assert found == ConfigMapData(namespace="default", name="m", data={"k": b"v"}, binary_data={"b": b"\xff"})
        secret = await bus.request(SECRET, SecretQuery(uid="p", name="s"))
        assert (secret.type, secret.data) == ("Opaque", {"b": b"\xff", "token": CANARY.encode()})


async def test_a_secret_is_refused_to_a_pod_that_does_not_refer_to_it(
    nats_server: NatsServer, data: Path, manifests: Path
) -> None:
    other = "apiVersion: v1\nkind: Secret\nmetadata: {name: other}\nstringData: {token: x}\n"
    (manifests / "all.yaml").write_text("---\n".join([SECRET_YAML, other, pod(), pod("far", "elsewhere")]))
    async with (
        worker(nats_server) as (bus, _),
        running_source(nats_server, data, manifests),
        reader(nats_server) as seen,
    ):
        await eventually_async(lambda: len(seen.pods) == 2, within=5)
        assert await code_of(bus, "p", "other") == "forbidden"
        assert await code_of(bus, "far", "s") == "not_found"  # its own namespace has none
        assert await code_of(bus, "nobody", "s") == "conflict"


async def test_nothing_is_missing_before_the_manifests_were_read(
    nats_server: NatsServer, data: Path, manifests: Path
) -> None:
    """After a restart pods are known at once, Secrets only from their files: no worker may think them gone."""
    (manifests / "all.yaml").write_text("---\n".join([SECRET_YAML, pod()]))
    async with running_source(nats_server, data, manifests), reader(nats_server) as seen:
        await eventually_async(lambda: seen.pods, within=5)
    async with worker(nats_server) as (bus, _):
        source = await connect(nats_server.credentials("source"), node="n1", service="source", name="source")
        desk = ConfigDesk(source, ["file"])
        await desk.serve()
        await source.flush()
        assert await code_of(bus, "p", "s") == "unavailable"
        await source.drain()


async def test_pods_are_told_of_a_change_of_what_they_refer_to(
    nats_server: NatsServer, data: Path, manifests: Path
) -> None:
    (manifests / "m.yaml").write_text(MAP.format(value="v"))
    (manifests / "s.yaml").write_text(SECRET_YAML)
    (manifests / "p.yaml").write_text(pod())
    (manifests / "q.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: q, uid: q}\nspec:\n  containers: [{name: c, image: x:1}]\n"
    )
    async with worker(nats_server) as (bus, told), running_source(nats_server, data, manifests):
        await eventually_async(lambda: told, within=5)  # at the start: who waited may ask now
        told.clear()
        (manifests / "m.yaml").write_text(MAP.format(value="w"))
        await eventually_async(lambda: told == ["p"], within=5)
        found = await bus.request(CONFIG_MAP, ConfigMapQuery(uid="p", name="m"))
        assert found.data == {"k": b"w"}
        told.clear()
        (manifests / "s.yaml").unlink()
        await eventually_async(lambda: told == ["p"], within=5)
        assert await code_of(bus, "p", "s") == "not_found"


async def test_a_missing_object_is_told_at_the_pods_manifest(
    nats_server: NatsServer, data: Path, manifests: Path
) -> None:
    """Case 07: also when it is removed under a running pod."""

    def warnings(seen: Shown) -> list[str]:
        return [warning.message for warning in seen.marker.warnings] if seen.marker else []

    (manifests / "m.yaml").write_text(MAP.format(value="v"))
    (manifests / "p.yaml").write_text(pod())
    async with running_source(nats_server, data, manifests), reader(nats_server) as seen:
        wanted = 'Pod "default/p" needs Secret "default/s" (volume v), which no manifest holds'
        await eventually_async(lambda: warnings(seen) == [wanted], within=5)
        (manifests / "s.yaml").write_text(SECRET_YAML)
        await eventually_async(lambda: warnings(seen) == [], within=5)
        (manifests / "m.yaml").unlink()
        wanted = 'Pod "default/p" needs ConfigMap "default/m" (container c), which no manifest holds'
        await eventually_async(lambda: warnings(seen) == [wanted], within=5)
        assert seen.names == {"p-n1"}


async def test_a_secret_is_in_no_database_and_in_no_message_about_its_faults(
    nats_server: NatsServer, data: Path, manifests: Path
) -> None:
    """Whatever is wrong with its manifest."""
    (manifests / "good.yaml").write_text("---\n".join([MAP.format(value="v"), SECRET_YAML, pod()]))
    faulty = (
        f"stringData: {{token: [{CANARY}]}}",
        f"data: {{token: {CANARY}}}",
        f"data: {{token: '{CANARY} '}}",
        f"stringData: {{token: {{deep: {CANARY}}}}}",
        f"stringData: {CANARY}",
        f"type: [{CANARY}]",
        f'stringData: {{token: "{CANARY}\\q"}}',
        f"stringData: {{token: {CANARY}",
        f"stringData: {{token: *{CANARY}}}",
        f"stringData:\n  token: {CANARY}: x",
        f"stringData: {{token: 5, other: !!binary {CANARY}}}",
        f"metadata: {{name: s}}\nstringData: {{token: {CANARY}}}",
    )
    for number, text in enumerate(faulty):
        head = "apiVersion: v1\nkind: Secret\nmetadata: {name: " + f"f{number}" + "}\n"
        (manifests / f"f{number}.yaml").write_text(head + text + "\n")
        (manifests / f"g{number}.json").write_text(
            '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"g'
            + f'{number}"'
            + "},"
            + f'"stringData":{{"token":"{CANARY}{"," if number else chr(92)}'
        )
    async with running_source(nats_server, data, manifests), reader(nats_server) as seen:
        await eventually_async(lambda: seen.marker and len(seen.marker.errors) >= len(faulty), within=10)
        assert seen.marker is not None
        assert CANARY not in repr(seen.marker)
        assert all(CANARY not in str(p.body) for p in seen.pods.values())
    for path in data.glob("source.db*"):
        assert CANARY.encode() not in path.read_bytes()
    with sqlite3.connect(data / "source.db") as link:
        assert "m" in {name for (name,) in link.execute("select name from objects")}
