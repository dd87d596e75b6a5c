"""Tells the API server how its pods are, and lets go of those that have ended.

One pod after the other, the newest status of each; what fails is tried again, and an outage is waited out: no status is
lost, and none but the last is sent after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from random import Random

import msgspec

from services.status.core.pod_calls import delete_now, pod_path
from services.status.core.pod_patch import (
    RemotePod,
    is_backwards,
    is_contradicted,
    may_be_deleted,
    parse_remote_pod,
    pod_status_patch,
)
from services.status.handlers.known_pods import KnownPods
from shared.apiserver.errors import ApiError, Unreachable
from shared.apiserver.server import STRATEGIC, Requests
from shared.contracts.status import PodReport
from shared.runtime.backoff import Delays

log = logging.getLogger("podbus.status.pods")

CALL_SECONDS = 10.0
RETRY_SECONDS = 10.0
"""kubelet 1.36: all that isn't told yet is tried again so often."""
TRIES = 2
"""At once, when somebody else writes to the pod at the same moment."""
FIRST_DELAY, LONGEST_DELAY = 0.5, 8.0
"""Between two tries while the API server doesn't answer."""


class PodStatuses:
    """`run` is a guarded task; `changed` may be called at any time."""

    def __init__(self, server: Requests, pods: KnownPods, rng: Random) -> None:
        self._server = server
        self._rng = rng
        self._pods = pods
        pods.tell_of_pods(self.changed)
        self._dirty: dict[str, None] = {}
        self._work = asyncio.Event()
        self._remote: dict[str, RemotePod] = {}
        """UID -> as the server answered last."""
        self._seen: dict[str, str] = {}
        """UID -> the version that somebody has seen there since."""
        self._troubles: dict[str, str] = {}
        self._retries: dict[str, asyncio.TimerHandle] = {}
        self._is_away = False

    def changed(self, uid: str) -> None:
        """Something about this pod is new."""
        self._dirty[uid] = None
        self._work.set()

    def seen(self, versions: Mapping[str, str]) -> None:
        """What the API server has, by UID there. Somebody else may have written to a pod: its status is ours
        (kubelet 1.36: needsReconcile)."""
        for remote_uid, version in versions.items():
            uid = self._pods.static_uid(remote_uid) or remote_uid
            remote = self._remote.get(uid)
            if remote is None or remote.metadata.resource_version != version:
                self._seen[uid] = version
                self.changed(uid)

    async def run(self) -> None:
        delays = Delays(FIRST_DELAY, LONGEST_DELAY, self._rng)
        while True:
            await self._work.wait()
            if not self._dirty:
                self._work.clear()
                continue
            uid = next(iter(self._dirty))
            del self._dirty[uid]
            try:
                await self._tell(uid)
            except Unreachable as error:
                self.changed(uid)
                self._tell_away(str(error))
                await asyncio.sleep(delays.next())
            except ApiError as error:
                self._refused(uid, str(error), error.retry_after or 0.0)
            except msgspec.MsgspecError as error:
                self._refused(uid, str(error), 0.0)
            else:
                self._tell_away("")
                self._tell_trouble(uid, "")
                delays = Delays(FIRST_DELAY, LONGEST_DELAY, self._rng)

    # -- one pod ----------------------------------------------------------------------------------------------

    async def _tell(self, uid: str) -> None:
        report = self._pods.reports.get(uid)
        there = self._there(uid)
        if report is None or there is None:
            self._forget(uid)
            return
        path, remote_uid = there
        remote = self._remote.get(uid)
        seen = self._seen.pop(uid, "")
        is_stale = remote is not None and seen not in ("", remote.metadata.resource_version)
        if remote is None or is_stale or remote.metadata.uid != remote_uid:
            remote = await self._get(path)
        if remote is None or remote.metadata.uid != remote_uid:
            return  # gone, or another one of that name: the watch will say so
        for _ in range(TRIES):
            remote = await self._patch(path, remote, report)
            if remote is None:
                self._forget(uid)
                return
            self._remote[uid] = remote
            if is_backwards(remote, report) or not is_contradicted(remote, report):
                break  # else somebody has written to it since it was read
        else:
            self._again(uid, RETRY_SECONDS)
        wanted = self._pods.wanted.get(uid)
        if wanted is not None and wanted.is_deleting and may_be_deleted(report):
            await self._delete(path, remote_uid)

    def _refused(self, uid: str, error: str, after: float) -> None:
        """Tried again once, however often it fails meanwhile."""
        self._tell_trouble(uid, error)
        self._remote.pop(uid, None)
        self._again(uid, max(RETRY_SECONDS, after))

    def _again(self, uid: str, seconds: float) -> None:
        if (known := self._retries.pop(uid, None)) is not None:
            known.cancel()
        self._retries[uid] = asyncio.get_running_loop().call_later(seconds, self.changed, uid)

    def _forget(self, uid: str) -> None:
        if (retry := self._retries.pop(uid, None)) is not None:
            retry.cancel()
        for known in (self._remote, self._seen, self._troubles):
            known.pop(uid, None)

    def _there(self, uid: str) -> tuple[str, str] | None:
        """(path, UID) of the pod at the API server, or of a static pod's picture; None = it isn't there."""
        wanted = self._pods.wanted.get(uid)
        if wanted is not None and wanted.source == "api":
            return pod_path(wanted.namespace, wanted.name), uid
        if (mirror := self._pods.mirror_of(uid)) is not None:
            return pod_path(mirror.namespace, mirror.name), mirror.uid
        return None

    async def _patch(self, path: str, remote: RemotePod, report: PodReport) -> RemotePod | None:
        """As it is then; None = it's gone."""
        if is_backwards(remote, report):
            log.warning("status not told, the pod is over there path=%s phase=%s", path, remote.status.get("phase"))
            return remote
        patch = pod_status_patch(remote, report)
        if patch is None:
            return remote
        answer = await self._server.request(
            "PATCH",
            f"{path}/status",
            body=msgspec.json.encode(patch),
            content_type=STRATEGIC,
            within=CALL_SECONDS,
        )
        if answer.code == 404:
            return None
        answer.check()
        return parse_remote_pod(answer.body)

    async def _delete(self, path: str, uid: str) -> None:
        answer = await self._server.request("DELETE", path, body=delete_now(uid), within=CALL_SECONDS)
        if answer.code not in (404, 409):
            answer.check()
        log.info("pod let go path=%s uid=%s", path, uid)

    async def _get(self, path: str) -> RemotePod | None:
        answer = await self._server.request("GET", path, within=CALL_SECONDS)
        if answer.code == 404:
            return None
        answer.check()
        return parse_remote_pod(answer.body)

    # -- troubles ---------------------------------------------------------------------------------------------

    def _tell_away(self, error: str) -> None:
        """Once per outage."""
        if error and not self._is_away:
            log.error("pods' statuses wait for the API server error=%s", error)
        elif self._is_away and not error:
            log.info("pods' statuses are told again waiting=%d", len(self._dirty))
        self._is_away = bool(error)

    def _tell_trouble(self, uid: str, error: str) -> None:
        if error and self._troubles.get(uid) != error:
            log.error("a pod's status isn't taken uid=%s error=%s", uid, error)
        if error:
            self._troubles[uid] = error
        else:
            self._troubles.pop(uid, None)
