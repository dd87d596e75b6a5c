"""What is agreed on before a connection stops being HTTP, and what is refused in the kubelet's words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.api.core.params import Refusal
from services.api.core.remote_command import end_text, exec_options, expected_streams, forward_ports, read_size
from services.api.core.upgrades import (
    PORT_FORWARD,
    REMOTE_COMMAND,
    WEBSOCKET_PORT_FORWARD,
    WEBSOCKET_REMOTE_COMMAND,
    NoUpgrade,
    Upgrade,
    agree,
    websocket_token,
)
from shared.contracts.streams import ExecOptions, StreamStatus

SPDY = [(b"connection", b"Upgrade"), (b"upgrade", b"SPDY/3.1")]
WEBSOCKET = [
    (b"connection", b"keep-alive, Upgrade"),
    (b"upgrade", b"WebSocket"),
    (b"sec-websocket-version", b"13"),
    (b"sec-websocket-key", b"dGhlIHNhbXBsZSBub25jZQ=="),
]


def asked(headers: list[tuple[bytes, bytes]], method: str = "POST") -> Upgrade | NoUpgrade:
    return agree(method, headers, REMOTE_COMMAND, WEBSOCKET_REMOTE_COMMAND)


def offers(*protocols: str, name: bytes = b"x-stream-protocol-version") -> list[tuple[bytes, bytes]]:
    return [(name, protocol.encode()) for protocol in protocols]


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (("v4.channel.k8s.io", "v3.channel.k8s.io"), "v4.channel.k8s.io"),
        (("v5.channel.k8s.io", "v4.channel.k8s.io"), "v4.channel.k8s.io"),
        (("v3.channel.k8s.io, v4.channel.k8s.io",), "v3.channel.k8s.io"),
        (("channel.k8s.io",), "channel.k8s.io"),
    ],
)
def test_the_clients_first_served_protocol_is_taken(offered: tuple[str, ...], chosen: str) -> None:
    agreed = asked(SPDY + offers(*offered))
    assert isinstance(agreed, Upgrade)
    assert (agreed.kind, agreed.protocol) == ("spdy", chosen)
    assert f"X-Stream-Protocol-Version: {chosen}\r\n\r\n".encode() in agreed.head


def test_refusals_have_the_kubelets_words() -> None:
    assert asked([]) == NoUpgrade(500, "Upgrade request required\n")
    missing = asked([(b"connection", b"Upgrade"), (b"upgrade", b"foo")])
    assert isinstance(missing, NoUpgrade)
    assert missing.text == (
        'unable to upgrade: missing upgrade headers in request: http.Header{"Connection":[]string{"Upgrade"},'
        ' "Upgrade":[]string{"foo"}}\n'
    )
    none = asked(SPDY)
    assert isinstance(none, NoUpgrade)
    assert none.status == 400
    assert none.text == "unable to upgrade: X-Stream-Protocol-Version is required\n"
    unknown = agree("POST", SPDY + offers("zzz"), PORT_FORWARD, WEBSOCKET_PORT_FORWARD)
    assert unknown == NoUpgrade(
        403,
        "unable to upgrade: unable to negotiate protocol: client supports [zzz], server accepts [portforward.k8s.io]\n",
        (("X-Accepted-Stream-Protocol-Versions", "portforward.k8s.io"),),
    )


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        ((), ""),
        (("v4.channel.k8s.io",), "v4.channel.k8s.io"),
        (("v5.channel.k8s.io, v4.channel.k8s.io",), "v4.channel.k8s.io"),
        (("base64url.bearer.authorization.k8s.io.YQ, base64.channel.k8s.io",), "base64.channel.k8s.io"),
    ],
)
def test_a_websocket_is_answered_with_its_key_and_protocol(offered: tuple[str, ...], chosen: str) -> None:
    agreed = asked(WEBSOCKET + offers(*offered, name=b"sec-websocket-protocol"), "GET")
    assert isinstance(agreed, Upgrade)
    assert (agreed.kind, agreed.protocol) == ("websocket", chosen)
    assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in agreed.head
    assert (b"Sec-WebSocket-Protocol" in agreed.head) == bool(chosen)


def test_websocket_refusals_are_plain_answers_that_close() -> None:
    v5 = WEBSOCKET + offers("v5.channel.k8s.io", name=b"sec-websocket-protocol")
    old = [(name, b"8" if name == b"sec-websocket-version" else value) for name, value in WEBSOCKET]
    for headers, method, status in ((v5, "GET", 403), (WEBSOCKET, "POST", 405), (old, "GET", 400)):
        answer = asked(headers, method)
        assert isinstance(answer, NoUpgrade)
        assert (answer.status, answer.headers[0]) == (status, ("Connection", "close"))


def test_a_token_in_a_subprotocol_counts_only_beside_another_one() -> None:
    token = "base64url.bearer.authorization.k8s.io.YWJj"
    name = b"sec-websocket-protocol"
    assert websocket_token(offers(token, "v4.channel.k8s.io", name=name)) == "YWJj"
    assert websocket_token(offers(token, name=name)) is None
    assert websocket_token(offers("v4.channel.k8s.io", name=name)) is None


def test_c32_a_flag_counts_only_when_it_is_one() -> None:
    assert exec_options({"output": ["true"]}) == Refusal(400, "you must specify at least 1 of stdin, stdout, stderr")
    wanted = exec_options({"command": ["sh", "-c"], "output": ["1"], "error": ["1"], "tty": ["1"]})
    assert wanted == ExecOptions(command=["sh", "-c"], stdout=True, stderr=False, tty=True)


def test_a_terminals_size_stream_exists_from_version_3_on() -> None:
    options = ExecOptions(command=["sh"], stdin=True, stdout=True, tty=True)
    assert expected_streams(options, "v4.channel.k8s.io") == {"error", "stdin", "stdout", "resize"}
    assert expected_streams(options, "v2.channel.k8s.io") == {"error", "stdin", "stdout"}


def test_c38_the_end_is_told_in_each_versions_way() -> None:
    what = "executing command in container"
    assert end_text(StreamStatus(outcome="ended"), is_v4=True, what=what) == b'{"status":"Success"}'
    assert end_text(StreamStatus(outcome="ended"), is_v4=False, what=what) == b""
    failed = json.loads(end_text(StreamStatus(outcome="ended", exit_code=7), is_v4=True, what=what))
    assert failed["reason"] == "NonZeroExitCode"
    assert failed["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]
    assert "code" not in failed
    broken = json.loads(end_text(StreamStatus(outcome="failed", message="gone"), is_v4=True, what=what))
    assert (broken["reason"], broken["code"]) == ("InternalError", 500)
    assert broken["message"] == "Internal error occurred: error executing command in container: gone"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (b'{"Width":80,"Height":24}', (80, 24)),
        (b'{"width":80,"height":24}', (80, 24)),
        (b'{"Width":0,"Height":24}', None),
        (b"[]", None),
        (b"nonsense", None),
        (b'{"Width":"x","Height":1}', None),
    ],
)
def test_a_size_is_read_in_any_case_and_nonsense_is_ignored(text: bytes, size: tuple[int, int] | None) -> None:
    assert read_size(text) == size


@given(st.binary(max_size=60))
def test_no_size_text_raises(text: bytes) -> None:
    read_size(text)


def test_ports_come_repeated_or_as_a_list() -> None:
    assert forward_ports({"port": ["80,443", "8080"]}) == (80, 443, 8080)
    assert forward_ports({"port": ["x"]}) == Refusal(
        400, 'unable to parse "x" as a port: strconv.ParseUint: parsing "x": invalid syntax'
    )
