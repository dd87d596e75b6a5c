"""Checks of probes and hooks over raw connections of the event loop: no thread, no client library, nothing kept."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import urljoin, urlsplit

from services.podworker.adapters.network_http import (
    LEAVES,
    HttpExchange,
    Location,
    MalformedAnswer,
    prepare,
)
from services.podworker.ports import HttpAnswer, Unreachable

MAX_REDIRECTS = 10

_Protocol = TypeVar("_Protocol", bound=asyncio.BaseProtocol)


class SocketNetwork:
    """The port Network."""

    def __init__(self) -> None:
        self._tls: ssl.SSLContext | None = None

    async def http_get(self, url: str, headers: Sequence[tuple[str, str]], *, follow: bool) -> HttpAnswer:
        asked_for: str | None = None
        for _ in range(MAX_REDIRECTS):
            at, request = prepare(url, tuple(headers))
            asked_for = asked_for or at.host
            exchange = await self._exchange(at, request)
            answer = HttpAnswer(status=exchange.status, body=bytes(exchange.body))
            if exchange.status not in LEAVES or not exchange.location:
                return answer
            url = urljoin(url, exchange.location)
            if urlsplit(exchange.location).netloc:  # it says whom it asks itself
                headers = [(name, value) for name, value in headers if name.lower() != "host"]
            parts = urlsplit(url)
            if not follow or parts.hostname != asked_for or parts.scheme not in ("http", "https"):
                return HttpAnswer(status=answer.status, body=answer.body, is_redirect_left=True)
        raise Unreachable(f"stopped after {MAX_REDIRECTS} redirects")

    async def tcp_connect(self, host: str, port: int) -> None:
        transport, _ = await connect(host, port, asyncio.Protocol)
        transport.close()

    async def grpc_check(self, host: str, port: int, service: str) -> str:
        # h2 costs 3 MiB: only where a grpc probe is
        from services.podworker.adapters.network_grpc import check_health

        return await check_health(host, port, service)

    async def _exchange(self, at: Location, request: bytes) -> HttpExchange:
        tls = self._unverified() if at.is_tls else None
        transport, exchange = await connect(at.host, at.port, lambda: HttpExchange(request), tls)
        whole = False
        try:
            await exchange.done
            whole = True
        except MalformedAnswer as error:
            raise Unreachable(f"net/http: HTTP/1.x transport connection broken: {error}") from error
        except EOFError as error:
            raise Unreachable(str(error)) from error
        except OSError as error:
            raise Unreachable(f"read tcp {at.address}: read: {reason_of(error)}") from error
        finally:
            if whole and tls is None:
                transport.close()
            else:  # not one more word to a server that is late, and no wait for TLS to say goodbye
                transport.abort()
        return exchange

    def _unverified(self) -> ssl.SSLContext:
        """The server proves nothing: the probe asks whether it answers, as the kubelet's does."""
        if self._tls is None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            context.set_ciphers("DEFAULT:@SECLEVEL=0")  # short keys are the workload's affair
            self._tls = context
        return self._tls


async def connect(
    host: str, port: int, factory: Callable[[], _Protocol], tls: ssl.SSLContext | None = None
) -> tuple[asyncio.Transport, _Protocol]:
    """Raises Unreachable."""
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    loop = asyncio.get_running_loop()
    try:
        return await loop.create_connection(factory, host, port, ssl=tls)
    except ssl.SSLError as error:
        raise Unreachable(_tls_reason(error)) from error
    except socket.gaierror as error:
        raise Unreachable(f"dial tcp: lookup {host}: no such host") from error
    except ConnectionResetError as error:  # in the handshake
        raise Unreachable(f"read tcp {address}: read: {reason_of(error)}") from error
    except OSError as error:
        raise Unreachable(f"dial tcp {address}: connect: {reason_of(error)}") from error


def reason_of(error: OSError) -> str:
    """As the kubelet has it: the system's words, in lower case."""
    return os.strerror(error.errno).lower() if error.errno else str(error) or type(error).__name__


def _tls_reason(error: ssl.SSLError) -> str:
    if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "http: server gave HTTP response to HTTPS client"
    return f"tls: {(error.reason or str(error)).lower().replace('_', ' ')}"
