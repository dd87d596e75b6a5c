"""Remembers the layers of the images that are here, so that each is asked for once."""

from __future__ import annotations

from collections.abc import Sequence

from services.podworker.core.image_layers import ImageLayers, weight
from services.podworker.ports import ImageInfo, ImageService

MOST_AT_ONCE = 20
"""Images looked at in one call: a report isn't held up by a machine with hundreds of them."""


class ImageWeights:
    def __init__(self, images: ImageService) -> None:
        self._images = images
        self._known: dict[str, ImageLayers] = {}

    async def of(self, images: Sequence[ImageInfo]) -> int | None:
        """Bytes of these images together; None = not all were looked at yet. Raises RuntimeUnavailable."""
        here = {image.id for image in images}
        self._known = {id_: layers for id_, layers in self._known.items() if id_ in here}
        unknown = [id_ for id_ in here if id_ not in self._known]
        for id_ in unknown[:MOST_AT_ONCE]:
            layers = await self._images.image_layers(id_)
            if layers is not None:  # else it was removed this moment
                self._known[id_] = layers
        return weight(self._known.values()) if len(unknown) <= MOST_AT_ONCE else None
