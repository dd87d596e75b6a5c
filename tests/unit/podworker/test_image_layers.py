"""What images take together: each stack of layers once, however the history tells it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.podworker.core.image_layers import BuildStep, ImageLayers, weight
from services.podworker.handlers.image_weights import MOST_AT_ONCE, ImageWeights
from tests.support.model_runtime import ModelRuntime, an_image

NOP = "/bin/sh -c #(nop) "


def image(*layers: tuple[str, int, str], metadata: tuple[str, ...] = ()) -> ImageLayers:
    """Layers as (digest, bytes, command), with steps that made none after them."""
    steps = [BuildStep(size=size, command=command) for _, size, command in layers]
    steps += [BuildStep(size=0, command=command) for command in metadata]
    return ImageLayers(
        layers=tuple(digest for digest, _, _ in layers), steps=tuple(steps), size=sum(size for _, size, _ in layers)
    )


BASE = ("a", 100, NOP + "ADD file:1 in /")


def test_a_shared_base_counts_once() -> None:
    one = image(BASE, ("b", 10, "/bin/sh -c make"), metadata=(NOP + 'CMD ["x"]',))
    other = image(BASE, ("c", 20, "RUN make # buildkit"), metadata=('CMD ["y"]', "ENV A=b"))
    assert weight([one]) == 110
    assert weight([one, other]) == 130
    assert weight([image(BASE), one, other, other]) == 130


def test_the_same_content_on_another_base_is_there_twice() -> None:
    """The engine keeps what was added to each."""
    assert weight([image(BASE, ("b", 10, "RUN x")), image(("c", 5, "RUN y"), ("b", 10, "RUN x"))]) == 125


def test_a_layer_without_bytes_is_found_among_the_steps() -> None:
    """A command that changes nothing makes a layer, too; an instruction about the configuration doesn't."""
    one = image(BASE, ("empty", 0, "/bin/sh -c true"), ("b", 10, "/bin/sh -c make"), metadata=(NOP + "LABEL a=b",))
    assert weight([one, image(BASE, ("empty", 0, "/bin/sh -c true"), ("c", 1, "RUN x"))]) == 111


def test_a_history_that_does_not_fit_loses_no_byte() -> None:
    squashed = ImageLayers(layers=("a", "b", "c"), steps=(BuildStep(size=42, command=""),), size=42)
    assert weight([squashed]) == 42
    assert weight([ImageLayers(layers=(), steps=(), size=0)]) == 0


sizes = st.lists(st.integers(1, 1000), min_size=1, max_size=4)


@given(st.lists(st.tuples(sizes, st.integers(0, 3)), max_size=5))
def test_together_they_weigh_at_most_their_sum_and_at_least_the_heaviest(
    given_images: list[tuple[list[int], int]],
) -> None:
    """Those of one family have the same first layers."""
    images = [
        image(*((f"{family}-{number}", 7 if number == 0 else size, "RUN x") for number, size in enumerate(each)))
        for each, family in given_images
    ]
    total = weight(images)
    assert total <= sum(one.size for one in images)
    assert total >= max((one.size for one in images), default=0) or len({f for _, f in given_images}) < len(images)


async def test_each_image_is_looked_at_once_and_a_few_at_a_time() -> None:
    engine = ModelRuntime(lambda: 0.0)
    engine.local_images = {f"i{n}": an_image(f"i{n}") for n in range(MOST_AT_ONCE + 5)}
    weights = ImageWeights(engine)
    images = await engine.images()
    assert await weights.of(images) is None
    total = await weights.of(images)
    assert total == sum(one.size for one in images)
    del engine.local_images["i0"]
    assert await weights.of(images) == total, "those known aren't asked for again"
    assert await weights.of(await engine.images()) == total - images[0].size
