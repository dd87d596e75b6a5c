"""exec, attach and port-forward on a whole node, by the clients' own ways of speaking."""

from __future__ import annotations

import asyncio
import json
import os
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode

import pytest
from kubernetes.client import Configuration
from kubernetes.stream.ws_client import WSClient

from services.api.spdy import frames
from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node, sleeper
from tests.support.upgraded import PROTOCOLS, Refused, RemoteCommand, SpdyLink, upgrade

pytestmark = [pytest.mark.nats, pytest.mark.docker, pytest.mark.e2e]

SUCCESS = b'{"status":"Success"}'
ECHO = "nc -ll -p 8080 -e cat"
TALKER = """
apiVersion: v1
kind: Pod
metadata: {name: talker}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: term, image: "busybox:1.36", command: [sh], stdin: true, tty: true}
  - name: lines
    image: "busybox:1.36"
    stdin: true
    command: [sh, -c, "while read x; do echo got $x; echo e$x >&2; done"]
"""


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        one = Node(Path(directory))
        try:
            one.start()
            (one.manifests / "web.yaml").write_text(sleeper("web", command=f"({ECHO})& sleep 3600", grace=1))
            (one.manifests / "talker.yaml").write_text(TALKER)
            eventually(lambda: _are_ready(one, "web-n1", "talker-n1"), within=60)
            yield one
        finally:
            one.close()


def _are_ready(node: Node, *names: str) -> bool:
    items = json.loads(node.get("/pods")[1])["items"] or []
    ready = {item["metadata"]["name"] for item in items if _is_ready(item)}
    return set(names) <= ready


def _is_ready(item: dict[str, Any]) -> bool:
    conditions = item["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def exec_path(*command: str, **flags: int) -> str:
    query = [("command", word) for word in command] + [(key, str(value)) for key, value in flags.items()]
    return f"/exec/default/web-n1/main?{urlencode(query)}"


async def link(node: Node, path: str, **how: Any) -> SpdyLink:
    return await SpdyLink.connect(node.port, node.data / "pki" / "ca.crt", node.token, path, **how)


async def run(node: Node, *command: str, stdin: bytes | None = None, **how: Any) -> tuple[bytes, bytes, bytes]:
    """stdout, stderr and the error stream of a command."""
    flags = {"output": 1, "error": 1, **({"input": 1} if stdin is not None else {})}
    kinds = ["stdout", "stderr", *(["stdin"] if stdin is not None else [])]
    async with await link(node, exec_path(*command, **flags), **how) as connection:
        remote = await RemoteCommand.start(connection, *kinds)
        feeding = asyncio.create_task(_feed(remote, stdin))
        result = await remote.result()
        await feeding
        return remote.got("stdout"), remote.got("stderr"), result


async def _feed(remote: RemoteCommand, stdin: bytes | None) -> None:
    if stdin is not None:
        await remote.send(stdin)
        await remote.send_end()


# -- exec over SPDY -----------------------------------------------------------------------------------------------


async def test_c04_a_commands_exit_code_is_on_the_error_stream_and_everything_ends(node: Node) -> None:
    async with await link(node, exec_path("sh", "-c", "echo out; echo err >&2; exit 3", output=1, error=1)) as spdy:
        assert "X-Stream-Protocol-Version: v4.channel.k8s.io" in spdy.head
        remote = await RemoteCommand.start(spdy, "stdout", "stderr")
        status = json.loads(await remote.result())
        await spdy.until_end()
    assert (remote.got("stdout"), remote.got("stderr")) == (b"out\n", b"err\n")
    assert (status["status"], status["reason"]) == ("Failure", "NonZeroExitCode")
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
    assert spdy.client.gone_away


async def test_c05_64_mib_through_cat_come_back_byte_for_byte(node: Node) -> None:
    data = os.urandom(64 << 20)
    stdout, _, result = await run(node, "cat", stdin=data)
    assert (len(stdout), stdout == data, result) == (len(data), True, SUCCESS)


async def test_c38_a_command_that_ends_well_says_success(node: Node) -> None:
    _, _, result = await run(node, "true")
    assert result == SUCCESS


async def test_c06_a_terminal_has_the_clients_size_and_one_output(node: Node) -> None:
    path = exec_path("sh", input=1, output=1, error=1, tty=1)
    async with await link(node, path) as spdy:
        remote = await RemoteCommand.start(spdy, "stdin", "stdout", "resize")
        await remote.resize(b'{"Width":100,"Height":40}\n')
        while b"40 100" not in remote.got("stdout"):
            await remote.send(b"stty size\n")
            seen = len(remote.got("stdout"))
            await spdy.until(lambda seen=seen: len(remote.got("stdout")) > seen)  # type: ignore[misc]
        await remote.send(b"exit 0\n")
        assert await remote.result() == SUCCESS


async def test_c33_a_protocol_that_nobody_knows_is_refused_with_those_that_are_served(node: Node) -> None:
    with pytest.raises(Refused) as refused:
        await link(node, exec_path("ls", output=1), protocols=("v9.channel.k8s.io",))
    assert refused.value.status == 403
    offered = [line for line in refused.value.head.lower().splitlines() if line.startswith("x-accepted-stream")]
    assert [line.split(": ")[1] for line in offered] == list(PROTOCOLS)


@pytest.mark.parametrize(
    "protocols", [(", ".join(PROTOCOLS),), ("v5.channel.k8s.io", *PROTOCOLS)], ids=["c34 one list", "c35 v5 first"]
)
async def test_the_first_protocol_that_is_served_is_taken(node: Node, protocols: tuple[str, ...]) -> None:
    assert (await run(node, "echo", "hi", protocols=protocols))[::2] == (b"hi\n", SUCCESS)


async def test_an_old_protocol_gets_plain_text_and_nothing_for_success(node: Node) -> None:
    assert await run(node, "echo", "hi", protocols=("channel.k8s.io",)) == (b"hi\n", b"", b"")
    _, _, result = await run(node, "false", protocols=("v2.channel.k8s.io",))
    assert result.startswith(b"command terminated with non-zero exit code")


async def test_c36_tiny_segments_pings_and_flow_control_frames_disturb_nothing(node: Node) -> None:
    async with await link(node, exec_path("cat", input=1, output=1)) as spdy:
        extra = frames.control(frames.SETTINGS, b"\0\0\0\0") + frames.control(frames.WINDOW_UPDATE, b"\0" * 8)
        wire = spdy.client.open({"streamtype": "error"})[1] + extra + frames.ping(1)
        wire += spdy.client.open({"streamtype": "stdin"})[1] + spdy.client.open({"streamtype": "stdout"})[1]
        wire += spdy.client.send(3, b"hello", fin=True)
        for at in range(0, len(wire), 2):
            await spdy.send_raw(wire[at : at + 2])
        await spdy.until(lambda: spdy.stream(1).over and spdy.stream(5).over)
        assert (bytes(spdy.stream(5).data), spdy.client.pongs) == (b"hello", [1])


async def test_a_command_that_isnt_there_is_told_in_the_engines_words(node: Node) -> None:
    stdout, _, result = await run(node, "/no/such/program")
    assert b"no such file" in stdout
    assert json.loads(result)["details"]["causes"][0]["message"] in ("126", "127")


async def test_what_can_be_refused_is_refused_before_the_upgrade(node: Node) -> None:
    for path, status, text in (
        ("/exec/default/web-n1/main?command=ls", 400, b"you must specify at least 1 of stdin, stdout, stderr"),
        ("/exec/default/web-n1/main?command=ls&output=true", 400, b"you must specify at least 1 of"),
        ("/exec/default/nope/main?command=ls&output=1", 404, b"pod does not exist"),
        ("/exec/default/web-n1/none?command=ls&output=1", 500, b'container not found ("none")'),
        ("/portForward/default/web-n1/wrong-uid", 404, b"pod not found"),
    ):
        with pytest.raises(Refused) as refused:
            await link(node, path)
        assert (refused.value.status, refused.value.body[: len(text)]) == (status, text), path


async def test_c31_without_an_upgrade_it_is_asked_for(node: Node) -> None:
    assert node.get(exec_path("ls", output=1)) == (500, b"Upgrade request required\n")


async def test_many_commands_run_side_by_side(node: Node) -> None:
    results = await asyncio.gather(*(run(node, "echo", str(number)) for number in range(24)))
    assert [stdout for stdout, _, _ in results] == [f"{number}\n".encode() for number in range(24)]


async def test_a_client_that_leaves_lets_go_of_the_session(node: Node) -> None:
    async with await link(node, exec_path("cat", input=1, output=1)) as spdy:
        remote = await RemoteCommand.start(spdy, "stdin", "stdout")
        await remote.send(b"x")
        await spdy.until(lambda: remote.got("stdout") == b"x")
    # cat reads the end of its stdin once the session is gone
    count = "for p in /proc/[0-9]*/comm; do cat $p; done 2>/dev/null | grep -c '^cat$'"
    for _ in range(100):
        stdout, _, _ = await run(node, "sh", "-c", count)
        if int(stdout) <= 2:  # the echo server's, and this one's own
            return
        await asyncio.sleep(0.1)
    raise AssertionError("cat runs on")


# -- attach -------------------------------------------------------------------------------------------------------


async def test_c40_attaching_to_a_terminal_leaves_stderr_out_and_takes_a_size(node: Node) -> None:
    path = "/attach/default/talker-n1/term?input=1&output=1&error=1&tty=1"
    async with await link(node, path) as spdy:
        remote = await RemoteCommand.start(spdy, "stdin", "stdout", "resize")
        await remote.resize(b'{"Width":90,"Height":30}\n')
        while b"30 90" not in remote.got("stdout"):
            await remote.send(b"stty size\n")
            seen = len(remote.got("stdout"))
            await spdy.until(lambda seen=seen: len(remote.got("stdout")) > seen)  # type: ignore[misc]


async def test_attaching_without_a_terminal_has_both_outputs(node: Node) -> None:
    async with await link(node, "/attach/default/talker-n1/lines?input=1&output=1&error=1") as spdy:
        remote = await RemoteCommand.start(spdy, "stdin", "stdout", "stderr")
        await remote.send(b"one\n")
        await spdy.until(lambda: (remote.got("stdout"), remote.got("stderr")) == (b"got one\n", b"eone\n"))


# -- port-forward -------------------------------------------------------------------------------------------------


async def _pair(spdy: SpdyLink, number: int, port: int) -> tuple[int, int]:
    error = await spdy.open(streamtype="error", port=str(port), requestid=str(number))
    await spdy.send(error, b"", fin=True)
    return error, await spdy.open(streamtype="data", port=str(port), requestid=str(number))


async def test_c07_pairs_share_a_connection_and_a_closed_port_is_its_own_trouble(node: Node) -> None:
    async with await link(node, "/portForward/default/web-n1", protocols=("portforward.k8s.io",)) as spdy:
        error, data = await _pair(spdy, 1, 9)
        await spdy.until(lambda: spdy.stream(error).ended and spdy.stream(data).ended)
        assert b"error forwarding port 9 to pod web-n1" in spdy.stream(error).data
        sent = {number: os.urandom(200_000) for number in range(2, 5)}
        pairs = {number: await _pair(spdy, number, 8080) for number in sent}
        for number, payload in sent.items():
            await spdy.send(pairs[number][1], payload, fin=True)
        await spdy.until(lambda: all(spdy.stream(data).ended for _, data in pairs.values()))
        assert {number: bytes(spdy.stream(data).data) for number, (_, data) in pairs.items()} == sent
        assert {bytes(spdy.stream(error).data) for error, _ in pairs.values()} == {b""}


# -- WebSocket ----------------------------------------------------------------------------------------------------


def _client(node: Node, path: str, protocol: str = "") -> Any:  # the package has no types
    configuration = Configuration()
    configuration.ssl_ca_cert = str(node.data / "pki" / "ca.crt")
    headers = {"authorization": f"Bearer {node.token}"}
    if protocol:
        headers["sec-websocket-protocol"] = protocol
    return WSClient(configuration, f"wss://127.0.0.1:{node.port}{path}", headers, capture_all=True)  # type: ignore[no-untyped-call]


def test_the_official_python_client_runs_a_command(node: Node) -> None:
    client = _client(node, exec_path("sh", "-c", "echo out; echo err >&2; exit 4", output=1, error=1))
    client.run_forever(timeout=30)
    assert (client.read_stdout(), client.read_stderr(), client.returncode) == ("out\n", "err\n", 4)


def test_the_official_python_client_writes_to_a_command(node: Node) -> None:
    client = _client(node, exec_path("sh", "-c", "read x; echo got $x", input=1, output=1, error=1))
    client.write_stdin("hello\n")
    client.run_forever(timeout=30)
    assert (client.read_stdout(), client.returncode) == ("got hello\n", 0)


WEBSOCKET = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
]


async def _websocket(node: Node, path: str, *protocols: str) -> tuple[str, list[tuple[int, bytes]]]:
    """The 101's head and all frames that the server sends, as (opcode, payload)."""
    headers = WEBSOCKET + [f"Sec-WebSocket-Protocol: {', '.join(protocols)}"] * bool(protocols)
    head, reader, writer = await upgrade(node.port, node.data / "pki" / "ca.crt", node.token, "GET", path, headers)
    got: list[tuple[int, bytes]] = []
    while not got or got[-1][0] != 8:
        first, second = await asyncio.wait_for(reader.readexactly(2), 30)
        size = second if second < 126 else int.from_bytes(await reader.readexactly(2), "big")
        got.append((first & 15, await reader.readexactly(size)))
    writer.close()
    return head, got


async def test_c10_a_websocket_begins_with_an_empty_frame_and_ends_with_status_and_1000(node: Node) -> None:
    head, got = await _websocket(node, exec_path("echo", "hi", output=1), "v4.channel.k8s.io")
    assert "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
    assert got == [(2, b"\x01"), (2, b"\x01hi\n"), (2, b"\x03" + SUCCESS), (8, b"\x03\xe8")]


async def test_c41_base64_channels_are_text(node: Node) -> None:
    _, got = await _websocket(node, exec_path("echo", "hi", output=1), "v4.base64.channel.k8s.io")
    assert [opcode for opcode, _ in got] == [1, 1, 1, 8]
    assert (got[0][1], got[1][1][:1], b64decode(got[1][1][1:])) == (b"1", b"1", b"hi\n")
    assert b64decode(got[2][1][1:]) == SUCCESS


async def test_c11_a_protocol_of_the_future_alone_is_no_upgrade(node: Node) -> None:
    with pytest.raises(Refused) as refused:
        await _websocket(node, exec_path("echo", "hi", output=1), "v5.channel.k8s.io")
    assert refused.value.status == 403
    head, _ = await _websocket(node, exec_path("echo", "hi", output=1), "v5.channel.k8s.io", "v4.channel.k8s.io")
    assert "Sec-WebSocket-Protocol: v4.channel.k8s.io" in head


async def test_a_websocket_port_forward_names_its_ports_and_carries_data(node: Node) -> None:
    head, got = await _websocket(node, "/portForward/default/web-n1?port=9", "v4.channel.k8s.io")
    assert "v4.channel.k8s.io" in head
    assert got[:2] == [(2, b"\x00\x09\x00"), (2, b"\x01\x09\x00")]
    assert got[2][1].startswith(b"\x01error forwarding port 9 to pod web-n1")
    assert got[3] == (8, b"\x03\xe8")


async def test_a_websocket_port_forward_without_ports_is_refused(node: Node) -> None:
    for query, text in (
        ("", b'query parameter "port" is required'),
        ("?port=", b'query parameter "port" cannot be empty'),
        ("?port=70000", b'unable to parse "70000" as a port: strconv.ParseUint'),
        ("?port=0", b'port "0" must be > 0'),
    ):
        with pytest.raises(Refused) as refused:
            await _websocket(node, f"/portForward/default/web-n1{query}", "v4.channel.k8s.io")
        assert (refused.value.status, refused.value.body[: len(text)]) == (400, text)


# -- what isn't a stream ------------------------------------------------------------------------------------------


def test_run_answers_when_the_command_has_ended(node: Node) -> None:
    assert node.get("/run/default/web-n1/main?cmd=echo+one+two", method="POST") == (200, b"one two\n")
    status, text = node.get("/run/default/web-n1/main?cmd=false", method="POST")
    assert (status, text) == (500, b"command 'false' exited with 1")


def test_configz_shows_the_effective_configuration(node: Node) -> None:
    shown = json.loads(node.get("/configz")[1])["kubeletconfig"]
    assert (shown["kind"], shown["healthzPort"]) == ("KubeletConfiguration", node.healthz_port)
