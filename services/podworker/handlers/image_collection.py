"""Removes images that podbus has pulled and nobody uses, when their disk is full or they have grown old."""

from __future__ import annotations

import logging

from services.podworker.core.image_gc import GcPolicy, gone_records, image_sweep
from services.podworker.ports import ImageRecords, ImageStore
from shared.contracts.events import InvolvedObject
from shared.runtime.clock import Clock
from shared.runtime.event_ring import EventRing

log = logging.getLogger("podbus.podworker.image_collection")


class ImageCollection:
    """`sweep` is run by the holder of slot 0."""

    def __init__(
        self,
        store: ImageStore,
        records: ImageRecords,
        clock: Clock,
        policy: GcPolicy,
        events: EventRing,
        node: InvolvedObject,
    ) -> None:
        self._store = store
        self._records = records
        self._clock = clock
        self._policy = policy
        self._events = events
        self._node = node

    async def sweep(self) -> None:
        """Raises RuntimeUnavailable, StoreUnavailable."""
        now = self._clock.now()
        images = await self._store.local_images()
        # after the images: who pulls and starts meanwhile is used, or too young
        used = await self._store.used_images()
        self._records.used(used, now)
        records = self._records.all()
        self._records.forget(gone_records(records, {image.id: image for image in images}))
        found = image_sweep(images, records, used, now=now, disk=await self._store.disk(), policy=self._policy)
        freed = 0
        for removal in found.removals:
            if not removal.is_old and freed >= found.to_free:
                continue
            if await self._store.remove_image(removal.image_id, removal.tags, whole=removal.whole):
                freed += removal.size if removal.whole else 0
                why = "unused for long" if removal.is_old else f"the disk is {found.usage_percent} % full"
                log.info("image removed id=%s tags=%s reason=%s", removal.image_id, ",".join(removal.tags), why)
        left = await self._store.local_images() if found.removals else images
        self._records.forget(gone_records(records, {image.id: image for image in left}))
        if freed < found.to_free:
            self._tell_failure(found.to_free, freed)

    def _tell_failure(self, wanted: int, freed: int) -> None:
        self._events.tell(
            "Warning",
            "FreeDiskSpaceFailed",
            f"Failed to garbage collect required amount of images. Attempted to free {wanted} bytes, but only found "
            f"{freed} bytes eligible to free.",
            self._node,
        )
