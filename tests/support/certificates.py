"""Certificates for tests: any CA, any subject, any purpose."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True)
class Pair:
    """Files of a certificate and its key."""

    certificate: Path
    key: Path


class TestCa:
    """A CA of its own below `directory`; each call makes files there."""

    __test__ = False

    def __init__(self, directory: Path, name: str = "test-ca") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            _builder(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.pair = _save(directory / name, certificate, self._key)

    def client(self, user: str, *groups: str, days: int = 1) -> Pair:
        """CN and O as Kubernetes reads them. A negative `days` makes one that is over."""
        return self._leaf(user, groups, ExtendedKeyUsageOID.CLIENT_AUTH, days)

    def server(self, user: str, *groups: str, addresses: tuple[str, ...] = ()) -> Pair:
        """`addresses` are IP addresses that it's valid for."""
        return self._leaf(user, groups, ExtendedKeyUsageOID.SERVER_AUTH, 1, addresses)

    def _leaf(
        self,
        user: str,
        groups: tuple[str, ...],
        purpose: x509.ObjectIdentifier,
        days: int,
        addresses: tuple[str, ...] = (),
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        builder = _builder(subject, self._name, key, days)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        if addresses:
            names = [x509.IPAddress(ip_address(address)) for address in addresses]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return _save(self._directory / f"{user}-{certificate.serial_number:x}", certificate, key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int = 1
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=10))
        .not_valid_after(now + dt.timedelta(days=days))
    )


def _save(stem: Path, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    pair = Pair(stem.with_name(f"{stem.name}.crt"), stem.with_name(f"{stem.name}.key"))
    pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pair.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return pair
