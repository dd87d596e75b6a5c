"""What images take together on the engine's disk: a layer that several share is there once."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class BuildStep(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of an image's history."""

    size: int
    """Bytes that it added."""
    command: str


class ImageLayers(msgspec.Struct, frozen=True, kw_only=True):
    layers: tuple[str, ...]
    """Digests of their contents, the lowest first."""
    steps: tuple[BuildStep, ...]
    """The oldest first."""
    size: int
    """Of the whole image, bytes."""


def weight(images: Iterable[ImageLayers]) -> int:
    """Bytes of all of them together. A layer counts once for each stack of layers that it lies on, as the engine keeps
    it."""
    seen: set[tuple[str, ...]] = set()
    total = 0
    for image in images:
        for number, size in enumerate(_sizes(image), 1):
            chain = image.layers[:number]
            if chain not in seen:
                seen.add(chain)
                total += size
    return total


def _sizes(image: ImageLayers) -> list[int]:
    """Of each layer. Not every step of a history has made one, and the history doesn't say which: those with a size
    have, and commands have. Where that doesn't fit, all counts as the topmost layer's."""
    for steps in (
        [step for step in image.steps if step.size or not _is_metadata(step.command)],
        [step for step in image.steps if step.size],
    ):
        if len(steps) == len(image.layers):
            return [step.size for step in steps]
    return [*(0 for _ in image.layers[1:]), image.size] if image.layers else []


def _is_metadata(command: str) -> bool:
    """Only the image's configuration changed: by the classic builder `#(nop)`, by BuildKit an instruction's name."""
    _, is_nop, instruction = command.partition("#(nop)")
    word = (instruction if is_nop else command).split(maxsplit=1)[:1]
    return bool(word) and word[0] in _METADATA


_METADATA = frozenset(
    (
        *("CMD", "ENTRYPOINT", "ENV", "LABEL", "EXPOSE", "USER", "VOLUME", "STOPSIGNAL", "HEALTHCHECK", "SHELL", "ARG"),
        *("MAINTAINER", "ONBUILD"),
    )
)
