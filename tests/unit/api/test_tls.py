"""Which TLS is spoken, and that changed files count for new connections; a handshake in memory."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from services.api.adapters.tls import ServingTls
from tests.support.certificates import Pair, TestCa


@pytest.fixture
def ca(tmp_path: Path) -> TestCa:
    return TestCa(tmp_path / "ca")


def _serving(ca: TestCa, **options: object) -> ServingTls:
    pair = ca.server("n1", addresses=("127.0.0.1",))
    return ServingTls(pair.certificate, pair.key, ca.pair.certificate, **options)  # type: ignore[arg-type]


def _shake(tls: ServingTls, client: ssl.SSLContext) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """(server's side, client's side). Raises ssl.SSLError of whichever refuses."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = tls.context().wrap_bio(to_server, to_client, server_side=True)
    peer = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    waiting = [peer, server]
    for _ in range(10):
        for side in list(waiting):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(side)
    assert not waiting
    return server, peer


def _client(ca: TestCa, pair: Pair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(ca.pair.certificate))
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    return context


def test_the_suites_of_the_configuration_are_the_only_ones_of_tls_1_2(ca: TestCa) -> None:
    client = _client(ca)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    tls = _serving(ca, cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",))
    chosen = _shake(tls, client)[1].cipher()
    assert chosen is not None and chosen[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
    client.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with pytest.raises(ssl.SSLError):
        _shake(tls, client)


@pytest.mark.parametrize("options", [{"min_version": "VersionTLS13"}, {"cipher_suites": ("TLS_AES_128_GCM_SHA256",)}])
def test_tls_1_2_can_be_left_out(ca: TestCa, options: dict[str, object]) -> None:
    client = _client(ca)
    assert _shake(_serving(ca, **options), client)[1].version() == "TLSv1.3"
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        _shake(_serving(ca, **options), client)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tls_1_1_is_spoken_only_where_it_is_asked_for(ca: TestCa) -> None:
    client = _client(ca)
    client.minimum_version = client.maximum_version = ssl.TLSVersion.TLSv1_1
    client.set_ciphers("ALL:@SECLEVEL=0")
    assert _shake(_serving(ca, min_version="VersionTLS11"), client)[1].version() == "TLSv1.1"
    with pytest.raises(ssl.SSLError):
        _shake(_serving(ca), client)


def test_a_ca_that_was_replaced_is_trusted_no_longer(ca: TestCa, tmp_path: Path) -> None:
    new = TestCa(tmp_path / "new")
    old_client, new_client = ca.client("a"), new.client("b")
    trusted = tmp_path / "trusted.crt"
    trusted.write_bytes(ca.pair.certificate.read_bytes())
    pair = ca.server("n1", addresses=("127.0.0.1",))
    tls = ServingTls(pair.certificate, pair.key, trusted)
    assert _shake(tls, _client(ca, old_client))[0].getpeercert()
    trusted.unlink()
    trusted.write_bytes(new.pair.certificate.read_bytes())
    tls.reload()
    assert _shake(tls, _client(ca, new_client))[0].getpeercert()
    with pytest.raises(ssl.SSLError):
        _shake(tls, _client(ca, old_client))


def test_a_replaced_serving_certificate_is_shown_and_one_that_does_not_fit_is_not(ca: TestCa, tmp_path: Path) -> None:
    first, second = (ca.server(name, addresses=("127.0.0.1",)) for name in ("first", "second"))
    live = Pair(tmp_path / "live.crt", tmp_path / "live.key")
    live.certificate.write_bytes(first.certificate.read_bytes())
    live.key.write_bytes(first.key.read_bytes())
    tls = ServingTls(live.certificate, live.key, ca.pair.certificate)

    def shown() -> bytes | None:
        return _shake(tls, _client(ca))[1].getpeercert(binary_form=True)

    before = shown()
    live.certificate.unlink()
    live.certificate.write_bytes(second.certificate.read_bytes())
    tls.reload()
    assert shown() == before
    live.key.write_bytes(second.key.read_bytes())
    tls.reload()
    assert shown() == ssl.PEM_cert_to_DER_cert(second.certificate.read_text())
