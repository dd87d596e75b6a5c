"""SPDY/3.1 as Kubernetes' clients speak it: bytes in, events out, bytes to send. No I/O, no clock.

Only what exec, attach and port-forward use (client streams, data, half-close, reset, ping, goaway); settings, late
headers and window updates are read and ignored: the peers have no flow control, and honouring the window would
deadlock with them.
"""

from services.api.spdy.frames import MAX_DATA, ProtocolError
from services.api.spdy.session import (
    Data,
    End,
    Event,
    GoneAway,
    Opened,
    Ping,
    Refused,
    Reset,
    Session,
)

__all__ = [
    "MAX_DATA",
    "Data",
    "End",
    "Event",
    "GoneAway",
    "Opened",
    "Ping",
    "ProtocolError",
    "Refused",
    "Reset",
    "Session",
]
