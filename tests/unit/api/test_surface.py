"""What each port serves: the debugging endpoints, their switches, and the read-only port (kubelet's texts)."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.api.core.access import Identity
from services.api.core.node_view import NodeView
from services.api.core.routing import Disabled, Found, Moved, Surface, Unknown, match
from services.api.core.zpages import choose_form
from services.api.handlers.face import Face
from services.api.handlers.gate import NodeGate, NoPolicy
from services.api.handlers.web import web_app
from services.api.ports import PEER, AsgiApp
from tests.unit.api.test_handlers_web import ADMIN, Answer, Clock, NoTokens, Owners

BARE = Surface(debugging=False)


@pytest.mark.parametrize(
    "path",
    ["/run/a/b/c", "/exec/a/b/c", "/attach/x", "/portForward/a", "/containerLogs/a/b/c", "/runningpods/", "/logs/"],
)
def test_without_debugging_handlers_these_say_so(path: str) -> None:
    assert match(path, BARE) == Disabled(path, "Debug endpoints are disabled.\n")


@pytest.mark.parametrize("path", ["/configz", "/flagz", "/statusz", "/debug/flags/v", "/checkpoint/a/b/c"])
def test_without_debugging_handlers_these_are_unknown(path: str) -> None:
    assert match(path, BARE) == Unknown()
    assert isinstance(match(path), Found)


def test_a_disabled_prefix_without_its_slash_moves() -> None:
    assert match("/run", BARE) == Moved("/run/")
    assert match("/logs") == Moved("/logs/")


def test_one_handler_may_be_off_by_itself() -> None:
    assert match("/logs/x", Surface(system_logs=False)) == Disabled("/logs/x", "logs endpoint is disabled.\n")
    assert match("/debug/flags/v", Surface(debug_flags=False)) == Disabled(
        "/debug/flags/v", "flags endpoint is disabled.\n"
    )
    assert match("/debug/pprof/heap") == Disabled("/debug/pprof/heap", "profiling endpoint is disabled.\n")


async def ask(
    app: AsgiApp, path: str, *, method: str = "GET", body: bytes = b"", who: Identity | None = ADMIN, accept: str = ""
) -> Answer:
    answer = Answer()
    path, _, query = path.partition("?")
    requests = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if requests:
            return requests.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answer.status, answer.headers = message["status"], dict(message["headers"])
        else:
            answer.body += message.get("body", b"")

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"accept", accept.encode())] if accept else [],
        "client": ("192.0.2.1", 1),
        "extensions": {PEER: who},
    }
    await app(scope, receive, send)
    return answer


@pytest.fixture
def apps(tmp_path: Path) -> Iterator[tuple[AsgiApp, AsgiApp]]:
    level = logging.getLogger("podbus").level
    (tmp_path / "pods").mkdir()
    (tmp_path / "messages").write_text("hello\n")
    os.symlink("/etc/passwd", tmp_path / "outside")
    os.symlink("messages", tmp_path / "inside")
    yield web_app(
        Face(
            "n1",
            "0.1.0",
            NodeView(started_at=0.0),
            Owners(),
            Clock(),
            config={"kind": "KubeletConfiguration", "maxPods": 110},
            flags={"port": "10250", "data": "/d"},
            log_root=tmp_path,
        ),
        NodeGate(NoTokens(), NoPolicy()),
    )
    logging.getLogger("podbus").setLevel(level)


async def test_configz_is_compact_and_takes_any_method(apps: tuple[AsgiApp, AsgiApp]) -> None:
    for method in ("GET", "POST"):
        answer = await ask(apps[0], "/configz", method=method)
        assert answer.body == b'{"kubeletconfig":{"kind":"KubeletConfiguration","maxPods":110}}'
    assert answer.headers[b"x-content-type-options"] == b"nosniff"
    assert (await ask(apps[0], "/configz/")).status == 404


async def test_flagz_and_statusz_are_text_and_on_request_json(apps: tuple[AsgiApp, AsgiApp]) -> None:
    text = (await ask(apps[0], "/flagz")).body.decode()
    assert text.startswith("\nkubelet flagz\n")
    assert text.endswith("data=/d\nport=10250\n")
    wanted = "application/json;v=v1beta1;g=config.k8s.io;as=Flagz"
    assert json.loads((await ask(apps[0], "/flagz", accept=wanted)).body)["flags"] == {"data": "/d", "port": "10250"}
    assert (await ask(apps[0], "/flagz", accept="application/json")).status == 406
    assert b"Started: 1970-01-01T00:00:00Z" in (await ask(apps[0], "/statusz")).body
    wanted = "application/json;v=v1beta1;g=config.k8s.io;as=Statusz"
    assert json.loads((await ask(apps[0], "/statusz", accept=wanted)).body)["uptimeSeconds"] == 0


def test_a_page_is_asked_for_by_its_whole_name() -> None:
    assert choose_form("application/json;v=v1beta1;g=config.k8s.io;as=Statusz", "Flagz") is None
    assert choose_form("application/xml, */*", "Flagz") == "text"


async def test_c54_the_verbosity_is_put(apps: tuple[AsgiApp, AsgiApp]) -> None:
    answer = await ask(apps[0], "/debug/flags/v", method="PUT", body=b"4")
    assert (answer.status, answer.body) == (200, b"successfully set klog.logging.verbosity to 4\n")
    assert logging.getLogger("podbus").level == logging.DEBUG
    answer = await ask(apps[0], "/debug/flags/v")
    assert (answer.status, answer.body) == (406, b"unsupported http method\n")
    answer = await ask(apps[0], "/debug/flags/v", method="PUT", body=b"abc")
    assert answer.status == 400
    assert answer.body == b'failed set klog.logging.verbosity abc: strconv.ParseInt: parsing "abc": invalid syntax\n'


async def test_a_checkpoint_of_an_unknown_pod_is_404(apps: tuple[AsgiApp, AsgiApp]) -> None:
    answer = await ask(apps[0], "/checkpoint/ns/nope/c", method="POST")
    assert (answer.status, answer.body) == (404, b"pod does not exist")


async def test_run_knows_its_method_and_its_pod(apps: tuple[AsgiApp, AsgiApp]) -> None:
    assert (await ask(apps[0], "/run/ns/p/c?cmd=ls")).status == 405
    answer = await ask(apps[0], "/run/ns/p/c?cmd=ls", method="POST")
    assert (answer.status, answer.body) == (404, b"pod does not exist")


async def test_system_logs_are_files_and_listings_but_no_way_out(apps: tuple[AsgiApp, AsgiApp]) -> None:
    app = apps[0]
    assert (await ask(app, "/logs/messages")).body == b"hello\n"
    assert (await ask(app, "/logs/inside")).body == b"hello\n"
    listing = (await ask(app, "/logs/")).body
    assert b'<a href="messages">messages</a>' in listing
    assert b'<a href="pods/">pods/</a>' in listing
    assert (await ask(app, "/logs/pods")).status == 301
    for path in ("/logs/outside", "/logs/nothing", "/logs/%2e%2e/x", "/logs/messages/x"):
        assert (await ask(app, path)).status == 404, path


async def test_c52_the_read_only_port_asks_for_nothing_and_has_no_debugging(apps: tuple[AsgiApp, AsgiApp]) -> None:
    read_only = apps[1]
    assert (await ask(read_only, "/pods", who=None)).body.startswith(b'{"kind":"PodList"')
    answer = await ask(read_only, "/exec/a/b/c", who=None)
    assert (answer.status, answer.body) == (405, b"Debug endpoints are disabled.\n")
    for path in ("/configz", "/podbus/sources", "/flagz"):
        assert (await ask(read_only, path, who=None)).status == 404, path
