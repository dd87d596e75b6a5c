"""Our errors of the bus; the library's error is the cause."""

from __future__ import annotations

from typing import Literal

Code = Literal["invalid", "not_found", "conflict", "unavailable", "forbidden", "internal"]


class BusError(Exception):
    """Base of all."""


class BusUnavailable(BusError):
    """No connection, or no answer in time: the outcome is unknown, the caller tries again."""


class NoResponder(BusUnavailable):
    """Nobody serves that subject now."""


class BusClosed(BusError):
    """The client gave up for good (e.g. an authorization error while connected): the process must end."""


class RemoteError(BusError):
    """The owner answered with an error. Handlers raise it to answer so."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code: Code = code
        self.message = message
