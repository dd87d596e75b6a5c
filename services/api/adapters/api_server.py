"""HTTPS to the API server that a kubeconfig names: the standard library's client in a few threads of its own."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import os
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from services.api.adapters.kubeconfig import ApiServer, KubeconfigError, Pem, current_server
from services.api.core.reviews import is_transient
from services.api.ports import ReviewFailed

log = logging.getLogger("podbus.api.apiserver")

_THREADS = 8
_CALL_SECONDS = 10.0
_CHECK_SECONDS = 1.0
_LARGEST_ANSWER = 1 << 20


class ApiServerClient:
    """ports.ReviewPost. Changed files of the kubeconfig count from the next call on."""

    def __init__(self, kubeconfig: Path) -> None:
        """Reads nothing yet."""
        self._kubeconfig = kubeconfig
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="apiserver")
        self._lock = threading.Lock()
        self._link: tuple[ApiServer, ssl.SSLContext | None] | None = None
        self._seen: tuple[tuple[int, int, int], ...] = ()
        self._looked_at = float("-inf")
        self._kept = threading.local()

    async def __call__(self, path: str, body: dict[str, Any]) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._post, path, json.dumps(body).encode())

    def check(self) -> None:
        """Raises OSError or ValueError when the kubeconfig can't be used now."""
        self._current()

    def close(self) -> None:
        """Threads that wait for an answer end with it."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _post(self, path: str, body: bytes) -> Any:
        try:
            server, context = self._current()
            status, answer = self._send(server, context, path, body)
        except (ValueError, ssl.SSLCertVerificationError, ConnectionRefusedError, FileNotFoundError) as error:
            raise ReviewFailed(str(error)) from error
        except (OSError, http.client.HTTPException) as error:
            raise ReviewFailed(f"{type(error).__name__} {error}", transient=True) from error
        if status not in (200, 201):
            raise ReviewFailed(f"{path}: status {status} {_reason(answer)}", transient=is_transient(status))
        try:
            return json.loads(answer)
        except ValueError as error:
            raise ReviewFailed(f"{path}: the answer is not JSON") from error

    def _send(self, server: ApiServer, context: ssl.SSLContext | None, path: str, body: bytes) -> tuple[int, bytes]:
        """On the thread's connection; one that the server has closed meanwhile is made anew, once."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        token = server.token_file.read_text().strip() if server.token_file else server.token
        if token:
            headers["Authorization"] = f"Bearer {token}"
        kept: tuple[object, http.client.HTTPConnection] | None = getattr(self._kept, "link", None)
        if kept is not None and kept[0] is not self._link:
            kept[1].close()
            kept = None
        for link in (*([kept[1]] if kept else []), _connection(server, context)):
            try:
                link.request("POST", server.base + path, body, headers)
                response = link.getresponse()
                answer = response.read(_LARGEST_ANSWER)
            except BaseException as error:
                link.close()
                self._kept.link = None
                if (
                    kept is not None
                    and link is kept[1]
                    and isinstance(error, ConnectionError | http.client.HTTPException)
                ):
                    continue
                raise
            if response.isclosed():
                self._kept.link = (self._link, link)
            else:
                link.close()
                self._kept.link = None
            return response.status, answer
        raise AssertionError("the last connection returns or raises")

    def _current(self) -> tuple[ApiServer, ssl.SSLContext | None]:
        with self._lock:
            now = time.monotonic()
            if self._link is not None and now - self._looked_at < _CHECK_SECONDS:
                return self._link
            self._looked_at = now
            seen = _stamps([self._kubeconfig, *(self._link[0].files if self._link else [])])
            if self._link is None or seen != self._seen:
                server = current_server(_parsed(self._kubeconfig), self._kubeconfig.parent)
                self._link = server, _context(server)
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


def _connection(server: ApiServer, context: ssl.SSLContext | None) -> http.client.HTTPConnection:
    if context is None:
        return http.client.HTTPConnection(server.host, server.port, timeout=_CALL_SECONDS)
    return _NamedConnection(server, context)


class _NamedConnection(http.client.HTTPSConnection):
    """HTTPS whose certificate may be for another name than the host's."""

    def __init__(self, server: ApiServer, context: ssl.SSLContext) -> None:
        super().__init__(server.host, server.port, timeout=_CALL_SECONDS, context=context)
        self._tls_name = server.tls_name or server.host
        self._tls = context

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._tls_name)


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


def _reason(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["message"])[:200]
    except (ValueError, KeyError, TypeError):
        return ""
