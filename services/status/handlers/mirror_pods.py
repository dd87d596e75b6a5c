"""Makes and removes the pictures of static pods at the API server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random

import msgspec

from services.status.core.mirror_pods import StaticPod, mirror_of, plan_mirrors
from services.status.core.pod_calls import delete_now, pod_path, pods_path
from services.status.handlers.known_pods import KnownPods
from shared.apiserver.errors import ApiError, Unreachable
from shared.apiserver.server import Requests
from shared.contracts.pods import MirrorPod
from shared.runtime.backoff import Delays

log = logging.getLogger("podbus.status.mirrors")

CALL_SECONDS = 10.0
FIRST_DELAY, LONGEST_DELAY = 0.5, 10.0


class MirrorPods:
    """`run` is a guarded task; `look` may be called at any time."""

    def __init__(self, server: Requests, pods: KnownPods, node: str, node_uid: Callable[[], str], rng: Random) -> None:
        """`node_uid`: of the Node, "" while it isn't known; without it there is no picture."""
        self._server = server
        self._node = node
        self._node_uid = node_uid
        self._rng = rng
        self._pods = pods
        pods.tell_of_mirrors(self.look)
        self._work = asyncio.Event()
        self._troubles: dict[str, str] = {}

    def look(self) -> None:
        """Something has changed."""
        self._work.set()

    async def run(self) -> None:
        delays = Delays(FIRST_DELAY, LONGEST_DELAY, self._rng)
        while True:
            await self._work.wait()
            self._work.clear()
            if await self._level():
                delays = Delays(FIRST_DELAY, LONGEST_DELAY, self._rng)
            else:
                await asyncio.sleep(delays.next())
                self._work.set()

    async def _level(self) -> bool:
        """Whether all was done that is to be done now."""
        pods = self._pods
        if not pods.is_complete:
            return True  # the marker that is missing will call again
        plan = plan_mirrors(pods.static, pods.reports, pods.mirrors)
        if not self._node_uid() and (plan.make or plan.remove):
            return False
        done = [await self._guarded(one.uid, self._remove(one)) for one in plan.remove]
        done += [await self._guarded(one.uid, self._make(one)) for one in plan.make]
        return all(done)

    async def _guarded(self, uid: str, call: Awaitable[None]) -> bool:
        try:
            await call
        except (ApiError, Unreachable, ValueError, KeyError) as error:
            if self._troubles.get(uid) != str(error):
                log.warning("no picture of a static pod uid=%s error=%s", uid, error)
            self._troubles[uid] = str(error)
            return False
        self._troubles.pop(uid, None)
        return True

    async def _make(self, pod: StaticPod) -> None:
        body = mirror_of(pod, self._node, self._node_uid())
        answer = await self._server.request(
            "POST",
            pods_path(pod.namespace),
            body=msgspec.json.encode(body),
            within=CALL_SECONDS,
        )
        if answer.code == 409:
            return  # it's there: the watch tells whether it's this one
        answer.check()
        log.info("mirror pod made pod=%s/%s uid=%s", pod.namespace, pod.name, pod.uid)

    async def _remove(self, mirror: MirrorPod) -> None:
        path = pod_path(mirror.namespace, mirror.name)
        answer = await self._server.request("DELETE", path, body=delete_now(mirror.uid), within=CALL_SECONDS)
        if answer.code not in (404, 409):
            answer.check()
        log.info("mirror pod removed pod=%s/%s", mirror.namespace, mirror.name)
