"""A kubeconfig's files -> where the server is and who we are, read again when they change."""

from __future__ import annotations

import logging
import os
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from shared.apiserver.kubeconfig import ApiServer, KubeconfigError, Pem, current_server

log = logging.getLogger("podbus.apiserver")

_CHECK_SECONDS = 1.0
"""How often the files are looked at, at most."""


@dataclass(frozen=True, eq=False)
class Link:
    """One state of the files. Connections belong to the state that they were made for."""

    server: ApiServer
    tls: ssl.SSLContext | None
    """None = plain HTTP."""

    @property
    def tls_name(self) -> str:
        return self.server.tls_name or self.server.host

    def token(self) -> str:
        """Raises OSError."""
        return self.server.token_file.read_text().strip() if self.server.token_file else self.server.token


class LinkFiles:
    """From any thread."""

    def __init__(self, kubeconfig: Path) -> None:
        """Reads nothing yet."""
        self._kubeconfig = kubeconfig
        self._lock = threading.Lock()
        self._link: Link | None = None
        self._seen: tuple[tuple[int, int, int], ...] = ()
        self._looked_at = float("-inf")

    def current(self) -> Link:
        """Raises OSError or ValueError when the kubeconfig, or what it names, can't be used now."""
        with self._lock:
            now = time.monotonic()
            if self._link is not None and now - self._looked_at < _CHECK_SECONDS:
                return self._link
            self._looked_at = now
            seen = _stamps([self._kubeconfig, *(self._link.server.files if self._link else [])])
            if self._link is None or seen != self._seen:
                server = current_server(_parsed(self._kubeconfig), self._kubeconfig.parent)
                self._link = Link(server, _context(server))
                self._seen = _stamps([self._kubeconfig, *server.files])
                log.info("kubeconfig read path=%s server=%s:%d", self._kubeconfig, server.host, server.port)
            return self._link


def _parsed(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text())
    except (yaml.YAMLError, UnicodeDecodeError):
        raise KubeconfigError(f"{path}: is not YAML") from None  # the error would quote a secret


def _stamps(paths: list[Path]) -> tuple[tuple[int, int, int], ...]:
    found = [path.stat() for path in paths]
    return tuple((one.st_mtime_ns, one.st_ino, one.st_size) for one in found)


def _context(server: ApiServer) -> ssl.SSLContext | None:
    if not server.secure:
        return None
    authority = server.authority.read_text() if isinstance(server.authority, Path) else server.authority
    text = authority.decode() if isinstance(authority, bytes) else authority
    context = ssl.create_default_context(cadata=text) if text else ssl.create_default_context()
    if not server.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if server.certificate is not None and server.key is not None:
        with _as_file(server.certificate) as certificate, _as_file(server.key) as key:
            try:
                context.load_cert_chain(certificate, key)
            except ssl.SSLError as error:
                raise KubeconfigError(f"users: client-certificate with client-key: {error}") from error
    return context


@contextmanager
def _as_file(pem: Pem) -> Iterator[str]:
    """OpenSSL reads a pair from files only: the kubeconfig's own text becomes one that has no name on any disk."""
    if isinstance(pem, Path):
        yield str(pem)
        return
    descriptor = os.memfd_create("pem")
    try:
        os.write(descriptor, pem or b"")
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
