"""What is known of each container, so that a list costs an inspect only for what has changed.

A list shows the state but neither exit code, times nor pid; an inspect costs as much as listing a pod. An
entry is used while the list shows the same state and no event spoke of the container since it was inspected.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from services.podworker.adapters.docker_translate import Listed, Observed, observed
from services.podworker.adapters.kernel_log import was_oom_killed
from services.podworker.adapters.secret_values import SecretFiles
from services.podworker.adapters.termination_messages import with_message
from services.podworker.core.container_states import OOM_EXIT_CODE
from services.podworker.core.model import RuntimeContainer

if TYPE_CHECKING:
    from docker import APIClient

MAX_IMAGES = 512


class Observer:
    """Thread-safe. The order of things is told by a counter that each `forget` moves on: an inspect that
    began before the last event of its container doesn't count as fresh."""

    def __init__(self, secret_files: SecretFiles) -> None:
        self._secret_files = secret_files
        self._lock = threading.Lock()
        self._known: dict[str, tuple[int, Observed]] = {}
        self._forgotten: dict[str, int] = {}
        self._all_forgotten = 0
        self._counter = 0
        self._images: dict[str, dict[str, Any] | None] = {}

    def mark(self) -> int:
        """The present moment, for `update`."""
        with self._lock:
            return self._counter

    def forget(self, container_id: str) -> None:
        """Something happened to it ("" = may have happened to any): inspect it at the next list."""
        with self._lock:
            self._counter += 1
            if container_id:
                self._forgotten[container_id] = self._counter
            else:
                self._all_forgotten = self._counter
                self._images.clear()

    def recall(self, container_id: str, *, fresh: bool = False) -> Observed | None:
        """What was last seen of it: for what never changes (labels). `fresh`: only when nothing happened to
        it since, and it was running: for a sandbox's addresses."""
        with self._lock:
            stamp, seen = self._known.get(container_id, (-1, None))
            is_fresh = stamp >= self._event_at(container_id) and seen is not None and seen.key == "running"
        return seen if is_fresh or not fresh else None

    def look(self, client: APIClient, container_id: str) -> Observed | None:
        """Inspect it now; None when it is gone or no pod's."""
        return self._inspect(client, container_id, self.mark())

    def update(self, client: APIClient, entries: Sequence[Listed], mark: int, *, whole: bool) -> list[Observed]:
        """The facts of all listed containers. `mark` was taken before the list; `whole`: what isn't listed is
        gone."""
        if whole:
            self._prune({entry.id for entry in entries})
        found = (self._fresh(entry) or self._inspect(client, entry.id, mark) for entry in entries)
        return [seen for seen in found if seen is not None]

    def _fresh(self, entry: Listed) -> Observed | None:
        with self._lock:
            stamp, seen = self._known.get(entry.id, (-1, None))
            is_fresh = stamp >= self._event_at(entry.id) and seen is not None and seen.key == entry.key
        return seen if is_fresh else None

    def _event_at(self, container_id: str) -> int:
        return max(self._forgotten.get(container_id, 0), self._all_forgotten)

    def _prune(self, alive: set[str]) -> None:
        with self._lock:
            self._known = {key: entry for key, entry in self._known.items() if key in alive}
            self._forgotten = {key: at for key, at in self._forgotten.items() if key in alive}

    def _inspect(self, client: APIClient, container_id: str, mark: int) -> Observed | None:
        from docker.errors import NotFound

        try:
            inspect = client.inspect_container(container_id)
        except NotFound:
            return None
        seen = observed(inspect, self._image(client, inspect.get("Image", "")))
        if seen is None:
            return None
        seen = with_message(client, _with_cause(seen), inspect, self._secret_files)
        with self._lock:
            self._known[container_id] = (mark, seen)
        return seen

    def _image(self, client: APIClient, image_id: str) -> dict[str, Any] | None:
        """Kept until the next loss of events: a tag that moves shows in the status a little later."""
        from docker.errors import NotFound

        image: dict[str, Any] | None
        with self._lock:
            if image_id in self._images:
                return self._images[image_id]
        try:
            found: dict[str, Any] = client.inspect_image(image_id)  # type: ignore[no-untyped-call]
            image = {"RepoTags": found.get("RepoTags"), "RepoDigests": found.get("RepoDigests")}
        except NotFound:
            image = None
        with self._lock:
            if len(self._images) >= MAX_IMAGES:
                self._images.clear()
            self._images[image_id] = image
        return image


def _with_cause(seen: Observed) -> Observed:
    """A kill that the engine doesn't explain may be one for want of memory that it has missed."""
    fact = seen.fact
    if not isinstance(fact, RuntimeContainer) or fact.state != "exited" or fact.oom_killed:
        return seen
    if fact.exit_code != OOM_EXIT_CODE or not was_oom_killed(fact.id):
        return seen
    return msgspec.structs.replace(seen, fact=msgspec.structs.replace(fact, oom_killed=True))
