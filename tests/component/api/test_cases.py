"""The acceptance cases of the plain endpoints, by their numbers, on the real process."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from typing import Any

import pytest

from shared.contracts.registry import STREAM, SUMMARY
from shared.kube.status import ContainerState, ContainerStatus, PodStatus, StateWaiting
from tests.component.api.other_services import OtherServices, running_status
from tests.component.api.process import Answer, ApiProcess
from tests.support.eventually import eventually_async

pytestmark = pytest.mark.nats

EMPTY = b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}\n'
LOG = "/containerLogs/ns/p1/c1"
SPDY = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "portforward.k8s.io"}


def _told(answer: Answer) -> tuple[int, bytes]:
    return answer.status, answer.body


async def _pod(api: ApiProcess, others: OtherServices, status: PodStatus | None = None) -> None:
    await others.want("p1")
    await others.report("p1", status or running_status())

    async def shown() -> bool:
        return b"containerStatuses" in (await api.ask_async("/pods")).body

    await eventually_async(shown, within=5)


def test_c12_closed_by_default(api: ApiProcess) -> None:
    assert _told(api.ask("/pods", user=None)) == (401, b"Unauthorized")
    assert api.ask("/pods", user="nobody").status == 403


def test_c13_what_is_known_without_credentials(api: ApiProcess) -> None:
    assert _told(api.ask("/foo", user=None)) == (404, b"404 page not found\n")
    assert api.ask("/exec/x", user=None).status == 401
    moved = api.ask("/runningpods", user=None)
    assert (moved.status, moved.headers["location"]) == (301, "/runningpods/")


def test_c14_a_service_without_such_a_route(api: ApiProcess) -> None:
    assert _told(api.ask("/exec/x")) == (404, b"404: Page Not Found")


def test_c15_no_pods(api: ApiProcess) -> None:
    assert _told(api.ask("/pods")) == (200, EMPTY)


def test_c18_health_is_local_too_and_there_is_no_livez(api: ApiProcess) -> None:
    answer = api.ask_local("/healthz")
    assert _told(answer) == (200, b"ok")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert [api.ask(path).status for path in ("/livez", "/readyz")] == [404, 404]


def test_c19_the_checks_in_their_order(api: ApiProcess) -> None:
    text = api.ask("/healthz?verbose").body.decode()
    assert text == "[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n"


async def test_c21_the_summary_of_cpu_and_memory_is_asked_for_as_such(api: ApiProcess, others: OtherServices) -> None:
    await others.answer(SUMMARY)
    answer = await api.ask_async("/stats/summary?only_cpu_and_memory=true")
    assert answer.status == 200
    assert answer.body.startswith(b'{\n "node": {\n  "nodeName"')
    assert [query.only_cpu_and_memory for query in others.summary_queries] == [True]


def test_c22_the_old_statistics_are_gone(api: ApiProcess) -> None:
    assert _told(api.ask("/stats/container")) == (404, b"404: Page Not Found")


@pytest.mark.parametrize(
    "query", ["tailLines=-1", "limitBytes=0", "sinceSeconds=0", "sinceTime=2026-01-01T00:00:00Z&sinceSeconds=3"]
)
def test_c23_values_that_make_no_sense(api: ApiProcess, query: str) -> None:
    assert _told(api.ask(f"{LOG}?{query}")) == (422, b'{"message": "Invalid request."}')


@pytest.mark.parametrize("query", ["tailLines=abc", "sinceTime=bad"])
def test_c24_values_that_can_not_be_read(api: ApiProcess, query: str) -> None:
    assert _told(api.ask(f"{LOG}?{query}")) == (400, b'{"message": "Unable to decode query."}')


async def test_c26_unknown_pods_and_containers_and_c28_no_end_before(api: ApiProcess, others: OtherServices) -> None:
    await _pod(api, others)
    unknown = await api.ask_async("/containerLogs/ns/nope/c1")
    assert _told(unknown) == (404, b'pod "nope" does not exist')
    unknown = await api.ask_async("/containerLogs/ns/p1/c9")
    assert _told(unknown) == (404, b'container "c9" not found in pod "p1"')
    never = await api.ask_async(f"{LOG}?previous=true")
    assert _told(never) == (400, b'previous terminated container "c1" in pod "p1" not found')


async def test_c27_a_container_that_is_being_made(api: ApiProcess, others: OtherServices) -> None:
    waiting = ContainerStatus(
        name="c1",
        state=ContainerState(waiting=StateWaiting(reason="ContainerCreating")),
        last_state=ContainerState(),
        ready=False,
        restart_count=0,
        image="i",
        image_id="",
        started=False,
    )
    await _pod(api, others, PodStatus(phase="Pending", container_statuses=[waiting], qos_class="BestEffort"))
    answer = await api.ask_async(LOG)
    assert _told(answer) == (400, b'container "c1" in pod "p1" is waiting to start: ContainerCreating')


async def test_c31_c32_c34_c35_c43_what_is_decided_before_an_upgrade(api: ApiProcess, others: OtherServices) -> None:
    await _pod(api, others)
    path = "/exec/ns/p1/c1?command=ls"

    async def told(path: str, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        return _told(await api.ask_async(path, method="POST", headers=headers))

    no_streams = (400, b"you must specify at least 1 of stdin, stdout, stderr")
    assert await told(path) == no_streams
    assert await told(f"{path}&output=true") == no_streams
    assert await told(f"{path}&output=1") == (500, b"Upgrade request required\n")
    assert await told("/portForward/ns/p1/wrong-uid", SPDY) == (404, b"pod not found")
    await others.answer(STREAM)

    async def nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    others.log_handler = nothing
    for protocols in (["v4.channel.k8s.io,v3.channel.k8s.io"], ["v5.channel.k8s.io", "v4.channel.k8s.io"]):
        assert "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n" in await _head(api, f"{path}&output=1", protocols)


async def _head(api: ApiProcess, path: str, protocols: list[str]) -> str:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", api.port, ssl=api.client_context(), server_hostname="127.0.0.1"
    )
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Authorization: Bearer admin-token", "Content-Length: 0"]
    lines += ["Connection: Upgrade", "Upgrade: SPDY/3.1", *(f"X-Stream-Protocol-Version: {one}" for one in protocols)]
    writer.write(("\r\n".join([*lines, "", ""])).encode())
    try:
        head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)).decode()
    finally:
        writer.transport.abort()
    assert head.startswith("HTTP/1.1 101 ")
    return head


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_c51_tls_1_1_is_refused_and_the_certificate_is_the_hosts(api: ApiProcess) -> None:
    def shake(context: ssl.SSLContext) -> dict[str, Any]:
        plain = socket.create_connection(("127.0.0.1", api.port), timeout=10)
        with plain, context.wrap_socket(plain, server_hostname="n1") as link:
            return dict(link.getpeercert() or {})

    assert ("DNS", "n1") in shake(api.client_context())["subjectAltName"]
    old = api.client_context()
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        shake(old)


async def test_c54_verbosity_and_checkpoints(api: ApiProcess, others: OtherServices) -> None:
    await _pod(api, others)
    answer = await asyncio.to_thread(api.ask, "/debug/flags/v", method="PUT", body="4")
    assert _told(answer) == (200, b"successfully set klog.logging.verbosity to 4\n")
    await asyncio.to_thread(api.ask, "/debug/flags/v", method="PUT", body="0")
    assert (await api.ask_async("/debug/flags/v")).status == 406
    answer = await api.ask_async("/checkpoint/ns/p1/c1", method="POST")
    assert answer.status == 500
    assert answer.body.startswith(b"checkpointing of ns/p1/c1 failed (")


def test_configz_tells_what_takes_effect_of_authentication(api: ApiProcess) -> None:
    config = json.loads(api.ask("/configz").body)["kubeletconfig"]
    assert config["authentication"]["webhook"] == {"enabled": True, "cacheTTL": "2m0s"}
    assert config["authorization"]["mode"] == "Webhook"
