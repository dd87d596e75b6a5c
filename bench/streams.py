"""How fast bytes come out of and into containers through the API, over TLS and SPDY."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlencode

from bench.http_load import Endpoint
from bench.node import NAME, BenchNode
from bench.report import Row, median
from services.api.spdy.client import SpdyClient

POD = "streamed"
_OUT_BYTES = 256 << 20
_IN_BYTES = 64 << 20
_CHUNK = 32 << 10
"""What kubectl's own writer sends at a time."""
_LOG_LINES = 200_000
_LINE = "a line of a log that is as long as lines of logs often are"
_WRITES_LOG = ["sh", "-c", f"yes '{_LINE}' | head -n {_LOG_LINES}; sleep 3600"]
_READY_SECONDS = 60.0
BIG_POD = "big-log"
_WRITES_BIG_LOG = [
    "sh",
    "-c",
    "yes $(head -c 2000 /dev/zero | tr '\\0' x) | head -c 1073741824; echo; echo that is all; sleep 3600",
]
_WRITTEN_SECONDS = 240.0


class Command:
    """One exec: a small client, so that it isn't what is measured."""

    def __init__(self, endpoint: Endpoint, words: Sequence[str], *, stdin: bool = False) -> None:
        query = [("command", word) for word in words] + [("output", "1")] + [("input", "1")] * stdin
        self.socket = endpoint.connect().socket
        self._client = SpdyClient()
        self.socket.sendall(
            f"POST /exec/default/{POD}-{NAME}/main?{urlencode(query)} HTTP/1.1\r\nHost: node\r\n"
            f"Authorization: Bearer {endpoint.token}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
            "X-Stream-Protocol-Version: v4.channel.k8s.io\r\nContent-Length: 0\r\n\r\n".encode()
        )
        answer = self.socket.recv(1 << 16)
        if b" 101 " not in answer[:32]:
            raise OSError(f"no upgrade: {answer[:200]!r}")
        self.ids = {kind: self._open(kind) for kind in ("error", *(["stdin"] if stdin else []), "stdout")}

    def _open(self, kind: str) -> int:
        stream_id, data = self._client.open({"streamtype": kind})
        self.socket.sendall(data)
        return stream_id

    def send(self, total: int) -> None:
        data = bytes(_CHUNK)
        for _ in range(total // _CHUNK):
            self.socket.sendall(self._client.send(self.ids["stdin"], data))
        self.socket.sendall(self._client.send(self.ids["stdin"], b"", fin=True))

    def until_success(self) -> int:
        """Bytes that came until the status said Success."""
        buffer, total, tail = bytearray(1 << 20), 0, b""
        while True:
            size = self.socket.recv_into(buffer)
            if not size:
                raise OSError("the connection ended before the command's status")
            total += size
            tail = tail[-32:] + bytes(buffer[max(0, size - 512) : size])
            if b'"Success"' in tail:
                return total


def exec_rows(node: BenchNode, rounds: int) -> list[Row]:
    """exec of true; bytes out of a container; bytes into one; a log of 200,000 lines."""
    _begin(node, POD, _WRITES_LOG)
    endpoint = node.endpoint
    times = [_seconds(lambda: _run(endpoint, ["true"])) for _ in range(4 * rounds)]
    out = [_OUT_BYTES / _seconds(lambda: _out(endpoint)) / 1e6 for _ in range(rounds)]
    into = [_IN_BYTES / _seconds(lambda: _into(endpoint)) / 1e6 for _ in range(rounds)]
    logs = [_log_speed(endpoint) for _ in range(rounds)]
    node.empty([POD])
    return [
        Row("exec", f"{median(times) * 1000:.0f} ms", median(times) <= 0.110, [], {"ms": [t * 1000 for t in times]}),
        _rate("bytes-out", out, 200.0),
        _rate("bytes-in", into, 150.0),
        _rate("log", logs, 50.0),
    ]


def _begin(node: BenchNode, name: str, command: list[str]) -> None:
    """Beside the pods of other rows."""
    others = node.running()
    node.drop([name], command=command)
    node.wait_running(others + 1, every=0.05, within=_READY_SECONDS)


def tail_row(node: BenchNode, rounds: int) -> Row:
    """The first byte of the last ten lines of a log of one GiB."""
    _begin(node, BIG_POD, _WRITES_BIG_LOG)
    endpoint = node.endpoint
    began = time.monotonic()
    while b"that is all" not in _log_bytes(endpoint, BIG_POD, "tailLines=1&limitBytes=4096")[1]:
        if time.monotonic() - began > _WRITTEN_SECONDS:
            raise OSError(f"no log of a GiB within {_WRITTEN_SECONDS:.0f} s")
        time.sleep(1)
    found = [_log_bytes(endpoint, BIG_POD, "tailLines=10") for _ in range(4 * rounds)]
    if any(body.count(b"\n") < 10 for _, body in found):
        raise OSError("too few lines came")
    node.empty([BIG_POD])
    times = [seconds for seconds, _ in found]
    parts = [f"{min(times) * 1000:.0f} to {max(times) * 1000:.0f} ms, {len(times)} times"]
    return Row(
        "log-tail", f"{median(times) * 1000:.0f} ms", median(times) <= 0.050, parts, {"ms": [t * 1000 for t in times]}
    )


def _log_bytes(endpoint: Endpoint, pod: str, query: str) -> tuple[float, bytes]:
    """(seconds to the first byte of the body, all that came), on a connection that is there already."""
    link: socket.socket = endpoint.connect().socket
    began, first, data = time.perf_counter(), 0.0, bytearray()
    link.sendall(
        f"GET /containerLogs/default/{pod}-{NAME}/main?{query} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n"
        f"Authorization: Bearer {endpoint.token}\r\n\r\n".encode()
    )
    while part := link.recv(1 << 16):
        data += part
        if not first and not data.endswith(b"\r\n\r\n"):
            first = time.perf_counter() - began
    link.close()
    return first, bytes(data)


def _rate(key: str, rates: list[float], target: float) -> Row:
    best = median(rates)
    parts = [f"{min(rates):.0f} to {max(rates):.0f} MB/s in {len(rates)} rounds"]
    return Row(key, f"{best:.0f} MB/s", best >= target, parts, {"mb_per_s": rates})


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _run(endpoint: Endpoint, words: list[str]) -> None:
    command = Command(endpoint, words)
    command.until_success()
    command.socket.close()


def _out(endpoint: Endpoint) -> None:
    command = Command(endpoint, ["head", "-c", str(_OUT_BYTES), "/dev/zero"])
    if command.until_success() < _OUT_BYTES:
        raise OSError("too few bytes came out")
    command.socket.close()


def _into(endpoint: Endpoint) -> None:
    command = Command(endpoint, ["sh", "-c", f"test $(wc -c) -eq {_IN_BYTES}"], stdin=True)
    command.send(_IN_BYTES)
    command.until_success()
    command.socket.close()


def _log_speed(endpoint: Endpoint) -> float:
    """MB/s of the whole log, read to its end."""
    link: socket.socket = endpoint.connect().socket
    link.sendall(
        f"GET /containerLogs/default/{POD}-{NAME}/main HTTP/1.1\r\nHost: node\r\nConnection: close\r\n"
        f"Authorization: Bearer {endpoint.token}\r\n\r\n".encode()
    )
    began, total, buffer = time.perf_counter(), 0, bytearray(1 << 20)
    while size := link.recv_into(buffer):
        total += size
    link.close()
    return total / (time.perf_counter() - began) / 1e6
