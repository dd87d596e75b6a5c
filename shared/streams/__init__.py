"""Byte streams between processes of one node, beside the bus: a UNIX socket and a single-use token.

The side that has the bytes runs a `StreamServer` and answers a request with `issue(handler)`: a StreamTicket.
The other side opens it with `open_stream`, or with `open_transport` when it relays.
"""

from shared.streams.client import StreamRefused, open_stream, open_transport
from shared.streams.server import Handler, StreamServer

__all__ = ["Handler", "StreamRefused", "StreamServer", "open_stream", "open_transport"]
