"""Pulls: one per reference on the node, with progress, and errors wherever the engine puts them."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from services.podworker.adapters.docker_images import DockerImages, LayerProgress
from services.podworker.ports import ImagePullFailed
from tests.contract.runtime.sockets import FakeRegistryEngine, slowly
from tests.support.eventually import eventually_async

REFERENCE = "registry.test/app:1"
DONE = [{"status": "Pulling from app", "id": "1"}, {"status": "Status: Downloaded newer image"}]

Open = Callable[[Callable[[], Iterable[dict[str, Any]]]], tuple[FakeRegistryEngine, DockerImages, DockerImages]]


@pytest.fixture
def open_engine(tmp_path: Path, socket_dir: Path) -> Iterator[Open]:
    """A scripted engine and two workers on one run directory."""
    opened: list[Any] = []

    def make(
        script: Callable[[], Iterable[dict[str, Any]]],
    ) -> tuple[FakeRegistryEngine, DockerImages, DockerImages]:
        engine = FakeRegistryEngine(socket_dir / "d.sock", script)
        workers = (DockerImages(tmp_path, engine.url), DockerImages(tmp_path, engine.url))
        opened.extend([*workers, engine])
        return engine, *workers

    yield make
    for one in opened:
        one.close()


def ignore(_current: int, _total: int) -> None:
    pass


def _note(seen: list[int], number: int, _current: int, _total: int) -> None:
    seen.append(number)


def downloading(layer: str, current: int, total: int) -> dict[str, Any]:
    return {"status": "Downloading", "id": layer, "progressDetail": {"current": current, "total": total}}


def test_progress_is_summed_over_the_layers_that_are_fetched() -> None:
    progress = LayerProgress()
    seen = []
    for line in (
        {"status": "Pulling fs layer", "id": "a"},
        {"status": "Already exists", "id": "z"},
        downloading("a", 10, 100),
        downloading("b", 5, 50),
        downloading("a", 100, 100),
        {"status": "Download complete", "id": "b"},
        {"status": "Extracting", "id": "a", "progressDetail": {"current": 1, "total": 100}},
        {"status": "Pull complete", "id": "a"},
    ):
        if progress.add(line):
            seen.append(progress.sums)
    assert seen == [(10, 100), (15, 150), (105, 150), (150, 150)]


async def test_a_pull_tells_its_progress_and_gives_the_image(open_engine: Open) -> None:
    _, images, _ = open_engine(lambda: [downloading("a", 1, 2), downloading("a", 2, 2), *DONE])
    seen: list[tuple[int, int]] = []
    found = await images.pull_image(REFERENCE, lambda current, total: seen.append((current, total)))
    assert found.names == (REFERENCE,)
    assert seen == [(1, 2), (2, 2)]


async def test_an_error_inside_the_stream_fails_the_pull(open_engine: Open) -> None:
    """The answer began with 200."""
    text = "toomanyrequests: slow down"
    _, images, _ = open_engine(lambda: [*DONE, {"errorDetail": {"message": text}, "error": text}])
    with pytest.raises(ImagePullFailed, match=text) as failed:
        await images.pull_image(REFERENCE, ignore)
    assert failed.value.reason == "ErrImagePull"


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (404, "manifest for registry.test/app:1 not found: manifest unknown: manifest unknown"),
        (500, 'Get "https://registry.test/v2/": dial tcp: lookup registry.test: no such host'),
        (500, "unauthorized: authentication required"),
    ],
)
async def test_a_refused_pull_says_the_registrys_words(open_engine: Open, status: int, text: str) -> None:
    engine, images, _ = open_engine(lambda: DONE)
    engine.refusal = (status, text)
    with pytest.raises(ImagePullFailed) as failed:
        await images.pull_image(REFERENCE, ignore)
    assert failed.value.message == text


@pytest.mark.parametrize(
    "text",
    [
        "received unexpected HTTP status: 503 Service Unavailable",
        "error parsing HTTP 502 response body: invalid character '<' looking for beginning of value",
    ],
)
async def test_a_registry_that_is_down_is_told_from_one_that_refuses(open_engine: Open, text: str) -> None:
    engine, images, _ = open_engine(lambda: DONE)
    engine.refusal = (500, text)
    with pytest.raises(ImagePullFailed) as failed:
        await images.pull_image(REFERENCE, ignore)
    assert (failed.value.reason, failed.value.message) == (
        "RegistryUnavailable",
        f"image pull failed for {REFERENCE} because the registry is unavailable: {text}",
    )


async def test_a_registrys_code_within_the_stream_counts(open_engine: Open) -> None:
    _, images, _ = open_engine(lambda: [{"errorDetail": {"code": 504, "message": "slow"}, "error": "slow"}])
    with pytest.raises(ImagePullFailed) as failed:
        await images.pull_image(REFERENCE, ignore)
    assert failed.value.reason == "RegistryUnavailable"


async def test_an_engine_that_can_not_tell_what_it_has_is_told(open_engine: Open) -> None:
    engine, images, _ = open_engine(lambda: DONE)
    engine.is_broken = True
    with pytest.raises(ImagePullFailed) as failed:
        await images.image(REFERENCE)
    assert (failed.value.reason, failed.value.message) == (
        "ImageInspectError",
        f'Failed to inspect image "{REFERENCE}": layer store is corrupt',
    )


async def test_pods_of_one_worker_share_a_pull(open_engine: Open) -> None:
    """And all of them see its progress; more waiters than threads don't matter."""
    go = threading.Event()
    engine, images, _ = open_engine(lambda: slowly([downloading("a", 1, 2)], go))
    seen: list[int] = []
    waiting = [asyncio.create_task(images.pull_image(REFERENCE, partial(_note, seen, n))) for n in range(12)]
    await eventually_async(lambda: engine.pulls == 1, within=5)
    go.set()
    assert {image.names for image in await asyncio.gather(*waiting)} == {(REFERENCE,)}
    assert engine.pulls == 1
    assert set(seen) == set(range(12))


async def test_two_workers_pull_one_after_the_other(open_engine: Open) -> None:
    """The second finds what the first has brought."""
    go = threading.Event()
    engine, one, other = open_engine(lambda: slowly([downloading("a", 1, 2)], go))
    first = asyncio.create_task(one.pull_image(REFERENCE, ignore))
    await eventually_async(lambda: engine.pulls == 1, within=5)
    second = asyncio.create_task(other.pull_image(REFERENCE, ignore))
    done, _ = await asyncio.wait([second], timeout=0.3)
    assert not done
    go.set()
    await asyncio.gather(first, second)
    assert engine.pulls == 1


async def test_a_failed_pull_lets_the_next_one_try(open_engine: Open) -> None:
    engine, one, other = open_engine(lambda: DONE)
    engine.refusal = (500, "unauthorized")
    with pytest.raises(ImagePullFailed):
        await one.pull_image(REFERENCE, ignore)
    engine.refusal = None
    assert (await other.pull_image(REFERENCE, ignore)).names == (REFERENCE,)


async def test_a_pull_that_nobody_waits_for_is_given_up(open_engine: Open) -> None:
    """The lock is free again at once, though the registry would go on for ever."""
    never = threading.Event()
    engine, one, other = open_engine(lambda: slowly([downloading("a", 1, 2)], never))
    waiting = [asyncio.create_task(one.pull_image(REFERENCE, ignore)) for _ in range(2)]
    await eventually_async(lambda: engine.pulls == 1, within=5)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    again = asyncio.create_task(other.pull_image(REFERENCE, ignore))
    await eventually_async(lambda: engine.pulls == 2, within=5)
    never.set()
    await again


async def test_a_registry_that_stands_still_fails_the_pull(tmp_path: Path, socket_dir: Path) -> None:
    """The engine waits for ever; the pod's back-off has to begin."""
    never = threading.Event()

    def stalled() -> Iterator[dict[str, Any]]:
        yield downloading("a", 1, 2)
        never.wait(30)

    engine = FakeRegistryEngine(socket_dir / "s.sock", stalled)
    images = DockerImages(tmp_path, engine.url, silence_seconds=1)
    with pytest.raises(ImagePullFailed, match=f"failed to pull image {REFERENCE}: nothing came for 1 s"):
        await images.pull_image(REFERENCE, ignore)
    never.set()
    images.close()
    engine.close()


async def test_a_failed_pull_without_a_waiter_is_no_error_of_the_loop(open_engine: Open) -> None:
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))
    never = threading.Event()
    engine, images, _ = open_engine(lambda: slowly([downloading("a", 1, 2)], never))
    waiting = asyncio.create_task(images.pull_image(REFERENCE, ignore))
    await eventually_async(lambda: engine.pulls == 1, within=5)
    waiting.cancel()
    await asyncio.wait([waiting])
    del waiting

    def is_over() -> bool:
        gc.collect()
        return not any(one.get_name().startswith("pull ") for one in asyncio.all_tasks())

    await eventually_async(is_over, within=5)
    gc.collect()
    assert told == []
    never.set()


async def test_closing_ends_a_pull_that_would_never_end(open_engine: Open) -> None:
    """A worker that is told to end isn't held up by a registry."""
    never = threading.Event()
    engine, images, _ = open_engine(lambda: slowly([downloading("a", 1, 2)], never))
    pull = asyncio.create_task(images.pull_image(REFERENCE, ignore))
    await eventually_async(lambda: engine.pulls == 1, within=5)
    images.close()
    done, _ = await asyncio.wait([pull], timeout=5)
    assert done and pull.exception() is not None
