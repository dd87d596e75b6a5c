"""What the handlers need from outside, and the errors that these may raise."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

from services.api.core.access import Identity
from shared.contracts.events import EventList, EventQuery
from shared.contracts.sources import SourceList
from shared.contracts.stats import PageQuery
from shared.contracts.streams import StreamCommand
from shared.contracts.worker import RunningPods

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

PEER = "podbus.peer"
"""Key in an ASGI scope's extensions: the Identity of the verified client certificate, or None."""
TAKE_OVER = "podbus.take_over"
"""Key in an ASGI scope's extensions, of requests that ask for an upgrade: a TakeOver."""

P = TypeVar("P", bound=asyncio.Protocol)


class Successor(Protocol):
    """A protocol that goes on with a connection. `released` is to be called when it's lost."""

    released: Callable[[], None]
    idle_seconds: float
    """Without a byte for so long it ends."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...
    def shutdown(self) -> None: ...


TakeOver = Callable[[bytes, Successor], None]
"""Answers with these bytes; from then on the connection is the successor's, with what the client sent behind its
request. What the endpoint still sends goes nowhere."""


class OwnerUnavailable(Exception):
    """Nobody answers now: the service is away, or the bus is, or it took too long."""


class OwnerRefused(Exception):
    """The owner answered with an error; its own text."""

    def __init__(self, code: Literal["invalid", "not_found", "internal"], message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ByteSource(Protocol):
    """Bytes of a stream, read as fast as they are wanted: the other side waits meanwhile."""

    async def read(self) -> bytes:
        """Some bytes; b"" = the end. Raises ConnectionError when the other side broke off."""
        ...

    def close(self) -> None:
        """Let go; a read that waits ends with b""."""
        ...


class OpenStream(Protocol):
    """A stream that podworker has prepared: connects a protocol to it, once."""

    async def __call__(self, factory: Callable[[], P]) -> tuple[asyncio.Transport, P]:
        """Raises OwnerUnavailable."""
        ...


class Owners(Protocol):
    """The services that know. Every method raises OwnerUnavailable or OwnerRefused."""

    @property
    def connected(self) -> bool:
        """False: what we hold may be old."""
        ...

    async def running_pods(self) -> RunningPods: ...

    async def open_logs(self, command: StreamCommand) -> ByteSource: ...

    async def prepare(self, command: StreamCommand) -> OpenStream: ...

    async def summary(self, *, only_cpu_and_memory: bool) -> bytes:
        """Compact JSON."""
        ...

    async def page(self, query: PageQuery) -> tuple[int, bytes]:
        """A page of stats: its status and bytes, packed if the query wants it."""
        ...

    async def events(self, query: EventQuery) -> EventList: ...

    async def sources(self) -> SourceList: ...


class TokenReviewer(Protocol):
    def find(self, token: str) -> Identity | None:
        """Whose token it is."""
        ...


class LocalPolicy(Protocol):
    def allows(self, who: Identity, method: str, path: str) -> bool:
        """What the node's own file allows besides the roles."""
        ...


class ReviewFailed(Exception):
    """The API server could not say yes or no; says why. `transient`: another try may help."""

    def __init__(self, text: str, *, transient: bool = False) -> None:
        super().__init__(text)
        self.transient = transient


class ReviewPost(Protocol):
    async def __call__(self, path: str, body: dict[str, Any]) -> Any:
        """POST it as JSON; the answer's document. Raises ReviewFailed."""
        ...


class Reviewer(Protocol):
    """The API server's word on who somebody is and what they may. Both raise ReviewFailed."""

    async def identify(self, token: str) -> Identity | None: ...

    async def allows(self, who: Identity, method: str, subresource: str) -> bool: ...


class AccessUndecided(Exception):
    """Nobody could say whether it's allowed; names the subresource that was asked about."""

    def __init__(self, subresource: str) -> None:
        super().__init__(subresource)
        self.subresource = subresource


class Gate(Protocol):
    async def identify(self, peer: Identity | None, tokens: Sequence[str]) -> Identity | None:
        """Who asks, by a verified certificate and the tokens shown, in their order. None = nobody we know."""
        ...

    async def allows(self, who: Identity, method: str, path: str) -> bool:
        """Raises AccessUndecided."""
        ...
