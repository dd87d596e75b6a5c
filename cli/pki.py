"""The node's own keys: a CA, the API's serving pair, an admin's certificate, bearer tokens, a kubeconfig.

`cryptography` costs 30 MiB: import this module in short processes only.
"""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cli.private_files import make_private_directory, write_private
from cli.tokens import ADMIN_GROUP, admin_token
from shared.runtime.filelock import FileLock
from shared.runtime.paths import DataPaths

CA_DAYS = 3650
LEAF_DAYS = 365
RENEW_DAYS = 30
_SKEW = dt.timedelta(hours=1)
"""A client whose clock is a little behind accepts a new certificate all the same."""


@dataclass(frozen=True)
class _Pair:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def ensure_pki(
    paths: DataPaths,
    node_name: str,
    addresses: Sequence[str],
    *,
    port: int = 10250,
    serving_certificate: Path | None = None,
    now: dt.datetime | None = None,
) -> None:
    """Make what is missing below `<data>/pki`, and anew what ends within 30 days or lacks an address. Idempotent.

    ca.crt, ca.key (10 years), serving.crt, serving.key (1 year; node name, localhost, 127.0.0.1, ::1 and `addresses`),
    admin.crt, admin.key (CN podbus-admin, O podbus:admin), tokens.csv, admin.kubeconfig: EC P-256, all 0600.
    `serving_certificate`: the operator's own, which the kubeconfig then trusts too. Raises OSError, or ValueError for
    a damaged file.
    """
    moment = now or dt.datetime.now(dt.UTC)
    make_private_directory(paths.pki)
    with FileLock(paths.pki / ".lock"):
        ca = _load(paths.pki / "ca.crt", paths.pki / "ca.key")
        if ca is None or _ends_soon(ca.certificate, moment):
            ca = _make_ca(node_name, moment)
            _save(paths.pki / "ca.crt", paths.pki / "ca.key", ca)
        names = _serving_names(node_name, addresses)
        if not _is_good(_load(paths.pki / "serving.crt", paths.pki / "serving.key"), ca, names, moment):
            subject = _name(f"system:node:{node_name}", "system:nodes")
            pair = _make_leaf(ca, subject, names, ExtendedKeyUsageOID.SERVER_AUTH, moment)
            _save(paths.pki / "serving.crt", paths.pki / "serving.key", pair)
        if not _is_good(_load(paths.pki / "admin.crt", paths.pki / "admin.key"), ca, [], moment):
            subject = _name("podbus-admin", ADMIN_GROUP)
            pair = _make_leaf(ca, subject, [], ExtendedKeyUsageOID.CLIENT_AUTH, moment)
            _save(paths.pki / "admin.crt", paths.pki / "admin.key", pair)
        token = admin_token(paths)
        text = _kubeconfig(_pem(ca.certificate), serving_certificate, node_name, port, token)
        write_private(paths.admin_kubeconfig, text)


def _make_ca(node_name: str, now: dt.datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"podbus-ca-{node_name}"[:64], "")
    builder = _builder(name, name, key.public_key(), now, CA_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs=True), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return _Pair(builder.sign(key, hashes.SHA256()), key)


def _make_leaf(
    ca: _Pair,
    subject: x509.Name,
    names: Sequence[x509.GeneralName],
    purpose: x509.ObjectIdentifier,
    now: dt.datetime,
) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(subject, ca.certificate.subject, key.public_key(), now, LEAF_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.key.public_key())
    builder = builder.add_extension(issuer, critical=False)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return _Pair(builder.sign(ca.key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: dt.datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + dt.timedelta(days=days))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str, organization: str) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _serving_names(node_name: str, addresses: Sequence[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for text in dict.fromkeys((node_name, "localhost", "127.0.0.1", "::1", *addresses)):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(text)))
        except ValueError:
            names.append(x509.DNSName(text))
    return names


def _is_good(pair: _Pair | None, ca: _Pair, names: Sequence[x509.GeneralName], now: dt.datetime) -> bool:
    if pair is None or _ends_soon(pair.certificate, now):
        return False
    try:
        pair.certificate.verify_directly_issued_by(ca.certificate)
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it is made anew
        return False
    if not names:
        return True
    try:
        found = pair.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    return set(names) <= set(found)


def _ends_soon(certificate: x509.Certificate, now: dt.datetime) -> bool:
    return certificate.not_valid_after_utc - now < dt.timedelta(days=RENEW_DAYS)


def _load(certificate: Path, key: Path) -> _Pair | None:
    """None when one of the two is missing, or they don't belong together (a crash between the two writes)."""
    try:
        loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
        private = serialization.load_pem_private_key(key.read_bytes(), None)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{certificate} or {key} is damaged ({error}): remove both to have new ones") from error
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise ValueError(f"{key} is no elliptic-curve key: remove it and {certificate} to have new ones")
    if private.public_key() != loaded.public_key():
        return None
    certificate.chmod(0o600)
    key.chmod(0o600)
    return _Pair(loaded, private)


def _save(certificate: Path, key: Path, pair: _Pair) -> None:
    private = pair.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_private(key, private)
    write_private(certificate, _pem(pair.certificate))


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _kubeconfig(ca: bytes, serving: Path | None, node_name: str, port: int, token: str) -> str:
    """By token and not by certificate, so that it goes on working when authentication.x509.clientCAFile is set."""
    trusted, server_name = ca, ""
    if serving is not None:
        own = serving.read_bytes()
        trusted += own
        server_name = _reachable_name(x509.load_pem_x509_certificate(own))
    lines = [
        "apiVersion: v1",
        "kind: Config",
        "clusters:",
        f"- name: {node_name}",
        "  cluster:",
        f"    server: https://127.0.0.1:{port}",
        *([f"    tls-server-name: {server_name}"] if server_name else []),
        f"    certificate-authority-data: {base64.b64encode(trusted).decode()}",
        "users:",
        "- name: podbus-admin",
        "  user:",
        f"    token: {token}",
        "contexts:",
        f"- name: {node_name}",
        "  context:",
        f"    cluster: {node_name}",
        "    user: podbus-admin",
        f"current-context: {node_name}",
        "",
    ]
    return "\n".join(lines)


def _reachable_name(certificate: x509.Certificate) -> str:
    """ "" when the certificate speaks of 127.0.0.1, else a name that it does speak of."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ""
    if ipaddress.ip_address("127.0.0.1") in names.get_values_for_type(x509.IPAddress):
        return ""
    return next(iter(names.get_values_for_type(x509.DNSName)), "")
