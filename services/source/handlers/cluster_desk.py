"""Answers a worker's questions for what a pod of the API has from the cluster besides objects: tokens, services."""

from __future__ import annotations

import asyncio
from random import Random

from services.source.core.service_variables import service_variables
from services.source.handlers.configs import ConfigDesk
from services.source.handlers.reflector import Reflector
from services.source.handlers.tokens import Tokens
from shared.apiserver.server import ApiServer
from shared.bus import Bus, RemoteError
from shared.contracts.configs import ServicesQuery, ServiceVariables, TokenData, TokenQuery
from shared.contracts.registry import SERVICES_OF_POD, TOKEN
from shared.kube.references import token_ref
from shared.kube.volumes import ServiceAccountTokenProjection
from shared.runtime.clock import Clock


class ClusterDesk:
    """`run` is a guarded task."""

    def __init__(self, server: ApiServer, desk: ConfigDesk, clock: Clock, rng: Random) -> None:
        self._desk = desk
        self._tokens = Tokens(server, clock)
        self._services = Reflector(server, "/api/v1/services", {}, self._services_seen, rng)
        self._first_seen = asyncio.Event()

    async def serve(self, bus: Bus) -> None:
        await bus.serve(TOKEN, self.token)
        await bus.serve(SERVICES_OF_POD, self.services)

    async def run(self) -> None:
        await self._services.run()

    async def token(self, query: TokenQuery) -> TokenData:
        wanted = ServiceAccountTokenProjection(path="", audience=query.audience, expiration_seconds=query.seconds)
        pod = self._desk.asker(query.uid, token_ref(wanted)).pod
        self._tokens.keep(self._desk.uids_of_api)
        token = await self._tokens.get(pod.body, query.audience, query.seconds)
        return TokenData(token=token.text, expires_at=token.expires_at)

    async def services(self, query: ServicesQuery) -> ServiceVariables:
        pod = self._desk.pod_of_api(query.uid)
        known = self._services.known
        if not known.was_listed:
            reason = self._services.error or "the API server hasn't answered yet"
            raise RemoteError("unavailable", f"services have not yet been read at least once: {reason}")
        links = pod.body["spec"].get("enableServiceLinks") is not False
        return ServiceVariables(variables=service_variables(known.objects.values(), pod.namespace, links=links))

    def _services_seen(self) -> None:
        """Whoever was turned away before the first list may ask now."""
        if self._services.known.was_listed and not self._first_seen.is_set():
            self._first_seen.set()
            self._desk.tell_pods_of_api()
