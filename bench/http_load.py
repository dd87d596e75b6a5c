"""A small HTTP/1.1 client that costs little: keep-alive, Content-Length bodies only."""

from __future__ import annotations

import socket
import ssl
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context


@dataclass(frozen=True)
class Endpoint:
    """Where to connect, and as whom."""

    address: tuple[str, int]
    authorities: str = ""
    """PEM file of who may sign the server's certificate; "" = no TLS."""
    token: str = ""

    def connect(self) -> KeepAlive:
        return KeepAlive(self)


class KeepAlive:
    """One connection."""

    def __init__(self, endpoint: Endpoint) -> None:
        host, port = endpoint.address
        self._socket = socket.create_connection(endpoint.address, timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if endpoint.authorities:
            context = ssl.create_default_context(cafile=endpoint.authorities)
            self._socket = context.wrap_socket(self._socket, server_hostname=host)
        self._head = f"Host: {host}:{port}\r\n"
        if endpoint.token:
            self._head += f"Authorization: Bearer {endpoint.token}\r\n"

    def get(self, path: str) -> tuple[int, bytes]:
        """(status, body). Raises OSError."""
        self._socket.sendall(f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode())
        data = bytearray()
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._received()
        head = bytes(data[:end]).lower()
        _, found, after = head.partition(b"content-length:")
        if not found:
            raise OSError(f"GET {path}: an answer without a length")
        whole = end + 4 + int(after.split(b"\r\n", 1)[0])
        while len(data) < whole:
            data += self._received()
        return int(head.split(b" ", 2)[1]), bytes(data[end + 4 : whole])

    @property
    def socket(self) -> socket.socket:
        """For what isn't a request and its answer."""
        return self._socket

    def close(self) -> None:
        self._socket.close()

    def _received(self) -> bytes:
        part = self._socket.recv(1 << 18)
        if not part:
            raise OSError("the connection was closed")
        return part


@dataclass(frozen=True)
class Latency:
    status: int
    size: int
    """Of the last body, bytes."""
    milliseconds: list[float]


def latency(link: KeepAlive, path: str, seconds: float, most: int = 2000) -> Latency:
    """One request after another on one connection."""
    times: list[float] = []
    status, body = link.get(path)
    until = time.monotonic() + seconds
    while status == 200 and time.monotonic() < until and len(times) < most:
        began = time.perf_counter()
        status, body = link.get(path)
        times.append((time.perf_counter() - began) * 1000)
    return Latency(status, len(body), times)


def requests_per_second(endpoint: Endpoint, path: str, seconds: float, connections: int = 4) -> float:
    """Each connection is a process of its own, so that the client isn't what is measured."""
    with ProcessPoolExecutor(connections, mp_context=get_context("fork")) as pool:
        counts = [pool.submit(_count, endpoint, path, seconds) for _ in range(connections)]
        return sum(count.result() for count in counts) / seconds


def _count(endpoint: Endpoint, path: str, seconds: float) -> int:
    link = endpoint.connect()
    done, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        link.get(path)
        done += 1
    link.close()
    return done
