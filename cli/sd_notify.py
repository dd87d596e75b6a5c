"""systemd's readiness protocol: one datagram to NOTIFY_SOCKET. Without systemd nothing happens."""

from __future__ import annotations

import os
import socket


def notify(state: str) -> None:
    """E.g. "READY=1" or "STOPPING=1"; never raises."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address or address[0] not in "/@":
        return
    if address[0] == "@":
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as link:
            link.sendto(state.encode(), address)
    except OSError:
        return
