"""Manifests at a URL, fetched as Go's default client does: TLS verified, at most ten redirects, proxies from the
environment, one deadline over all of it.

The standard library in a thread of its own per question: at its deadline the connection is cut, and a thread that
the resolver holds is left behind, never waited for.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from urllib.parse import SplitResult, unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from services.source.core.documents import MAX_FILE_BYTES
from services.source.ports import UrlUnavailable
from shared.runtime.config import without_credentials
from shared.runtime.service import package_version

TIMEOUT_SECONDS = 10.0
MAX_REDIRECTS = 10
_LATER_SECONDS = 5.0
_REDIRECTS = (301, 302, 303, 307, 308)
_PRIVATE = ("authorization", "cookie", "cookie2", "www-authenticate", "proxy-authorization", "proxy-authenticate")
"""Headers that only the first host and its subdomains get."""
_CHUNK = 1 << 16
Headers = list[tuple[str, str]]


class ManifestUrl:
    """ManifestPage (services.source.ports)."""

    def __init__(
        self, url: str, headers: Mapping[str, Sequence[str]] | None = None, *, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self._url = url
        self._headers = [(name, value) for name, values in (headers or {}).items() for value in values]
        self._timeout = timeout
        self.origin = without_credentials(url)

    async def fetch(self) -> bytes:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()
        # Its sockets give up later than we do: one text for one trouble.
        call = _Call(self._url, self._headers, self._timeout + _LATER_SECONDS)

        def settle(body: bytes | None, error: str) -> None:
            if answer.done():
                return
            if body is None:
                answer.set_exception(UrlUnavailable(f"no manifests from {self.origin}: {error}"))
            else:
                answer.set_result(body)

        def work() -> None:
            body, error = call.outcome()
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(settle, body, error)

        threading.Thread(target=work, name="manifest-url", daemon=True).start()
        try:
            return await asyncio.wait_for(answer, self._timeout)
        except TimeoutError:
            error = f"no manifests from {self.origin}: no whole answer within {self._timeout:g} s"
            raise UrlUnavailable(error) from None
        finally:
            call.cut()


class _Refused(Exception):
    """What the other side said isn't an answer to go by."""


class _Call:
    """One question with its redirects. `outcome` runs in a thread, `cut` comes from the loop."""

    def __init__(self, url: str, headers: Headers, timeout: float) -> None:
        self._url = url
        self._headers = headers
        self._timeout = timeout
        self._sock: socket.socket | None = None
        self._is_cut = False

    def cut(self) -> None:
        self._is_cut = True
        if (sock := self._sock) is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def outcome(self) -> tuple[bytes | None, str]:
        """The body, or why there is none."""
        try:
            return self._follow(), ""
        except _Refused as error:
            return None, str(error)
        except ssl.SSLCertVerificationError as error:
            return None, f"its certificate isn't trusted: {error.verify_message}"
        except http.client.RemoteDisconnected:
            return None, "the connection was closed without an answer"
        except http.client.IncompleteRead:
            return None, "the answer broke off"
        except http.client.HTTPException as error:
            return None, f"not an HTTP answer: {type(error).__name__}"
        except (OSError, ValueError) as error:
            return None, getattr(error, "strerror", None) or str(error) or type(error).__name__

    def _follow(self) -> bytes:
        url, headers = self._url, self._headers
        first = urlsplit(url).hostname or ""
        for _ in range(MAX_REDIRECTS + 1):
            found = self._ask(url, headers)
            if isinstance(found, bytes):
                return found
            url = urljoin(url, found)
            target = urlsplit(url)
            if target.scheme not in ("http", "https") or not target.hostname:
                raise _Refused(f"redirected to {without_credentials(url)}, which is no http or https URL")
            if not _is_within(target.hostname, first):
                headers = [(name, value) for name, value in headers if name.lower() not in _PRIVATE]
        raise _Refused(f"more than {MAX_REDIRECTS} redirects")

    def _ask(self, url: str, headers: Headers) -> bytes | str:
        """The body, or where it's to be found instead."""
        parts = urlsplit(url)
        connection, target, extra = _route(parts, self._timeout)
        try:
            connection.connect()
            self._sock = connection.sock  # the connection forgets it once the answer has begun
            if self._is_cut:
                raise _Refused("given up")
            _send(connection, parts, target, [*headers, *extra])
            response = connection.getresponse()
            if response.status in _REDIRECTS and (location := response.getheader("Location")):
                return location
            if response.status != http.client.OK:
                raise _Refused(f"{response.status} {response.reason}".strip())
            return _read(response)
        finally:
            self._sock = None
            connection.close()


def _read(response: http.client.HTTPResponse) -> bytes:
    body = bytearray()
    while chunk := response.read(_CHUNK):
        body += chunk
        if len(body) > MAX_FILE_BYTES:
            raise _Refused(f"the answer is larger than {MAX_FILE_BYTES >> 20} MiB")
    if response.length:  # read(n) is silent about a body that is shorter than announced
        raise http.client.IncompleteRead(b"", response.length)
    return bytes(body)


def _send(connection: http.client.HTTPConnection, parts: SplitResult, target: str, headers: Headers) -> None:
    connection.putrequest("GET", target, skip_host=True, skip_accept_encoding=True)
    connection.putheader("Host", parts.netloc.rpartition("@")[2])
    given = {name.lower() for name, _ in headers}
    own = [("User-Agent", f"podbus/{package_version()}"), ("Connection", "close")]
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        own.append(("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
    for name, value in [*(one for one in own if one[0].lower() not in given), *headers]:
        if name.lower() != "host":  # Go takes it from the URL alone
            connection.putheader(name, value)
    connection.endheaders()


def _route(parts: SplitResult, timeout: float) -> tuple[http.client.HTTPConnection, str, Headers]:
    """The connection to ask over, what to ask for on it, and headers for a proxy."""
    host, port = parts.hostname or "", parts.port
    path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    proxy = _proxy(parts.scheme, host, port)
    if proxy is None:
        if parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=timeout, context=_context()), path, []
        return http.client.HTTPConnection(host, port, timeout=timeout), path, []
    pair = f"{unquote(proxy.username or '')}:{unquote(proxy.password or '')}"
    pass_ = f"Basic {base64.b64encode(pair.encode()).decode()}"
    credentials = [("Proxy-Authorization", pass_)] if proxy.username else []
    if parts.scheme == "https":
        tunnel = http.client.HTTPSConnection(proxy.hostname or "", proxy.port, timeout=timeout, context=_context())
        tunnel.set_tunnel(host, port or 443, dict(credentials))
        return tunnel, path, []
    place = parts.netloc.rpartition("@")[2]
    connection = http.client.HTTPConnection(proxy.hostname or "", proxy.port, timeout=timeout)
    return connection, f"http://{place}{path}", credentials


def _proxy(scheme: str, host: str, port: int | None) -> SplitResult | None:
    """As the environment says; never for this machine itself (Go: ProxyFromEnvironment)."""
    named = getproxies().get(scheme)
    if not named or _is_local(host) or proxy_bypass(f"{host}:{port}" if port else host):
        return None
    return urlsplit(named if "://" in named else f"http://{named}")


def _is_local(host: str) -> bool:
    return host == "localhost" or host == "::1" or host.startswith("127.")


def _context() -> ssl.SSLContext:
    """The system's authorities, or those of SSL_CERT_FILE; read anew, for a process lives long."""
    return ssl.create_default_context()


def _is_within(host: str, first: str) -> bool:
    return host == first or host.endswith(f".{first}")
