"""Renews the node's Lease, whatever else the API server is asked for."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from random import Random
from typing import Any

from services.status.core.lease import (
    FIRST_DELAY,
    LONGEST_DELAY,
    NAMESPACE,
    QUICK_TRIES,
    new_lease,
    renewed,
    seconds_to_next,
)
from shared.apiserver.errors import ApiError, Unreachable
from shared.apiserver.server import Requests
from shared.runtime.backoff import Delays
from shared.runtime.clock import Clock

log = logging.getLogger("podbus.status.lease")

CALL_SECONDS = 10.0
_LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
_FAILURES = (ApiError, Unreachable, ValueError)


class NodeLease:
    """`run` is a guarded task."""

    def __init__(
        self, server: Requests, clock: Clock, name: str, seconds: int, uid: Callable[[], str], rng: Random
    ) -> None:
        """`seconds`: the lease's duration. `uid`: the Node's, "" while it isn't known."""
        self._server = server
        self._clock = clock
        self._name = name
        self._seconds = seconds
        self._uid = uid
        self._rng = rng
        self._lease: dict[str, Any] | None = None
        """As the server has it; None = it has to be read."""
        self._trouble = ""

    async def run(self) -> None:
        while True:
            if not await self._renew_quickly():
                await self._ensure()
            await asyncio.sleep(seconds_to_next(self._seconds, self._rng.random()))

    async def _renew_quickly(self) -> bool:
        """kubelet 1.36: from the remembered one, without reading it first; on a conflict it's read."""
        for _ in range(QUICK_TRIES):
            if self._lease is None:
                return False
            try:
                await self._put(self._lease)
            except _FAILURES as error:
                self._tell_trouble(str(error))
                if isinstance(error, ApiError) and error.code == 409:
                    self._lease = await self._get_if_answered()
                elif isinstance(error, ApiError) and error.code == 404:
                    self._lease = None
                continue
            self._tell_trouble("")
            return True
        return False

    async def _ensure(self) -> None:
        """Until there is a renewed one; while the Node isn't registered there is nothing to do yet."""
        delays = Delays(FIRST_DELAY, LONGEST_DELAY, self._rng)
        while True:
            try:
                found = await self._get()
                if found is not None:
                    await self._put(found)
                    break
                made = new_lease(self._name, self._uid(), self._seconds, self._clock.now())
                if made is not None:
                    await self._create(made)
                    break
            except _FAILURES as error:
                self._tell_trouble(str(error))
            await asyncio.sleep(delays.next())
        self._tell_trouble("")

    async def _get_if_answered(self) -> dict[str, Any] | None:
        try:
            return await self._get()
        except _FAILURES:
            return None

    async def _get(self) -> dict[str, Any] | None:
        """None = there is none."""
        answer = await self._server.request("GET", f"{_LEASES}/{self._name}", within=CALL_SECONDS)
        if answer.code == 404:
            return None
        answer.check()
        return _decoded(answer.body)

    async def _put(self, lease: dict[str, Any]) -> None:
        body = renewed(lease, self._name, self._uid(), self._seconds, self._clock.now())
        answer = await self._server.request(
            "PUT", f"{_LEASES}/{self._name}", body=json.dumps(body).encode(), within=CALL_SECONDS
        )
        answer.check()
        self._lease = _decoded(answer.body)

    async def _create(self, lease: dict[str, Any]) -> None:
        answer = await self._server.request("POST", _LEASES, body=json.dumps(lease).encode(), within=CALL_SECONDS)
        answer.check()
        self._lease = _decoded(answer.body)
        log.info("lease made name=%s", self._name)

    def _tell_trouble(self, trouble: str) -> None:
        if trouble and not self._trouble:
            log.error("the lease isn't renewed error=%s", trouble)
        elif self._trouble and not trouble:
            log.info("the lease is renewed again")
        self._trouble = trouble


def _decoded(body: bytes) -> dict[str, Any]:
    found = json.loads(body)
    if not isinstance(found, dict):
        raise ValueError("the lease is not an object")
    return found
