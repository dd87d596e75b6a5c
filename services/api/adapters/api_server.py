"""HTTPS to the API server that a kubeconfig names: the standard library's client, each call in a thread of its own.

The threads are daemons, at most eight at a time: one that waits for a silent server doesn't hold up the process' end.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import logging
import os
import ssl
import threading
import time
from collections.abc import Iterator
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
        self._permits = asyncio.Semaphore(_THREADS)
        self._lock = threading.Lock()
        self._link: tuple[ApiServer, ssl.SSLContext | None] | None = None
        self._seen: tuple[tuple[int, int, int], ...] = ()
        self._looked_at = float("-inf")
        self._idle: list[tuple[object, http.client.HTTPConnection]] = []
        """Connections, each with the state of the kubeconfig that it was made for."""

    async def __call__(self, path: str, body: dict[str, Any]) -> Any:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        data = json.dumps(body).encode()

        def call() -> None:
            result: Any = None
            failure: Exception | None = None
            try:
                result = self._post(path, data)
            except Exception as error:  # noqa: BLE001  the thread's boundary: whatever it is, the caller gets it
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(_settle, done, result, failure)

        async with self._permits:
            threading.Thread(target=call, name="apiserver", daemon=True).start()
            return await done

    def check(self) -> None:
        """Raises OSError or ValueError when the kubeconfig can't be used now."""
        self._current()

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
        """On a connection that is there; one that the server has closed meanwhile is made anew, once."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        token = server.token_file.read_text().strip() if server.token_file else server.token
        if token:
            headers["Authorization"] = f"Bearer {token}"
        kept = self._take_idle(server)
        for link in (*([kept] if kept else []), _connection(server, context)):
            try:
                link.request("POST", server.base + path, body, headers)
                response = link.getresponse()
                answer = response.read(_LARGEST_ANSWER)
            except BaseException as error:
                link.close()
                if link is kept and isinstance(error, ConnectionError | http.client.HTTPException):
                    continue
                raise
            if response.isclosed():
                with self._lock:
                    self._idle.append((server, link))
            else:
                link.close()
            return response.status, answer
        raise AssertionError("the last connection returns or raises")

    def _take_idle(self, server: ApiServer) -> http.client.HTTPConnection | None:
        with self._lock:
            while self._idle:
                made_for, link = self._idle.pop()
                if made_for is server:
                    return link
                link.close()
        return None

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


def _settle(done: asyncio.Future[Any], result: Any, failure: Exception | None) -> None:
    if done.cancelled():
        return
    if failure is not None:
        done.set_exception(failure)
    else:
        done.set_result(result)


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
