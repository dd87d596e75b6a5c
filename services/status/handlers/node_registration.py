"""The Node at the API server: registered, then told what changed, and read for what others say of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from random import Random

import msgspec

from services.status.core.node import Node
from services.status.core.node_patch import StatusPatch, Told, remembered, status_patch
from services.status.core.registration import FIRST_DELAY, LONGEST_DELAY, Joining, correction, first_node
from services.status.core.remote_node import RemoteNode, parse_remote_node
from shared.apiserver.errors import ApiError, Unreachable
from shared.apiserver.server import STRATEGIC, Requests
from shared.runtime.backoff import Delays
from shared.runtime.clock import Clock

log = logging.getLogger("podbus.status.registration")

CALL_SECONDS = 10.0
TRIES = 5
"""kubelet 1.36: of one update, at once one after another."""
_NODES = "/api/v1/nodes"
_FAILURES = (ApiError, Unreachable, msgspec.MsgspecError)


class NodeRegistration:
    """`run` is a guarded task; `tell` gives it the newest Node."""

    def __init__(
        self, server: Requests, clock: Clock, joining: Joining, on_remote: Callable[[RemoteNode], None], rng: Random
    ) -> None:
        """`on_remote`: called with each Node that was read."""
        self._server = server
        self._clock = clock
        self._joining = joining
        self._on_remote = on_remote
        self._rng = rng
        self._node: Node | None = None
        self._computed = asyncio.Event()
        self._told: Told | None = None
        self._report_at: float | None = None
        self._trouble = ""
        self.remote: RemoteNode | None = None
        """As it was read last; None = not yet since the start."""

    @property
    def uid(self) -> str:
        """Of the Node at the API server; "" = not known yet."""
        return self.remote.metadata.uid if self.remote is not None else ""

    def tell(self, node: Node) -> None:
        """Computed anew; what came before it needn't be sent any more."""
        self._node = node
        self._computed.set()

    async def run(self) -> None:
        node = await self._newest()
        if self._joining.register:
            await self._register(node)
        while True:
            await self._update(node)
            node = await self._newest()

    async def _newest(self) -> Node:
        await self._computed.wait()
        self._computed.clear()
        assert self._node is not None
        return self._node

    # -- registration -----------------------------------------------------------------------------------------

    async def _register(self, node: Node) -> None:
        """Until it's there, whatever is in the way."""
        delays = Delays(FIRST_DELAY, LONGEST_DELAY, self._rng)
        while True:
            node = self._node or node
            try:
                await self._try_to_register(node)
            except _FAILURES as error:
                self._tell_trouble(f"the node can't be registered: {error}")
                await asyncio.sleep(delays.next())
                continue
            self._tell_trouble("")
            return

    async def _try_to_register(self, node: Node) -> None:
        body = msgspec.json.encode(first_node(node, self._joining))
        answer = await self._server.request("POST", _NODES, body=body, within=CALL_SECONDS)
        if answer.code != 409:
            answer.check()
            self._read(answer.body)
            log.info("node registered name=%s", node.metadata.name)
            return
        remote = await self._get(node)
        if (patch := correction(remote, node, self._joining)) is not None:
            await self._patch(node, patch)
            log.info("node corrected name=%s what=%s", node.metadata.name, msgspec.json.encode(patch).decode())

    # -- status -----------------------------------------------------------------------------------------------

    async def _update(self, node: Node) -> None:
        """A failed one waits for the next computation."""
        for number in range(TRIES):
            try:
                remote = await self._get(node, from_cache=number == 0)
                await self._report(remote, node)
            except _FAILURES as error:
                self._tell_trouble(f"the node's status can't be told: {error}")
                if isinstance(error, ApiError) and error.code == 404:
                    self.remote = None
                    return  # deleted: kubelet 1.36 doesn't make it anew until it's restarted
                continue
            self._tell_trouble("")
            return

    async def _report(self, remote: RemoteNode, node: Node) -> None:
        at = self._clock.boot_seconds()
        is_due = self._report_at is None or at >= self._report_at
        patch = status_patch(remote, node.status, told=self._told, now=self._clock.now(), is_due=is_due)
        if patch is None:
            return
        answer = await self._patch(node, patch.body)
        self._told = remembered(answer, node.status)
        self._report_at = at + self._until_next(patch)
        log.debug("node status told why=%s", ",".join(patch.reasons) or "report")

    def _until_next(self, patch: StatusPatch) -> float:
        """kubelet 1.36: after a change the next report is shifted by chance, so that nodes which changed together
        don't report together for ever."""
        shift = self._rng.uniform(0.5, 1.5) if patch.reasons else 1.0
        return self._joining.report_seconds * shift

    # -- calls ------------------------------------------------------------------------------------------------

    async def _get(self, node: Node, *, from_cache: bool = False) -> RemoteNode:
        query = {"resourceVersion": "0"} if from_cache else {}
        answer = await self._server.request("GET", _path(node), query=query, within=CALL_SECONDS)
        answer.check()
        return self._read(answer.body)

    async def _patch(self, node: Node, patch: object) -> RemoteNode:
        answer = await self._server.request(
            "PATCH",
            f"{_path(node)}/status",
            body=msgspec.json.encode(patch),
            content_type=STRATEGIC,
            within=CALL_SECONDS,
        )
        answer.check()
        return self._read(answer.body)

    def _read(self, body: bytes) -> RemoteNode:
        self.remote = parse_remote_node(body)
        self._on_remote(self.remote)
        return self.remote

    def _tell_trouble(self, trouble: str) -> None:
        """Once per cause."""
        if trouble and trouble != self._trouble:
            log.error("%s", trouble)
        elif self._trouble and not trouble:
            log.info("the API server takes the node again")
        self._trouble = trouble


def _path(node: Node) -> str:
    return f"{_NODES}/{node.metadata.name}"
