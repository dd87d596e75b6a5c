"""Connections to a pod's own loopback: a socket belongs to the network namespace that it was made in."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from concurrent.futures import Future

_CLONE_NEWNET = 0x40000000
CONNECT_SECONDS = 10.0
_BUFFER_BYTES = 256 << 10


class PodSockets:
    """PodNetwork (services.podworker.ports)."""

    async def connect(self, pid: int, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """127.0.0.1 first, then ::1."""
        try:
            made = await _connected(pid, port, socket.AF_INET, "127.0.0.1")
        except OSError as error:
            try:
                made = await _connected(pid, port, socket.AF_INET6, "::1")
            except OSError:
                raise error from None
        return await asyncio.open_connection(sock=made, limit=_BUFFER_BYTES)


async def _connected(pid: int, port: int, family: socket.AddressFamily, host: str) -> socket.socket:
    made = await asyncio.wrap_future(_socket_in(pid, family))
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await asyncio.get_running_loop().sock_connect(made, (host, port))
    except BaseException:
        made.close()
        raise
    return made


def _socket_in(pid: int, family: socket.AddressFamily) -> Future[socket.socket]:
    """In a thread that ends with it: the thread's namespace is changed, and no other code may run there."""
    done: Future[socket.socket] = Future()

    def work() -> None:
        try:
            _enter_network_of(pid)
            made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
            done.set_result(made)
        except OSError as error:
            done.set_exception(error)

    threading.Thread(target=work, name="pod-socket", daemon=True).start()
    return done


def _enter_network_of(pid: int) -> None:
    """os.setns comes with Python 3.12 only."""
    import ctypes  # 1 MiB, for the first forwarded port

    namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(namespace, _CLONE_NEWNET) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    finally:
        os.close(namespace)
