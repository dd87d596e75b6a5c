"""The bus's permissions on a real nats-server: owner and consumers get through with every entry, others don't."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import nats.errors
import pytest

from cli.nats_config import render
from shared.bus import Bus, BusUnavailable, Credentials, connect
from shared.bus.watch import BucketWatch
from shared.contracts.acl import CONFIDENTIAL, all_permissions, buckets_of, permissions
from shared.contracts.registry import BUCKETS, CONFIGS_CHANGED, HINTS, KEYS, REQUESTS
from shared.contracts.subject import SERVICES, AnyHint, AnyKey, AnyRequest, Bucket, ServiceName
from tests.support.eventually import eventually_async
from tests.support.nats_server import NatsServer, nats_binary

pytestmark = pytest.mark.nats
NODE = "n1.example"
PASSWORDS = {name: f"{name}-secret" for name in all_permissions(NODE)}


class PermittedServer(NatsServer):
    """Runs the configuration that the set-up writes."""

    def start(self) -> None:
        text = render(host="127.0.0.1", port=self.port, node=NODE, store=self.directory / "store", passwords=PASSWORDS)
        path = self.directory / "nats.conf"
        path.write_text(text)
        log = (self.directory / "nats.log").open("ab")
        self._process = subprocess.Popen([nats_binary(), "-c", str(path)], stdout=log, stderr=log)
        from tests.support.eventually import eventually

        eventually(self._answers, within=10)

    def credentials(self, service: str) -> Credentials:
        return Credentials(url=self.url, user=service, password=PASSWORDS[service])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PermittedServer]:
    made = PermittedServer(tmp_path_factory.mktemp("nats"))
    made.start()
    yield made
    made.stop()


@asynccontextmanager
async def buses(server: PermittedServer) -> AsyncIterator[dict[ServiceName, Bus]]:
    made = {name: await connect(server.credentials(name), node=NODE, service=name, name=name) for name in SERVICES}
    for name, bus in made.items():
        bus._js._timeout = 0.5
        assert bus.service == name
    try:
        yield made
    finally:
        await asyncio.gather(*(bus.drain() for bus in made.values()))


def label(entry: Any) -> str:
    return f"{getattr(entry, 'service', '')}{getattr(entry, 'what', '')}{getattr(entry, 'prefix', '')}"


def note(heard: set[str], name: str, _id: str, _body: Any) -> None:
    heard.add(name)


@pytest.mark.parametrize("request_", REQUESTS, ids=label)
async def test_a_request_reaches_its_owner_from_its_consumers_only(
    server: PermittedServer, request_: AnyRequest
) -> None:
    async with buses(server) as all_buses:
        asked: list[Any] = []

        async def answer(body: Any) -> Any:
            asked.append(body)
            return request_.example_reply

        await all_buses[request_.service].serve(request_, answer)
        await all_buses[request_.service].flush()
        for name, bus in all_buses.items():
            asked.clear()
            if name in request_.consumers:
                assert await bus.request(request_, request_.example) == request_.example_reply
            else:
                with pytest.raises(BusUnavailable):
                    await bus.request(request_, request_.example, timeout=0.2)
                assert not asked


@pytest.mark.parametrize("hint", HINTS, ids=label)
async def test_a_hint_goes_from_its_owner_to_its_consumers_only(server: PermittedServer, hint: AnyHint) -> None:
    async with buses(server) as all_buses:
        heard: set[str] = set()
        for name, bus in all_buses.items():
            await bus.on_hint(hint, partial(note, heard, name))
            await bus.flush()
        for name, bus in all_buses.items():
            if name != hint.service:
                await bus.hint(hint, hint.example, "3")
                await bus.flush()
        assert heard == set()
        await all_buses[hint.service].hint(hint, hint.example, "3")
        await eventually_async(lambda: heard >= set(hint.consumers), within=5)
        assert heard == set(hint.consumers)


@pytest.mark.parametrize("key", KEYS, ids=label)
async def test_a_key_is_written_by_its_owner_only_and_seen_by_its_consumers(
    server: PermittedServer, key: AnyKey
) -> None:
    async with buses(server) as all_buses:
        owner = all_buses[key.owner]
        id_ = "with.dots" if key.id else ""
        await owner.put(key, key.example, id_)
        for name, bus in all_buses.items():
            if name == key.owner:
                continue
            bus.service = key.owner  # past the client's own check: only the server refuses now
            with pytest.raises(BusUnavailable):
                await bus.put(key, key.example, id_)
            bus.service = name
        for name, bus in all_buses.items():
            if key.bucket not in buckets_of(name):
                continue
            found: dict[str, bytes] = {}
            watch = BucketWatch(bus, key.bucket, found.update, lambda key, value: None)
            task = asyncio.create_task(watch.run())
            await asyncio.wait_for(watch.listed.wait(), 5)
            assert key.key(id_) in found, name
            task.cancel()
        await owner.delete(key, id_)


@pytest.mark.parametrize("bucket", BUCKETS, ids=label)
async def test_marks_of_deleted_keys_are_dropped_by_the_owner_of_such_keys_only(
    server: PermittedServer, bucket: Bucket
) -> None:
    (family,) = (key for key in KEYS if key.bucket == bucket and key.prefix == "pod")
    async with buses(server) as all_buses:
        owner = all_buses[family.owner]
        for name, bus in all_buses.items():
            await owner.put(family, family.example, "gone")
            await owner.delete(family, "gone")
            await owner.put(family, family.example, "stays")
            if name == family.owner:
                assert await bus.forget_deleted(bucket, older_than=0) >= 1
                assert await bus.forget_deleted(bucket, older_than=0) == 0
            else:
                with pytest.raises(BusUnavailable):
                    await bus.forget_deleted(bucket, older_than=0)


async def test_any_service_that_uses_a_bucket_may_be_the_first_to_make_it(tmp_path: Path) -> None:
    for name in SERVICES:
        own = PermittedServer(tmp_path / name)
        own.start()
        try:
            bus = await connect(own.credentials(name), node=NODE, service=name, name=name)
            await bus.announce("0.0.0", {})
            await bus.ensure_buckets()
            await bus.drain()
        finally:
            own.stop()


async def test_a_bucket_that_a_service_does_not_use_is_refused(server: PermittedServer) -> None:
    async with buses(server) as all_buses:
        for bucket in BUCKETS:
            await all_buses["api"].bucket(bucket)
            for name, bus in all_buses.items():
                if bucket in buckets_of(name):
                    continue
                with pytest.raises(BusUnavailable):
                    await bus.last_sequence(bucket)


@pytest.mark.parametrize("confidential", CONFIDENTIAL, ids=lambda one: one.what)
async def test_the_operator_neither_asks_for_a_secret_nor_overhears_one(
    server: PermittedServer, confidential: AnyRequest
) -> None:
    """It sees everything else: the request, and what other services say."""
    heard: list[tuple[str, bytes]] = []
    async with buses(server) as all_buses:
        operator = await connect(server.credentials("operator"), node=NODE, service="operator", name="operator")
        operator._js._timeout = 0.5

        async def note_message(message: Any) -> None:
            heard.append((message.subject, message.data))

        await operator._client.subscribe(">", cb=note_message)
        await operator.flush()
        asked: list[Any] = []

        async def answer(body: Any) -> Any:
            asked.append(body)
            return confidential.example_reply

        await all_buses["source"].serve(confidential, answer)
        await all_buses["source"].flush()
        assert await all_buses["podworker"].request(confidential, confidential.example) == confidential.example_reply
        await all_buses["source"].hint(CONFIGS_CHANGED, CONFIGS_CHANGED.example)
        await eventually_async(lambda: any(subject == CONFIGS_CHANGED.subject(NODE) for subject, _ in heard), within=5)
        asked.clear()
        with pytest.raises(BusUnavailable):
            await operator.request(confidential, confidential.example, timeout=0.3)
        assert not asked
        for subjects in (["_INBOX_podworker.>"], [">"]):
            with pytest.raises(nats.errors.TimeoutError):  # a stream would keep what its maker may not hear
                await operator._js.add_stream(name="LISTENER", subjects=subjects)
        secret = msgspec.json.encode(confidential.example_reply)
        assert secret not in [data for _, data in heard]
        await operator.drain()


async def test_nobody_gets_in_without_a_password(server: PermittedServer) -> None:
    for user, password in (("", ""), ("source", "wrong"), ("source", "")):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        await reader.readline()
        writer.write(f'CONNECT {{"user":"{user}","pass":"{password}","verbose":false}}\r\nPING\r\n'.encode())
        answer = await asyncio.wait_for(reader.readline(), 5)
        writer.close()
        assert answer.startswith(b"-ERR 'Authorization Violation'"), (user, answer)


def test_the_server_accepts_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "nats.conf"
    text = render(host="127.0.0.1", port=1, node=NODE, store=tmp_path / 'á "b" \\ \n', passwords=PASSWORDS)
    path.write_text(text)
    done = subprocess.run([nats_binary(), "-t", "-c", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("version", "has_it"), [((2, 9, 25), False), ((2, 10, 0), True), (None, False)])
def test_sync_interval_is_written_for_servers_that_know_it(
    tmp_path: Path, version: tuple[int, int, int] | None, has_it: bool
) -> None:
    text = render(host="127.0.0.1", port=1, node="n1", store=tmp_path, passwords={}, version=version)
    assert ("sync_interval:" in text) == has_it


def test_no_service_publishes_by_wildcards_but_in_its_own_streams() -> None:
    for service in SERVICES:
        for subject in permissions(service, NODE).publish:
            if "*" in subject or ">" in subject:
                assert subject.startswith(("$JS.", "$KV.", f"podbus.n1_example.{service}.e."))


def test_no_service_listens_to_another_services_inbox_or_keys() -> None:
    for service in SERVICES:
        for subject in permissions(service, NODE).subscribe:
            assert subject != ">"
            assert not subject.startswith(("$KV", "$JS"))
            assert not subject.startswith("_INBOX") or subject == f"_INBOX_{service}.>"
