"""One server and one API for the tests that only ask; the others make their own."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cli.nats_config import render
from shared.contracts.acl import all_permissions
from tests.component.api.other_services import OtherServices
from tests.component.api.process import ApiProcess
from tests.support.nats_server import NatsServer


@pytest.fixture(scope="module")
def module_nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """With the permissions of a real node: what a service may not say or hear shows here."""
    directory = tmp_path_factory.mktemp("nats")
    passwords = dict.fromkeys(all_permissions("n1"), "secret")
    text = render(host="127.0.0.1", port=0, node="n1", store=directory, passwords=passwords)
    server = NatsServer(directory, config=text[text.index("system_account") :])
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def api(module_nats: NatsServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    process = ApiProcess(tmp_path_factory.mktemp("data"), module_nats)
    process.start()
    yield process
    process.stop()


@pytest.fixture
async def others(module_nats: NatsServer, tmp_path: Path) -> AsyncIterator[OtherServices]:
    services = OtherServices(module_nats, tmp_path)
    await services.start()
    yield services
    await services.stop()


@pytest.fixture
def own_api(nats_server: NatsServer, tmp_path: Path) -> Iterator[ApiProcess]:
    """A process of the test's own, to be killed or left without its server."""
    process = ApiProcess(tmp_path / "data", nats_server)
    process.start()
    yield process
    process.stop()


@pytest.fixture
def unstarted_api(nats_server: NatsServer, tmp_path: Path) -> Iterator[ApiProcess]:
    """For tests about its start; whatever they leave running is killed."""
    process = ApiProcess(tmp_path / "data", nats_server)
    yield process
    process.stop(signal.SIGKILL)


@pytest.fixture
async def own_others(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[OtherServices]:
    services = OtherServices(nats_server, tmp_path)
    await services.start()
    yield services
    await services.stop()
