"""One connection of one service: connect, request, serve, hint, put and delete keys."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import nats
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.kv import KeyValue
from nats.micro import add_service
from nats.micro.request import Request as MicroRequest
from nats.micro.service import EndpointConfig, Service, ServiceConfig

from shared.bus.bucket import BucketEntry, list_entries, stream_config, stream_of
from shared.bus.errors import BusUnavailable, Code, NoResponder, RemoteError
from shared.contracts.acl import buckets_of
from shared.contracts.subject import Bucket, Hint, Key, Request
from shared.kube.ids import subject_token

log = logging.getLogger("podbus.bus")

Req = TypeVar("Req")
Rep = TypeVar("Rep")
Body = TypeVar("Body")

FORGET_SECONDS = 300.0
"""How long the mark of a deleted key stays at least: by then every watch has seen it or has listed again."""
_BIND_TRIES = 20
_BIND_SECONDS = 0.1
"""Between two tries to bind a bucket that another service makes just now."""
_BEING_MADE = (10058, 10065)
"""nats-server's codes: the stream's name is in use; its subjects overlap with another stream's."""
_CODES: dict[str, Code] = {
    "400": "invalid",
    "403": "forbidden",
    "404": "not_found",
    "409": "conflict",
    "500": "internal",
    "503": "unavailable",
}
_NUMBERS = {code: number for number, code in _CODES.items()}
_NETWORK_ERRORS = (
    nats.errors.Error,
    nats.js.errors.Error,
    OSError,
    asyncio.TimeoutError,
)


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """`<run>/bus/<service>.json` (0600): where the server is and who we are."""

    url: str
    user: str
    password: str


def load_credentials(path: Path) -> Credentials:
    """Raises FileNotFoundError, or ValueError that names the file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Credentials)
    except msgspec.MsgspecError as error:
        raise ValueError(f"{path}: {error}") from error


@dataclass(frozen=True)
class Traffic:
    """Of a connection, over all its reconnects. Payload only."""

    messages_in: int
    messages_out: int
    bytes_in: int
    bytes_out: int
    reconnects: int


class Bus:
    """A service's connection. Made by `connect`; handlers get it, nothing else imports NATS."""

    def __init__(self, client: Client, node: str, service: str) -> None:
        self._client = client
        self._js = client.jetstream(domain=subject_token(node), timeout=5)
        self._buckets: dict[str, KeyValue] = {}
        self._micro: Service | None = None
        self._micro_config = ServiceConfig(name=f"podbus-{service}", version="0.0.0", metadata={"node": node})
        self._encoder = msgspec.json.Encoder()
        self._on_reconnect: list[Callable[[], None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.node = node
        self.service = service
        self.closed: asyncio.Event = asyncio.Event()
        """Set when the client gave up for good; run() ends the process then."""

    @property
    def connected(self) -> bool:
        return self._client.is_connected

    def traffic(self) -> Traffic:
        seen = self._client.stats
        return Traffic(seen["in_msgs"], seen["out_msgs"], seen["in_bytes"], seen["out_bytes"], seen["reconnects"])

    def on_reconnect(self, callback: Callable[[], None]) -> None:
        """Call back after each reconnect (watches re-list by themselves)."""
        self._on_reconnect.append(callback)

    def _reconnected(self) -> None:
        self._buckets.clear()  # the server's store may be new: bind again, create if missing
        for callback in self._on_reconnect:
            callback()

    # -- requests ---------------------------------------------------------------------------------------------

    async def request(
        self,
        request: Request[Req, Rep],
        body: Req,
        *,
        timeout: float = 2.0,  # noqa: ASYNC109 - the server's own kinds of failure must not turn into TimeoutError
    ) -> Rep:
        """Ask the owner. Raises NoResponder at once when nobody serves it, BusUnavailable, or RemoteError."""
        if not self._client.is_connected:  # nats-py would wait the whole timeout
            raise BusUnavailable(f"not connected to the bus: {request.subject(self.node)} can't be asked")
        subject = request.subject(self.node)
        try:
            answer = await self._client.request(subject, self._encoder.encode(body), timeout=timeout)
        except nats.errors.NoRespondersError as error:
            raise NoResponder(f"no {request.service} answers {subject}") from error
        except _NETWORK_ERRORS as error:
            raise BusUnavailable(f"{subject}: {error or type(error).__name__}") from error
        headers = answer.headers or {}
        if "Nats-Service-Error" in headers:
            code = _CODES.get(headers.get("Nats-Service-Error-Code", ""), "internal")
            raise RemoteError(code, headers["Nats-Service-Error"])
        return msgspec.json.decode(answer.data, type=request.reply)

    async def serve(
        self, request: Request[Req, Rep], handler: Callable[[Req], Awaitable[Rep]], *, limit: int = 32
    ) -> None:
        """Answer a request as an endpoint of this service's micro service. Calls run side by side, at most
        `limit`; a handler raises RemoteError to answer with an error."""
        if request.service != self.service:
            raise ValueError(f"{self.service} doesn't own {request.subject(self.node)}")
        gate = asyncio.Semaphore(limit)
        decoder = msgspec.json.Decoder(request.request)

        async def answer(message: MicroRequest) -> None:
            async with gate:
                try:
                    reply = await handler(decoder.decode(message.data))
                except RemoteError as error:
                    await message.respond_error(_NUMBERS[error.code], error.message)
                except msgspec.MsgspecError as error:
                    await message.respond_error("400", f"{request.what}: {error}")
                except Exception as error:  # the boundary: one bad request must not end the service
                    log.exception("request failed subject=%s", request.subject(self.node))
                    await message.respond_error("500", f"{type(error).__name__}: {error}")
                else:
                    await message.respond(self._encoder.encode(reply))

        async def spawn(message: MicroRequest) -> None:
            # nats-py runs one subscription's callbacks strictly one after another: hand over at once
            self._spawn(answer(message))

        micro = await self._service()
        await micro.add_endpoint(
            EndpointConfig(name=f"{request.kind}-{request.what}", subject=request.subject(self.node), handler=spawn)
        )

    async def announce(self, version: str, metadata: dict[str, str]) -> None:
        """Show this process to `nats micro ls`; a service that serves requests is announced all the same."""
        self._micro_config = ServiceConfig(
            name=f"podbus-{self.service}",
            version=version,
            description=f"podbus {self.service} on {self.node}",
            metadata={"node": self.node, **metadata},
        )
        await self._service()

    async def _service(self) -> Service:
        if self._micro is None:
            self._micro = await add_service(self._client, config=self._micro_config)
        return self._micro

    # -- hints ------------------------------------------------------------------------------------------------

    async def hint(self, hint: Hint[Body], body: Body, id_: str = "") -> None:
        """Fire and forget; a lost one only delays. Never raises for a missing connection."""
        try:
            await self._client.publish(hint.subject(self.node, id_), self._encoder.encode(body))
        except _NETWORK_ERRORS as error:
            log.debug("hint lost subject=%s error=%s", hint.subject(self.node, id_), error)

    async def on_hint(self, hint: Hint[Body], callback: Callable[[str, Body], None]) -> None:
        """Call back with (id, body) for each hint; the callback must be quick."""
        decoder = msgspec.json.Decoder(hint.body)

        async def receive(message: Msg) -> None:
            try:
                body = decoder.decode(message.data)
            except msgspec.MsgspecError as error:
                log.error("bad hint subject=%s error=%s", message.subject, error)
                return
            callback(message.subject.rpartition(".")[2] if hint.id else "", body)

        await self._client.subscribe(
            hint.subject(self.node), cb=receive, pending_bytes_limit=8 << 20, pending_msgs_limit=65536
        )

    # -- keys -------------------------------------------------------------------------------------------------

    async def put(self, key: Key[Body], body: Body, id_: str = "") -> int:
        """Write the last value; the revision. Raises BusUnavailable: put the newest value again later."""
        if key.owner != self.service:
            raise ValueError(f"{self.service} doesn't own {key.key(id_)}")
        try:
            store = await self.bucket(key.bucket)
            return await store.put(key.key(id_), self._encoder.encode(body))
        except _NETWORK_ERRORS as error:
            self._buckets.pop(key.bucket.name, None)
            raise BusUnavailable(f"{key.bucket.name} {key.key(id_)}: {error or type(error).__name__}") from error

    async def delete(self, key: Key[Any], id_: str = "") -> None:
        """Leave a mark in place of the value. Raises BusUnavailable."""
        if key.owner != self.service:
            raise ValueError(f"{self.service} doesn't own {key.key(id_)}")
        try:
            store = await self.bucket(key.bucket)
            await store.delete(key.key(id_))
        except nats.js.errors.KeyNotFoundError:
            return
        except _NETWORK_ERRORS as error:
            self._buckets.pop(key.bucket.name, None)
            raise BusUnavailable(f"{key.bucket.name} {key.key(id_)}: {error or type(error).__name__}") from error

    async def bucket(self, bucket: Bucket) -> KeyValue:
        """Bind the bucket; create it when it's missing (a wiped store), from whichever service comes first."""
        if (bound := self._buckets.get(bucket.name)) is not None:
            return bound
        for tried in range(_BIND_TRIES):
            try:
                store = await self._js.key_value(bucket.name)
                break
            except (nats.js.errors.BucketNotFoundError, nats.js.errors.NotFoundError):
                if tried == _BIND_TRIES - 1:
                    raise
            if not await self._make(bucket):
                await asyncio.sleep(_BIND_SECONDS)
        self._buckets[bucket.name] = store
        return store

    async def _make(self, bucket: Bucket) -> bool:
        """False when another service makes it at this moment: its subjects are taken before the stream is there."""
        try:
            await self._js.add_stream(stream_config(bucket))
        except nats.js.errors.APIError as error:
            if error.err_code not in _BEING_MADE:
                raise
            return False
        return True

    async def keys(self, bucket: Bucket) -> list[str]:
        """All keys now. Raises BusUnavailable."""
        return [entry.key for entry in await self._entries(bucket) if not entry.is_deleted]

    async def forget_deleted(self, bucket: Bucket, *, older_than: float = FORGET_SECONDS, most: int = 1000) -> int:
        """Drop the marks that deleted keys leave in the stream for ever, when they are older than this many seconds;
        how many went. For the owner of a family of the bucket's keys. The stream's last message always stays: a watch's
        list is complete with it. Raises BusUnavailable."""
        entries = await self._entries(bucket)
        _, last = await self.last_sequence(bucket)
        now = datetime.now(UTC)
        old = [
            entry.sequence
            for entry in entries
            if entry.is_deleted and entry.sequence != last and (now - entry.written_at).total_seconds() >= older_than
        ]
        return sum([await self._drop(bucket, sequence) for sequence in old[:most]])

    async def _entries(self, bucket: Bucket) -> list[BucketEntry]:
        async def last() -> int:
            return (await self.last_sequence(bucket))[1]

        try:
            store = await self.bucket(bucket)
            return await list_entries(store, last)
        except _NETWORK_ERRORS as error:
            raise BusUnavailable(f"{bucket.name}: {error or type(error).__name__}") from error

    async def _drop(self, bucket: Bucket, sequence: int) -> bool:
        """Delete that one message; False when it's gone, or the stream, which an earlier version made, refuses."""
        try:
            return await self._js.delete_msg(stream_of(bucket), sequence)
        except nats.js.errors.APIError as error:
            log.debug("mark not dropped bucket=%s sequence=%d error=%s", bucket.name, sequence, error)
            return False
        except _NETWORK_ERRORS as error:
            raise BusUnavailable(f"{bucket.name}: {error or type(error).__name__}") from error

    async def last_sequence(self, bucket: Bucket) -> tuple[str, int]:
        """(identity of the stream, its last message's sequence, 0 = it has no message). Raises BusUnavailable."""
        try:
            info = await self._js.stream_info(stream_of(bucket))
        except _NETWORK_ERRORS as error:
            raise BusUnavailable(f"{bucket.name}: {error or type(error).__name__}") from error
        return str(info.created), info.state.last_seq if info.state.messages else 0

    async def ensure_buckets(self) -> None:
        """Create what is missing. Raises BusUnavailable."""
        try:
            for bucket in buckets_of(self.service):
                await self.bucket(bucket)
        except _NETWORK_ERRORS as error:
            raise BusUnavailable(f"buckets: {error or type(error).__name__}") from error

    # -- end --------------------------------------------------------------------------------------------------

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def flush(self) -> None:
        """After it returns the server has seen every subscription made before.

        Twice: nats-py writes its PING past what is still in its buffer, so the first PONG tells nothing of that; but
        by then the buffer is written, and the second one comes after it.
        """
        await self._client.flush(timeout=5)
        await self._client.flush(timeout=5)

    async def drain(self) -> None:
        """Stop the intake, let running requests answer, close. Bounded by 5 s; never raises."""
        try:
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=3)
            await asyncio.wait_for(self._client.drain(), 5)
        except _NETWORK_ERRORS as error:
            log.debug("drain error=%s", error)
            await self._client.close()


async def connect(credentials: Credentials, *, node: str, service: str, name: str) -> Bus:
    """Connect, for as long as it takes. `name` tells this process apart (podworker-1)."""
    holder: list[Bus] = []

    async def reconnected() -> None:
        log.info("bus is back server=%s", client.connected_url.netloc if client.connected_url else "?")
        for bus in holder:
            bus._reconnected()

    async def disconnected() -> None:
        if not client.is_draining and not client.is_closed:
            log.warning("bus lost: going on with what is known, reconnecting")

    async def closed() -> None:
        for bus in holder:
            bus.closed.set()

    async def failed(error: Exception) -> None:
        # permission errors and slow consumers only show here
        level = logging.DEBUG if isinstance(error, OSError | nats.errors.UnexpectedEOF) else logging.ERROR
        log.log(level, "bus error=%s kind=%s", error, type(error).__name__)

    client = Client()
    await client.connect(
        servers=[credentials.url],
        user=credentials.user,
        password=credentials.password,
        name=f"podbus-{name}",
        max_reconnect_attempts=-1,
        reconnect_time_wait=0.25,  # type: ignore[arg-type]  # seconds; the library sleeps for fractions too
        connect_timeout=2,
        ping_interval=10,
        max_outstanding_pings=2,
        inbox_prefix=f"_INBOX_{service}",
        pending_size=8 << 20,
        drain_timeout=5,
        error_cb=failed,
        disconnected_cb=disconnected,
        reconnected_cb=reconnected,
        closed_cb=closed,
    )
    bus = Bus(client, node, service)
    holder.append(bus)
    return bus
