"""What the endpoints answer: bodies, headers and odd paths, on the real process."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from shared.contracts.registry import EVENTS_QUERY, RUNNING_PODS, SOURCE_MARKER, SOURCES, SUMMARY
from tests.component.api.other_services import OtherServices, running_status
from tests.component.api.process import ApiProcess
from tests.support.eventually import eventually_async

pytestmark = pytest.mark.nats

EMPTY = b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}\n'
NOT_FOUND = b"404 page not found\n"
PLAIN = "text/plain; charset=utf-8"


def test_no_pods_are_null(api: ApiProcess) -> None:
    answer = api.ask("/pods")
    assert (answer.status, answer.body) == (200, EMPTY)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-length"] == "64"
    assert "server" not in answer.headers
    assert answer.headers["date"].endswith(" GMT")
    assert "x-stale" not in answer.headers


@pytest.mark.parametrize(
    ("method", "path", "status", "body", "nosniff"),
    [
        ("GET", "/healthz", 200, b"ok", True),
        ("HEAD", "/healthz", 200, b"", True),
        ("POST", "/healthz", 200, b"ok", True),
        ("GET", "/healthz/", 404, NOT_FOUND, True),
        ("GET", "/healthz?verbose", 200, b"[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n", True),
        (
            "GET",
            "/healthz?exclude=syncloop&verbose",
            200,
            b"[+]ping ok\n[+]log ok\n[+]syncloop excluded: ok\nhealthz check passed\n",
            True,
        ),
        ("GET", "/healthz/ping", 200, b"ok", False),
        ("GET", "/healthz/log", 200, b"ok", False),
        ("GET", "/healthz/syncloop", 200, b"ok", False),
        ("GET", "/healthz/nope", 404, NOT_FOUND, True),
        ("GET", "/livez", 404, NOT_FOUND, True),
        ("GET", "/readyz", 404, NOT_FOUND, True),
        ("GET", "/", 404, NOT_FOUND, True),
        ("GET", "/foo", 404, NOT_FOUND, True),
        ("GET", "/docs", 404, NOT_FOUND, True),
        ("GET", "/openapi.json", 404, NOT_FOUND, True),
        ("GET", "/pods/", 200, EMPTY, False),
        ("GET", "/pods/x", 404, b"404: Page Not Found", False),
        ("HEAD", "/pods", 405, b"", False),
        ("POST", "/pods", 405, b"405: Method Not Allowed", False),
        ("GET", "/containerLogs/ns/p1", 404, b"404: Page Not Found", False),
        ("POST", "/containerLogs/ns/p1/c1", 405, b"405: Method Not Allowed", False),
        ("GET", "/containerLogs", 404, b"404: Page Not Found", False),
        ("GET", "/containerLogs/ns/nope/c1", 404, b'pod "nope" does not exist', False),
        ("DELETE", "/stats/summary", 405, b"405: Method Not Allowed", False),
        ("GET", "/stats/container", 404, b"404: Page Not Found", False),
        ("GET", "/exec/ns/p1", 404, b"404: Page Not Found", False),
        ("GET", "/exec/x", 404, b"404: Page Not Found", False),
        ("PUT", "/exec/ns/p1/c1?command=ls&output=1", 405, b"405: Method Not Allowed", False),
        ("GET", "/run/ns/p1/c1?cmd=ls", 405, b"405: Method Not Allowed", False),
    ],
)
def test_the_recorded_answers_of_a_kubelet(
    api: ApiProcess, method: str, path: str, status: int, body: bytes, nosniff: bool
) -> None:
    """golden/wire/http.txt; 1.20.2 and newest agree on these."""
    answer = api.ask(path, method=method)
    assert (answer.status, answer.body) == (status, body)
    assert answer.headers["content-type"] == ("application/json" if body == EMPTY else PLAIN)
    assert answer.headers.get("x-content-type-options") == ("nosniff" if nosniff else None)


@pytest.mark.parametrize(
    ("path", "location", "length"),
    [("/runningpods", "/runningpods/", 48), ("//pods", "/pods", 40), ("/pods/../healthz", "/healthz", 43)],
)
def test_unclean_paths_are_redirected_before_anybody_is_asked(
    api: ApiProcess, path: str, location: str, length: int
) -> None:
    answer = api.ask(path, user=None)
    assert answer.status == 301
    assert answer.headers["location"] == location
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.body == f'<a href="{location}">Moved Permanently</a>.\n\n'.encode()
    assert len(answer.body) == length


def test_an_unknown_path_needs_no_credentials(api: ApiProcess) -> None:
    assert api.ask("/foo", user=None).body == NOT_FOUND


@pytest.mark.parametrize("accept", ["text/html", "application/vnd.kubernetes.protobuf"])
def test_a_client_that_takes_no_json_is_told(api: ApiProcess, accept: str) -> None:
    answer = api.ask("/pods", headers={"Accept": accept})
    assert (answer.status, answer.body) == (406, b"406: Not Acceptable")


async def test_a_pod_is_shown_as_soon_as_it_is_wanted_and_as_it_is_reported(
    api: ApiProcess, others: OtherServices
) -> None:
    await others.want("web")

    async def items() -> list[dict[str, Any]]:
        return json.loads((await api.ask_async("/pods")).body)["items"] or []

    async def is_pending() -> bool:
        return [item["status"] for item in await items()] == [{"phase": "Pending"}]

    await eventually_async(is_pending, within=5)
    await others.report("web", running_status())

    async def is_running() -> bool:
        (item,) = await items()
        return bool(item["status"]["phase"] == "Running")

    await eventually_async(is_running, within=5)


async def test_running_pods_come_from_podworker(api: ApiProcess, others: OtherServices) -> None:
    assert (await api.ask_async("/runningpods/")).status == 503
    await others.answer(RUNNING_PODS)
    answer = await api.ask_async("/runningpods/")
    assert answer.body == (
        b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"p1","namespace":"ns",'
        b'"uid":"u1"},"spec":{"containers":[{"name":"c1","image":"sha256:ab","resources":{}}]},"status":{}}]}\n'
    )


async def test_the_summary_is_indented_by_one_space_at_all_its_paths(api: ApiProcess, others: OtherServices) -> None:
    await others.answer(SUMMARY)
    for path in ("/stats/summary", "/stats/summary/", "/stats", "/stats/"):
        answer = await api.ask_async(path, user="metrics")
        assert answer.body == b'{\n "node": {\n  "nodeName": "n1"\n },\n "pods": []\n}'
        assert answer.headers["content-type"] == "application/json"


async def test_a_large_summary_comes_by_a_socket(api: ApiProcess, others: OtherServices) -> None:
    others.summary = b'{"node":{"nodeName":"' + b"x" * (1 << 20) + b'"},"pods":[]}'
    await others.answer(SUMMARY)
    answer = await api.ask_async("/stats/summary")
    assert json.loads(answer.body) == json.loads(others.summary)


async def test_only_cpu_and_memory_is_asked_for_by_exactly_true(api: ApiProcess, others: OtherServices) -> None:
    await others.answer(SUMMARY)
    for query in (
        "",
        "?only_cpu_and_memory=1",
        "?only_cpu_and_memory=true",
        "?only_cpu_and_memory=true&only_cpu_and_memory=true",
    ):
        await api.ask_async(f"/stats/summary{query}")
    assert [query.only_cpu_and_memory for query in others.summary_queries] == [False, False, True, False]


def test_only_cpu_and_memory_is_read_from_a_form_too(api: ApiProcess) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = api.ask("/stats/summary", method="POST", headers=form, body="only_cpu_and_memory=%zz")
    assert answer.status == 500
    assert answer.body == b'Internal Error: parse form failed: invalid URL escape "%zz"'
    too_much = api.ask("/stats/summary", method="POST", headers=form, body="a=" + "b" * 100_000)
    assert too_much.status == 413


def test_without_the_stats_service_the_summary_says_so(api: ApiProcess) -> None:
    answer = api.ask("/stats/summary")
    assert answer.status == 503
    assert answer.body.startswith(b"Internal Error: no stats answers")


async def test_sources_are_shown_with_their_errors_and_whether_they_live(
    api: ApiProcess, others: OtherServices
) -> None:
    await others.mark(SOURCE_MARKER.example)

    async def has_marker() -> dict[str, Any]:
        found: dict[str, Any] = json.loads((await api.ask_async("/podbus/sources", user="view")).body)
        assert len(found["sources"]) == 1
        return found

    found = await eventually_async(has_marker, within=5)
    assert found["alive"] is False
    assert "no source answers" in found["reason"]
    marker = found["sources"][0]
    assert marker["errors"][0]["message"] == "Required value"
    assert marker["skipped"][0]["path"].endswith(".bak")
    await others.answer(SOURCES)
    assert json.loads((await api.ask_async("/podbus/sources")).body)["alive"] is True


async def test_events_come_from_status(api: ApiProcess, others: OtherServices) -> None:
    assert (await api.ask_async("/podbus/events?namespace=ns")).status == 503
    await others.answer(EVENTS_QUERY)
    answer = await api.ask_async("/podbus/events?namespace=ns&limit=5")
    assert json.loads(answer.body)["events"][0]["reason"] == "Started"
    assert (await api.ask_async("/podbus/events?limit=many")).status == 400


async def test_the_node_is_shown_as_status_published_it(api: ApiProcess, others: OtherServices) -> None:
    assert (await api.ask_async("/podbus/node")).status == 503
    node = b'{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1"}}'
    await others.publish_node(node)

    async def shown() -> bool:
        return (await api.ask_async("/podbus/node")).body == node

    await eventually_async(shown, within=5)


async def test_the_overview_names_the_live_workers(api: ApiProcess, others: OtherServices) -> None:
    await others.beat()

    async def heard() -> bool:
        return bool(json.loads((await api.ask_async("/podbus")).body)["workers"] == [0])

    await eventually_async(heard, within=5)


def test_the_openapi_document_needs_credentials(api: ApiProcess) -> None:
    assert api.ask("/podbus/openapi.json", user=None).status == 401
    paths = json.loads(api.ask("/podbus/openapi.json", user="view").body)["paths"]
    assert {"/pods", "/runningpods", "/stats/summary", "/podbus/sources"} <= paths.keys()
    assert len(paths["/containerLogs/{namespace}/{pod}/{container}"]["get"]["parameters"]) == 10


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/healthz", 200, b"ok"),
        ("/healthz/ping", 200, b"ok"),
        ("/healthz?verbose", 200, b"[+]ping ok\nhealthz check passed\n"),
        ("/healthz/syncloop", 404, NOT_FOUND),
        ("/pods", 404, NOT_FOUND),
    ],
)
def test_the_loopback_port_has_health_only_and_needs_no_credentials(
    api: ApiProcess, path: str, status: int, body: bytes
) -> None:
    answer = api.ask_local(path)
    assert (answer.status, answer.body) == (status, body)
    assert "server" not in answer.headers


def _raw(api: ApiProcess, *parts: bytes) -> bytes:
    """Bytes as they are, over TLS; the whole answer."""
    plain = socket.create_connection(("127.0.0.1", api.port), timeout=20)
    answer = b""
    with plain, api.client_context().wrap_socket(plain, server_hostname="127.0.0.1") as link:
        try:
            for part in parts:
                link.sendall(part)
            while data := link.recv(65536):
                answer += data
        except ConnectionError:
            pass  # it may close while we still send
    return answer


def test_a_head_of_more_than_a_mebibyte_is_refused(api: ApiProcess) -> None:
    filler = b"x-a: " + b"a" * 4000 + b"\r\n"
    answer = _raw(api, b"GET /pods HTTP/1.1\r\nHost: x\r\n", *[filler] * 300)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431")
    before = api.resident_bytes()
    _raw(api, b"GET /pods HTTP/1.1\r\nHost: x\r\nx-a: ", *[b"a" * 65536] * 400)
    assert api.resident_bytes() - before < 10 << 20


def test_what_is_not_http_is_a_bad_request(api: ApiProcess) -> None:
    assert _raw(api, b"\x00\x01nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")


def test_bytes_behind_a_refused_upgrade_are_not_taken_for_a_request(api: ApiProcess) -> None:
    answer = _raw(
        api,
        b"POST /exec/ns/p1/c1?output=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\n"
        b"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n"
        b"GET /pods HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\n\r\n",
    )
    assert answer.startswith(b"HTTP/1.1 404")
    assert answer.count(b"HTTP/1.1") == 1
    assert b"PodList" not in answer


def test_two_requests_on_one_connection_are_answered_in_order(api: ApiProcess) -> None:
    answer = _raw(
        api,
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\n\r\n"
        b"GET /pods HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\nConnection: close\r\n\r\n",
    )
    assert answer.index(b"nosniff") < answer.index(b"PodList")
