"""The only package that knows NATS: connect, typed requests, hints, keys, and watches that re-list by themselves."""

from shared.bus.client import Bus, Credentials, connect, load_credentials
from shared.bus.errors import BusClosed, BusUnavailable, NoResponder, RemoteError
from shared.bus.read import read
from shared.bus.watch import BucketWatch

__all__ = [
    "Bus",
    "BusClosed",
    "BusUnavailable",
    "BucketWatch",
    "Credentials",
    "NoResponder",
    "RemoteError",
    "connect",
    "load_credentials",
    "read",
]
