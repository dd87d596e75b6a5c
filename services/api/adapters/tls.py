"""The serving certificate and the CA of client certificates; read again when their files change."""

from __future__ import annotations

import logging
import ssl
import warnings
from pathlib import Path

from shared.runtime.tls_names import CIPHER_SUITES, TLS_VERSIONS

log = logging.getLogger("podbus.api.tls")

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2: forward secrecy and authenticated encryption only. TLS 1.3 has nothing weaker."""


class ServingTls:
    """Files -> an SSLContext. A client's certificate that the CA didn't sign is refused in the handshake."""

    def __init__(
        self,
        certificate: Path,
        key: Path,
        client_ca: Path,
        *,
        min_version: str = "VersionTLS12",
        cipher_suites: tuple[str, ...] = (),
    ) -> None:
        """Versions and suites by Go's names, as in shared.runtime.tls_names."""
        self._certificate = certificate
        self._key = key
        self._client_ca = client_ca
        self._min_version = min_version
        self._cipher_suites = cipher_suites
        self._context: ssl.SSLContext | None = None
        self._newest: ssl.SSLContext | None = None
        self._seen: tuple[tuple[int, int], ...] = ()

    def missing(self) -> list[Path]:
        """Files that aren't there (yet)."""
        return [path for path in (self._certificate, self._key, self._client_ca) if not path.is_file()]

    def context(self) -> ssl.SSLContext:
        """The context that new connections use; the same one for ever. Raises OSError, ValueError naming the files."""
        if self._context is None:
            self._seen = self._stamps()
            self._context = self._newest = self._load()
            self._context.sni_callback = self._take_newest
        return self._context

    def reload(self) -> None:
        """Take over changed files for new connections. Files that don't fit together change nothing."""
        if self._context is None:
            return
        try:
            seen = self._stamps()
            if seen == self._seen:
                return
            self._newest = self._load()
        except (OSError, ValueError) as error:
            log.error("changed certificates not taken over error=%s", error)
            return
        self._seen = seen
        log.info("certificates read again certificate=%s ca=%s", self._certificate, self._client_ca)

    def _take_newest(self, link: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext) -> None:
        """Called in each handshake, with a server name or without. A new context in place of additions to the old:
        OpenSSL forgets no CA."""
        if self._newest is not None and self._newest is not self._context:
            link.context = self._newest

    def _stamps(self) -> tuple[tuple[int, int], ...]:
        stats = [path.stat() for path in (self._certificate, self._key, self._client_ca)]
        return tuple((found.st_mtime_ns, found.st_ino) for found in stats)

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._choose_protocols(context)
        # a resumed session would skip the look at the client's certificate
        context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        context.num_tickets = 0
        context.set_alpn_protocols(["http/1.1"])
        context.verify_mode = ssl.CERT_OPTIONAL
        self._fill(context)
        return context

    def _choose_protocols(self, context: ssl.SSLContext) -> None:
        ciphers = ":".join(CIPHER_SUITES[name] for name in self._cipher_suites if name in CIPHER_SUITES)
        oldest = ssl.TLSVersion[TLS_VERSIONS[self._min_version]]
        if self._cipher_suites and not ciphers:
            oldest = ssl.TLSVersion.TLSv1_3  # only suites of TLS 1.3: nothing is left for the older ones
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the operator asked for it
            context.minimum_version = oldest
        if oldest < ssl.TLSVersion.TLSv1_2:
            log.warning("TLS before 1.2 is served: tlsMinVersion is %s", self._min_version)
            ciphers = f"{ciphers or 'ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES'}:@SECLEVEL=0"
        context.set_ciphers(ciphers or _CIPHERS)

    def _fill(self, context: ssl.SSLContext) -> None:
        try:
            context.load_cert_chain(self._certificate, self._key)
        except ssl.SSLError as error:
            raise ValueError(f"{self._certificate} with {self._key}: {error}") from error
        try:
            context.load_verify_locations(self._client_ca)
        except ssl.SSLError as error:
            raise ValueError(f"{self._client_ca}: {error}") from error
