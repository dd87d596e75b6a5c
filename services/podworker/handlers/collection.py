"""Collects what pods have left on the node: for pods that are gone everything, for those that live dangling links.

The pod's owner removes its leftovers itself; this is for those without an owner: their row was lost, or the agent was
ended and the pods after it.
"""

from __future__ import annotations

import logging

from services.podworker.core.collection import orphans
from services.podworker.handlers.desired_pods import DesiredPods
from services.podworker.ports import ContainerRuntime, Leftovers, PodStore

log = logging.getLogger("podbus.podworker.collection")


class Collection:
    """`sweep` is run by the holder of slot 0, once every source has been seen."""

    def __init__(self, runtime: ContainerRuntime, leftovers: Leftovers, store: PodStore, desired: DesiredPods) -> None:
        self._runtime = runtime
        self._leftovers = leftovers
        self._store = store
        self._desired = desired

    async def sweep(self) -> None:
        """Raises RuntimeUnavailable, StoreUnavailable: then nothing is removed."""
        # the disk first: who starts meanwhile has a row before it has a directory
        on_disk = await self._leftovers.uids()
        running = set(await self._runtime.list_pods())
        gone = orphans(on_disk, stored=self._store.all_uids(), desired=self._wanted(), running=running)
        for uid in sorted(gone):
            if uid in self._wanted() or not self._desired.all_sources_ready:
                continue
            if await self._leftovers.remove(uid):
                log.info("leftovers of a pod that is gone removed uid=%s", uid)
        dropped = await self._leftovers.drop_dangling_links(on_disk - gone)
        if dropped:
            log.info("dangling log links removed count=%d", dropped)

    def _wanted(self) -> set[str]:
        return {pod.uid for pod in self._desired}
