"""ConfigMaps and Secrets of the API server: each that a pod refers to is watched for as long as one does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from random import Random

from services.source.core.manifest import ObjectKey
from services.source.core.reflected import JsonObject
from services.source.handlers.reflector import Reflector
from shared.apiserver.server import ApiServer
from shared.bus import RemoteError

_ANSWER_SECONDS = 1.5
"""How long a question waits for the first answer about an object: less than who asks would wait."""
_COLLECTIONS = {"ConfigMap": "configmaps", "Secret": "secrets"}


class ClusterConfigs:
    """`want` says which, `run` is a guarded task. What is known stays while the server is away."""

    def __init__(self, server: ApiServer, rng: Random) -> None:
        self.changed: Callable[[ObjectKey], None] = lambda key: None
        """An object was seen for the first time, has changed, come or gone."""
        self._server = server
        self._rng = rng
        self._reflectors: dict[ObjectKey, Reflector] = {}
        self._versions: dict[ObjectKey, str] = {}
        self._work = asyncio.Event()

    def want(self, keys: Collection[ObjectKey]) -> None:
        """All that is referred to now."""
        wanted = {key for key in keys if key.kind in _COLLECTIONS}
        for key in self._reflectors.keys() - wanted:
            del self._reflectors[key]
            self._versions.pop(key, None)
        for key in wanted - self._reflectors.keys():
            self._reflectors[key] = self._reflector(key)
        self._work.set()

    async def get(self, key: ObjectKey) -> JsonObject | None:
        """None = there is no such object. Raises RemoteError while nothing is known of it."""
        reflector = self._reflectors.get(key)
        if reflector is None:
            raise RemoteError("unavailable", f'{key.kind.lower()} "{key.name}" isn\'t followed yet')
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await reflector.answered.wait()
        except TimeoutError:
            reason = reflector.error or "the API server hasn't answered yet"
            raise RemoteError("unavailable", f'{key.kind.lower()} "{key.name}": {reason}') from None
        return reflector.known.objects.get(f"{key.namespace}/{key.name}")

    async def run(self) -> None:
        tasks: dict[Reflector, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                await self._work.wait()
                self._work.clear()
                wanted = set(self._reflectors.values())
                for reflector in tasks.keys() - wanted:
                    tasks.pop(reflector).cancel()
                for reflector in wanted - tasks.keys():
                    tasks[reflector] = group.create_task(reflector.run())

    def _reflector(self, key: ObjectKey) -> Reflector:
        path = f"/api/v1/namespaces/{key.namespace}/{_COLLECTIONS[key.kind]}"
        query = {"fieldSelector": f"metadata.name={key.name}"}
        return Reflector(self._server, path, query, lambda: self._look(key), self._rng)

    def _look(self, key: ObjectKey) -> None:
        reflector = self._reflectors.get(key)
        if reflector is None or not reflector.known.was_listed:
            return
        found = reflector.known.objects.get(f"{key.namespace}/{key.name}")
        version = "none" if found is None else str(found["metadata"].get("resourceVersion", ""))
        if self._versions.get(key) != version:
            self._versions[key] = version
            self.changed(key)
