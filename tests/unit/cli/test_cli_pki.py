"""The node's keys: what is made, what is renewed, who may read it."""

from __future__ import annotations

import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from cli.client import read_kubeconfig
from cli.pki import ensure_pki
from cli.tokens import read_tokens, token_for
from shared.runtime.paths import DataPaths

FILES = (
    "ca.crt",
    "ca.key",
    "serving.crt",
    "serving.key",
    "admin.crt",
    "admin.key",
    "admin.kubeconfig",
    "tokens.csv",
)
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def paths(tmp_path: Path) -> DataPaths:
    return DataPaths(tmp_path)


def contents(paths: DataPaths) -> dict[str, bytes]:
    return {name: (paths.pki / name).read_bytes() for name in FILES}


def test_every_file_may_be_read_by_its_owner_only(paths: DataPaths) -> None:
    ensure_pki(paths, "n1", ["10.0.0.1"])
    assert {path.name: path.stat().st_mode & 0o777 for path in paths.pki.iterdir()} == {
        **dict.fromkeys(FILES, 0o600),
        ".lock": 0o600,
        ".tokens.lock": 0o600,
    }
    assert paths.pki.stat().st_mode & 0o777 == 0o700


def test_a_second_call_changes_nothing(paths: DataPaths) -> None:
    ensure_pki(paths, "n1", ["10.0.0.1"])
    before = contents(paths)
    ensure_pki(paths, "n1", ["10.0.0.1"])
    assert contents(paths) == before


def test_a_new_address_makes_a_new_serving_certificate_and_nothing_else(paths: DataPaths) -> None:
    ensure_pki(paths, "n1", ["10.0.0.1"])
    before = contents(paths)
    ensure_pki(paths, "n1", ["10.0.0.2"])
    after = contents(paths)
    assert {name for name in FILES if after[name] != before[name]} == {"serving.crt", "serving.key"}


def test_a_certificate_is_renewed_thirty_days_before_its_end(paths: DataPaths) -> None:
    ensure_pki(paths, "n1", [], now=NOW)
    before = contents(paths)
    ensure_pki(paths, "n1", [], now=NOW + dt.timedelta(days=334))
    assert contents(paths) == before
    ensure_pki(paths, "n1", [], now=NOW + dt.timedelta(days=336))
    assert contents(paths)["ca.crt"] == before["ca.crt"]
    assert contents(paths)["serving.crt"] != before["serving.crt"]


def test_the_serving_certificate_speaks_of_the_node_and_loopback(paths: DataPaths) -> None:
    ensure_pki(paths, "n1.example", ["10.0.0.1", "fd00::1"])
    certificate = x509.load_pem_x509_certificate((paths.pki / "serving.crt").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["n1.example", "localhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == [
        "127.0.0.1",
        "::1",
        "10.0.0.1",
        "fd00::1",
    ]


def test_a_pair_torn_apart_by_a_crash_is_made_anew(paths: DataPaths) -> None:
    ensure_pki(paths, "n1", [])
    (paths.pki / "serving.key").write_bytes((paths.pki / "admin.key").read_bytes())
    ensure_pki(paths, "n1", [])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(paths.pki / "serving.crt", paths.pki / "serving.key")


def test_a_damaged_file_is_named(paths: DataPaths) -> None:
    ensure_pki(paths, "n1", [])
    (paths.pki / "ca.crt").write_text("nonsense")
    with pytest.raises(ValueError, match=r"ca\.crt"):
        ensure_pki(paths, "n1", [])


def test_the_kubeconfig_carries_the_admins_token_and_the_port(paths: DataPaths) -> None:
    ensure_pki(paths, "n1", [], port=10999)
    target = read_kubeconfig(paths.admin_kubeconfig)
    assert (target.host, target.port) == ("127.0.0.1", 10999)
    assert target.token == read_tokens(paths.pki / "tokens.csv")[0].token
    assert target.authorities == (paths.pki / "ca.crt").read_text()


def test_an_operators_own_certificate_is_trusted_by_the_kubeconfig(paths: DataPaths) -> None:
    own = DataPaths(paths.data / "own")
    ensure_pki(own, "elsewhere.example", [])
    ensure_pki(paths, "n1", [], serving_certificate=own.pki / "admin.crt")
    assert (own.pki / "admin.crt").read_text() in read_kubeconfig(paths.admin_kubeconfig).authorities


def test_a_token_is_made_once_per_user_and_role(paths: DataPaths) -> None:
    ensure_pki(paths, "n1", [])
    view = token_for(paths, "ann", "view")
    assert token_for(paths, "ann", "view") == view
    assert [(t.user, t.groups) for t in read_tokens(paths.pki / "tokens.csv")] == [
        ("podbus-admin", ("podbus:admin",)),
        ("ann", ("podbus:view",)),
    ]
