"""The endpoints without a socket: what they make of the view and of owners that fail."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from services.api.core.access import Identity
from services.api.core.node_view import NodeView
from services.api.handlers.answers import Relay
from services.api.handlers.face import Face
from services.api.handlers.gate import NodeGate, NoPolicy
from services.api.handlers.web import web_app
from services.api.ports import PEER, AsgiApp, OwnerRefused, OwnerUnavailable
from shared.contracts.events import EventList, EventQuery
from shared.contracts.sources import SourceList
from shared.contracts.stats import PageQuery
from shared.contracts.streams import StreamCommand
from shared.contracts.worker import RunningPods
from tests.unit.api.test_node_view import _desired, _report

ADMIN = Identity("admin", ("podbus:admin",))


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def boot_seconds(self) -> float:
        return self.time

    def boot_id(self) -> str:
        return "b"


@dataclass
class Owners:
    """Every question fails with `error`."""

    error: Exception = field(default_factory=lambda: OwnerUnavailable("nobody"))
    connected: bool = True
    asked: list[Any] = field(default_factory=list)

    async def running_pods(self) -> RunningPods:
        raise self.error

    async def open_logs(self, command: StreamCommand) -> Any:
        self.asked.append(command)
        raise self.error

    async def prepare(self, command: StreamCommand) -> Any:
        self.asked.append(command)
        raise self.error

    async def summary(self, *, only_cpu_and_memory: bool) -> bytes:
        raise self.error

    async def page(self, query: PageQuery) -> tuple[int, bytes]:
        raise self.error

    async def events(self, query: EventQuery) -> EventList:
        raise self.error

    async def sources(self) -> SourceList:
        raise self.error


class NoTokens:
    def find(self, token: str) -> Identity | None:
        return None


@dataclass
class Answer:
    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytes = b""


async def ask(app: AsgiApp, path: str, *, query: str = "", who: Identity | None = ADMIN) -> Answer:
    answer = Answer()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answer.status, answer.headers = message["status"], dict(message["headers"])
        else:
            answer.body += message.get("body", b"")

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [],
        "client": ("192.0.2.1", 1),
        "extensions": {PEER: who},
    }
    await app(scope, receive, send)
    return answer


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def owners() -> Owners:
    return Owners()


@pytest.fixture
def view() -> NodeView:
    return NodeView(started_at=0.0)


@pytest.fixture
def app(view: NodeView, owners: Owners, clock: Clock) -> AsgiApp:
    return web_app(Face("n1", "0.1.0", view, owners, clock), NodeGate(NoTokens(), NoPolicy()))[0]


async def test_without_a_live_worker_the_syncloop_fails_with_its_reason(app: AsgiApp, clock: Clock) -> None:
    assert (await ask(app, "/healthz/syncloop")).body == b"ok"
    clock.time = 25.0
    answer = await ask(app, "/healthz/syncloop")
    assert answer.status == 500
    assert answer.body == b"internal server error: no podworker was heard since 25 s\n"
    assert (await ask(app, "/healthz")).body.endswith(b"[-]syncloop failed: reason withheld\nhealthz check failed\n")
    assert b'"noWorker":"no podworker was heard since 25 s"' in (await ask(app, "/podbus")).body


async def test_a_lost_bus_is_part_of_the_reason(app: AsgiApp, view: NodeView, owners: Owners, clock: Clock) -> None:
    view.worker_heard(0, 1.0)
    owners.connected, clock.time = False, 30.0
    assert b"29 s ago; the bus is away" in (await ask(app, "/healthz/syncloop")).body


async def test_answers_from_memory_are_marked_while_the_bus_is_away(
    app: AsgiApp, view: NodeView, owners: Owners
) -> None:
    view.change_pods(*_desired("a"))
    assert b"x-stale" not in (await ask(app, "/pods")).headers
    owners.connected = False
    answer = await ask(app, "/pods")
    assert answer.headers[b"x-stale"] == b"true"
    assert b'"name":"a"' in answer.body
    assert b"x-stale" not in (await ask(app, "/healthz/ping")).headers


@pytest.mark.parametrize(
    ("error", "status"),
    [(OwnerUnavailable("away"), 503), (OwnerRefused("internal", "engine down"), 500)],
)
async def test_an_owner_that_fails_is_told_with_its_text(
    app: AsgiApp, owners: Owners, error: Exception, status: int
) -> None:
    owners.error = error
    running = await ask(app, "/runningpods/")
    assert (running.status, running.body) == (status, str(error).encode())
    stats = await ask(app, "/stats/summary")
    assert (stats.status, stats.body) == (status, f"Internal Error: {error}".encode())


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OwnerRefused("not_found", "unable to retrieve container logs for docker://x"), 400),
        (OwnerRefused("internal", "a bug"), 500),
        (OwnerUnavailable("no podworker"), 503),
    ],
)
async def test_a_log_that_can_not_be_opened_has_no_200(
    app: AsgiApp, view: NodeView, owners: Owners, error: Exception, status: int
) -> None:
    owners.error = error
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    container = {
        "name": "c1",
        "state": state,
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "image": "i",
        "imageID": "",
        "containerID": "docker://x",
        "started": True,
    }
    status_json = {"phase": "Running", "containerStatuses": [container], "qosClass": "BestEffort"}
    view.change_pods(*_desired("a"))
    view.change_status(*_report("a", status=status_json))
    answer = await ask(app, "/containerLogs/ns/a/c1", query="tailLines=3")
    assert (answer.status, answer.body) == (status, str(error).encode())
    assert owners.asked[0].logs.tail_lines == 3


async def test_a_query_of_too_many_fields_is_refused(app: AsgiApp) -> None:
    many = "&".join(f"a{i}=1" for i in range(1001))
    assert (await ask(app, "/containerLogs/ns/a/c1", query=many)).status == 400
    assert (await ask(app, "/podbus/events", query=many)).status == 400
    assert (await ask(app, "/stats/summary", query=many)).status == 500
    assert (await ask(app, "/healthz", query=many)).status == 200


async def test_a_redirect_keeps_its_query_and_can_not_smuggle_a_header(app: AsgiApp) -> None:
    moved = await ask(app, "/a\r\nX: y/../b c\r\nSet-Cookie: z", query="q=1", who=None)
    assert moved.status == 301
    assert moved.headers[b"location"] == b"/b%20c%0D%0ASet-Cookie:%20z?q=1"


async def test_who_shows_nothing_is_refused_before_the_router(app: AsgiApp) -> None:
    assert (await ask(app, "/pods/x", who=None)).status == 401
    assert (await ask(app, "/nowhere", who=None)).status == 404


class _Source:
    def __init__(self, *parts: bytes | Exception) -> None:
        self.parts = list(parts)
        self.closed = asyncio.Event()
        self.dry = asyncio.Event()

    async def read(self) -> bytes:
        if not self.parts:
            self.dry.set()
            await self.closed.wait()
            return b""
        part = self.parts.pop(0)
        if isinstance(part, Exception):
            raise part
        return part

    def close(self) -> None:
        self.closed.set()


async def test_a_stream_that_breaks_off_says_so_at_its_end() -> None:
    relay = Relay(_Source(b"line\n", ConnectionResetError()), asyncio.Event())
    answer = await ask(_only_body(relay), "/")
    assert answer.body == b"line\n\nthe stream broke off: its podworker went away\n"


async def test_the_services_end_ends_a_stream_properly() -> None:
    stopping = asyncio.Event()
    source = _Source(b"line\n")
    asking = asyncio.create_task(ask(_only_body(Relay(source, stopping)), "/"))
    await source.dry.wait()
    stopping.set()
    assert (await asking).body == b"line\n"


async def test_a_client_that_goes_away_closes_the_source() -> None:
    source = _Source(b"line\n")

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        return None

    await Relay(source, asyncio.Event())({"type": "http"}, receive, send)
    assert source.closed.is_set()


def _only_body(relay: Relay) -> AsgiApp:
    """The relay with a client that stays."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def stays() -> Any:
            await asyncio.Event().wait()

        await relay(scope, stays, send)

    return app


async def test_what_is_wrong_with_the_node_is_told_in_the_overview(
    view: NodeView, owners: Owners, clock: Clock
) -> None:
    """A full disk is seen by the API itself: with it the bus has no way left to tell."""
    full = ["the disk is full"]
    app = web_app(Face("n1", "0.1.0", view, owners, clock, disk_trouble=full.pop), NodeGate(NoTokens(), NoPolicy()))[0]
    assert b'"troubles":["the disk is full"]' in (await ask(app, "/podbus")).body


async def test_nothing_wrong_is_an_empty_list(app: AsgiApp) -> None:
    assert b'"troubles":[]' in (await ask(app, "/podbus")).body
