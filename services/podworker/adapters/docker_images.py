"""ImageService over Docker Engine: one pull per reference and credential at a time on the node, with its progress.

Who pulls with other credentials shares nothing: the registry is to be asked whether they are good for the image.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from services.podworker.adapters.docker_calls import DockerCalls, connection_errors, is_silence
from services.podworker.adapters.docker_translate import image_info, image_layers
from services.podworker.core.image_credentials import Credential
from services.podworker.core.image_layers import ImageLayers
from services.podworker.core.images import inspect_failure, pull_failure
from services.podworker.ports import ImageInfo, ImagePullFailed, PullProgress, RuntimeUnavailable

if TYPE_CHECKING:
    from docker import APIClient

_log = logging.getLogger("podbus.podworker.docker_images")

PULL_THREADS = 32
"""Those who wait count their pulls (maxParallelImagePulls); a pull given up holds its thread until the engine says
something or is silent for too long. Threads come only as they are needed."""
SILENCE_SECONDS = 60
"""kubelet 1.20's --image-pull-progress-deadline."""
QUERY_THREADS = 2
LOCK_POLL_SECONDS = 0.1


class LayerProgress:
    """The lines of a pull -> bytes so far and in all, summed over the layers that have to be fetched."""

    def __init__(self) -> None:
        self._layers: dict[str, tuple[int, int]] = {}

    def add(self, line: Mapping[str, Any]) -> bool:
        """Whether the sums have changed."""
        layer, status = line.get("id", ""), line.get("status", "")
        if status == "Downloading":
            detail = line.get("progressDetail") or {}
            amounts = (int(detail.get("current") or 0), int(detail.get("total") or 0))
        elif status in ("Download complete", "Extracting", "Pull complete") and layer in self._layers:
            total = self._layers[layer][1]
            amounts = (total, total)
        else:
            return False
        changed = self._layers.get(layer) != amounts
        self._layers[layer] = amounts
        return changed

    @property
    def sums(self) -> tuple[int, int]:
        """(so far, in all); in all is 0 while no layer's size is known, and grows as layers begin."""
        return sum(c for c, _ in self._layers.values()), sum(t for _, t in self._layers.values())


class _Flight:
    """A pull in this process and all who wait for it."""

    def __init__(self, reference: str, credential: Credential | None) -> None:
        self.reference = reference
        self.credential = credential
        self.listeners: list[PullProgress] = []
        self.task: asyncio.Task[ImageInfo] | None = None
        self.unwanted = threading.Event()

    @property
    def key(self) -> tuple[str, str]:
        return self.reference, self.credential.fingerprint if self.credential is not None else ""

    def tell(self, current: int, total: int) -> None:
        for listener in list(self.listeners):
            listener(current, total)


class DockerImages:
    """ImageService (services.podworker.ports). `run_dir` holds the locks of the pulls, shared by the
    workers. A pull of which the engine tells nothing for `silence_seconds` has failed: the registry sends no more."""

    def __init__(self, run_dir: Path, base_url: str | None = None, silence_seconds: int = SILENCE_SECONDS) -> None:
        self._run_dir = run_dir
        self._queries = DockerCalls("docker-images", QUERY_THREADS, base_url)
        self._pulls = DockerCalls("docker-pull", PULL_THREADS, base_url, silence_seconds)
        self._silence_seconds = silence_seconds
        self._flights: dict[tuple[str, str], _Flight] = {}

    def close(self) -> None:
        for flight in self._flights.values():
            flight.unwanted.set()
        self._queries.close()
        self._pulls.close()

    async def image(self, reference: str) -> ImageInfo | None:
        return await self._queries.run(lambda client: _inspect(client, reference))

    async def images(self) -> Sequence[ImageInfo]:
        return await self._queries.run(lambda client: [image_info(one) for one in client.images()])

    async def image_layers(self, image_id: str) -> ImageLayers | None:
        return await self._queries.run(lambda client: _layers(client, image_id))

    async def pull_image(
        self, reference: str, progress: PullProgress, credential: Credential | None = None
    ) -> ImageInfo:
        wanted = _Flight(reference, credential)
        flight = self._flights.setdefault(wanted.key, wanted)
        if flight is wanted:
            flight.task = asyncio.create_task(self._fly(flight), name=f"pull {reference}")
            flight.task.add_done_callback(_notice)
        assert flight.task is not None
        flight.listeners.append(progress)
        try:
            # Shielded: who gives up must not end it for the others.
            return await asyncio.shield(flight.task)
        finally:
            flight.listeners.remove(progress)
            if not flight.listeners:
                flight.unwanted.set()
                if self._flights.get(flight.key) is flight:
                    del self._flights[flight.key]

    async def _fly(self, flight: _Flight) -> ImageInfo:
        try:
            return await self._pulls.run(lambda client: self._pull(client, flight))
        finally:
            if self._flights.get(flight.key) is flight:
                del self._flights[flight.key]

    def _pull(self, client: APIClient, flight: _Flight) -> ImageInfo:
        reference = flight.reference
        before = _inspect(client, reference)
        with self._locked(flight) as waited:
            after = _inspect(client, reference) if waited else None
            if after is not None and after != before:
                # Another worker has just pulled it.
                return after
            try:
                _fetch(client, flight)
            except connection_errors() as error:
                if not is_silence(error):
                    raise
                text = f"failed to pull image {reference}: nothing came for {self._silence_seconds} s"
                raise ImagePullFailed("ErrImagePull", text) from error
        found = _inspect(client, reference)
        if found is None:
            raise ImagePullFailed("ErrImagePull", f"{reference} isn't there after its pull")
        return found

    @contextmanager
    def _locked(self, flight: _Flight) -> Iterator[bool]:
        """The node's lock on this pull; yields whether somebody else held it. Polled, so that a pull
        that nobody waits for any more doesn't hold up the end of the process."""
        name = blake2b("\0".join(flight.key).encode(), digest_size=16).hexdigest()
        lock = os.open(self._run_dir / f"pull-{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        waited = False
        try:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    waited = True
                if flight.unwanted.wait(LOCK_POLL_SECONDS):
                    raise RuntimeUnavailable(f"nobody waits for {flight.reference} any more")
            yield waited
        finally:
            os.close(lock)


def _notice(task: asyncio.Task[ImageInfo]) -> None:
    """Its error is for those who wait; when nobody does any more, it's no news."""
    if not task.cancelled():
        task.exception()


def _fetch(client: APIClient, flight: _Flight) -> None:
    """Raises ImagePullFailed with the registry's words: as an HTTP error, or within a stream that began with
    200."""
    from docker.errors import APIError

    reference, credential = flight.reference, flight.credential
    auth = None
    if credential is not None:
        auth = {
            "username": credential.username,
            "password": credential.password,
            "serveraddress": credential.server,
        }
    layers = LayerProgress()
    try:
        for line in client.pull(reference, stream=True, decode=True, auth_config=auth):
            if flight.unwanted.is_set():
                _log.info("image=%s pull given up: nobody waits for it any more", reference)
                raise RuntimeUnavailable(f"nobody waits for {reference} any more")
            detail = line.get("errorDetail") or {}
            if problem := line.get("error") or detail.get("message"):
                raise ImagePullFailed(*pull_failure(reference, str(problem), detail.get("code") or 0))
            if layers.add(line):
                flight.tell(*layers.sums)
    except APIError as error:
        raise ImagePullFailed(*pull_failure(reference, error.explanation or str(error))) from error


def _layers(client: APIClient, image_id: str) -> ImageLayers | None:
    from docker.errors import APIError

    try:
        found: dict[str, Any] = client.inspect_image(image_id)  # type: ignore[no-untyped-call]
        history: list[dict[str, Any]] = client.history(image_id)  # type: ignore[no-untyped-call]
    except APIError as error:
        if error.status_code == 404:
            return None
        raise RuntimeUnavailable(f"{image_id} can't be looked at: {error.explanation or error}") from error
    return image_layers(found, history)


def _inspect(client: APIClient, reference: str) -> ImageInfo | None:
    from docker.errors import APIError

    try:
        found: dict[str, Any] = client.inspect_image(reference)  # type: ignore[no-untyped-call]
    except APIError as error:
        # 400: a reference that can't be read names no image.
        if error.status_code in (400, 404):
            return None
        raise ImagePullFailed(*inspect_failure(reference, error.explanation or str(error))) from error
    return image_info(found)
