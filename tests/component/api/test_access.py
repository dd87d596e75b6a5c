"""Who is let in: TLS, certificates, tokens, roles; on the real process."""

from __future__ import annotations

import socket
import ssl
from base64 import b64encode
from pathlib import Path

import pytest

from tests.component.api.process import ApiProcess
from tests.support.certificates import Pair, TestCa
from tests.support.eventually import eventually
from tests.support.nats_server import NatsServer

pytestmark = pytest.mark.nats

STREAMING = ["/exec/ns/p1/c1?command=ls&output=1", "/attach/ns/p1/u1/c1?output=1", "/portForward/ns/p1?port=80"]
UPGRADES = {
    "POST": {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io"},
    "GET": {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": "v4.channel.k8s.io",
    },
}


def _handshake(api: ApiProcess, context: ssl.SSLContext) -> bytes:
    """Handshake and one request, as TLS 1.3 tells a refused client certificate only after it."""
    plain = socket.create_connection(("127.0.0.1", api.port), timeout=10)
    with plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as link:
        link.sendall(b"GET /pods HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\nConnection: close\r\n\r\n")
        return link.recv(4096)


def _is_refused(api: ApiProcess, context: ssl.SSLContext) -> bool:
    """An alert, a reset, or the end of the connection before the first byte of HTTP."""
    try:
        return _handshake(api, context) == b""
    except (ssl.SSLError, ConnectionError):
        return True


@pytest.mark.parametrize("path", ["/pods", "/healthz", "/exec/x", "/podbus", "/stats", "/runningpods/", "/run/x"])
def test_without_credentials_nothing_known_answers(api: ApiProcess, path: str) -> None:
    answer = api.ask(path, user=None)
    assert (answer.status, answer.body) == (401, b"Unauthorized")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "www-authenticate" not in answer.headers


def test_a_wrong_token_is_refused(api: ApiProcess) -> None:
    assert api.ask("/pods", user="made-up").status == 401


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", STREAMING)
def test_a_viewer_can_not_exec_attach_or_port_forward(api: ApiProcess, path: str, method: str) -> None:
    answer = api.ask(path, user="view", method=method, headers=UPGRADES[method])
    assert answer.status == 403
    assert answer.body.endswith(b"resource=nodes, subresource(s)=[proxy])\n")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_viewer_can_not_run(api: ApiProcess, method: str) -> None:
    assert api.ask("/run/ns/p1/c1?cmd=ls", user="view", method=method).status == 403


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", STREAMING)
def test_an_admin_gets_as_far_as_the_pod(api: ApiProcess, path: str, method: str) -> None:
    answer = api.ask(path, method=method, headers=UPGRADES[method])
    assert (answer.status, answer.body) == (404, b"pod does not exist")


def test_a_websocket_may_bring_its_token_as_a_subprotocol(api: ApiProcess) -> None:
    token = b64encode(b"admin-token").decode().rstrip("=")
    headers = {
        **UPGRADES["GET"],
        "Sec-WebSocket-Protocol": f"base64url.bearer.authorization.k8s.io.{token}, v4.channel.k8s.io",
    }
    assert api.ask(STREAMING[0], user=None, headers=headers).status == 404
    headers["Sec-WebSocket-Protocol"] = "base64url.bearer.authorization.k8s.io.bm8, v4.channel.k8s.io"
    assert api.ask(STREAMING[0], user=None, headers=headers).status == 401


def test_a_viewer_reads_pods_and_a_metrics_reader_does_not(api: ApiProcess) -> None:
    assert api.ask("/pods", user="view").status == 200
    answer = api.ask("/pods", user="metrics")
    assert answer.status == 403
    assert answer.body == b"Forbidden (user=metrics, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"
    assert api.ask("/healthz", user="metrics").status == 200


def test_a_token_without_a_role_may_nothing(api: ApiProcess) -> None:
    assert api.ask("/healthz", user="nobody").status == 403


def test_a_token_made_while_the_service_runs_is_good_at_once(api: ApiProcess) -> None:
    path = api.paths.pki / "tokens.csv"
    before = path.read_text()
    assert api.ask("/healthz", user="late").status == 401
    path.write_text(before + 'late-token,late,u,"podbus:admin"\n')
    try:
        eventually(lambda: api.ask("/healthz", user="late").status == 200, within=5)
    finally:
        path.write_text(before)


def test_the_setups_own_client_certificate_is_an_admin(api: ApiProcess) -> None:
    pair = Pair(api.paths.pki / "admin.crt", api.paths.pki / "admin.key")
    assert api.ask("/pods", user=None, pair=pair).status == 200


def test_the_serving_certificate_is_no_client_certificate(api: ApiProcess) -> None:
    context = api.client_context(Pair(api.paths.pki / "serving.crt", api.paths.pki / "serving.key"))
    assert _is_refused(api, context)


def test_an_untrusted_client_certificate_is_refused_in_the_handshake(api: ApiProcess, tmp_path: Path) -> None:
    stranger = TestCa(tmp_path, "stranger").client("admin", "podbus:admin", "system:masters")
    assert _is_refused(api, api.client_context(stranger))


def test_without_a_client_certificate_the_same_request_is_answered(api: ApiProcess) -> None:
    assert _handshake(api, api.client_context()).startswith(b"HTTP/1.1 200")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tls_1_1_is_refused(api: ApiProcess) -> None:
    context = api.client_context()
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    assert _is_refused(api, context)


def test_tls_1_2_is_served(api: ApiProcess) -> None:
    context = api.client_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert _handshake(api, context).startswith(b"HTTP/1.1 200")


def test_the_audit_log_tells_who_did_what_and_no_secrets(api: ApiProcess) -> None:
    api.ask("/exec/ns/p1/c1?command=echo&command=s3cret&output=1", user="view")
    line = next(line for line in reversed(api.log().splitlines()) if "podbus.api.audit" in line)
    assert 'user="view" verb=GET path="/exec/ns/p1/c1" code=403' in line
    assert "s3cret" not in api.log()
    assert "view-token" not in api.log()


def test_a_client_ca_of_the_operators_own_decides(tmp_path: Path, nats_server: NatsServer) -> None:
    ca = TestCa(tmp_path / "ca")
    api = ApiProcess(tmp_path / "data", nats_server, client_ca=ca.pair.certificate)
    api.start()
    try:
        assert api.ask("/pods", user=None, pair=ca.client("bob", "podbus:view")).status == 200
        refused = api.ask("/exec/ns/p1/c1", user=None, pair=ca.client("bob", "podbus:view"))
        assert refused.body.startswith(b"Forbidden (user=bob, verb=get")
        assert api.ask("/pods", user=None, pair=ca.client("eve", "somebody")).status == 403
        assert _is_refused(api, api.client_context(ca.client("old", "podbus:admin", days=-1)))
        assert _handshake(api, api.client_context(ca.client("new", "nobody"))).startswith(b"HTTP/1.1 403")
    finally:
        api.stop()
