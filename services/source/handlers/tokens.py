"""Asks the API server for the tokens of the node's pods, and keeps each until it is to be renewed. In memory only."""

from __future__ import annotations

import logging
from collections.abc import Collection

import msgspec

from services.source.core.tokens import IssuedToken, JsonObject, issued_token, token_request
from shared.apiserver.errors import ApiError, Unreachable
from shared.apiserver.server import Requests
from shared.bus import RemoteError
from shared.runtime.clock import Clock

log = logging.getLogger("podbus.source.tokens")

_WITHIN_SECONDS = 1.5
"""Less than who asks would wait."""


class Tokens:
    def __init__(self, server: Requests, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._issued: dict[tuple[str, str, int], IssuedToken] = {}

    async def get(self, pod: JsonObject, audience: str, seconds: int) -> IssuedToken:
        """Raises RemoteError when there is none that is valid, and none to be had now."""
        key = (str(pod["metadata"]["uid"]), audience, seconds)
        known, now = self._issued.get(key), self._clock.now()
        if known is not None and known.is_fresh(now):
            return known
        path, body = token_request(pod, audience, seconds)
        try:
            answer = await self._server.request("POST", path, body=msgspec.json.encode(body), within=_WITHIN_SECONDS)
            issued = issued_token(msgspec.json.decode(answer.check().body, type=dict), now)
        except (ApiError, Unreachable, ValueError) as error:
            log.warning("no token path=%s error=%s", path, error)
            if known is not None and known.is_valid(now):
                return known
            raise RemoteError("unavailable", f"no token of the service account: {error}") from error
        self._issued[key] = issued
        return issued

    def keep(self, uids: Collection[str]) -> None:
        """Of pods that are gone nothing stays."""
        self._issued = {key: token for key, token in self._issued.items() if key[0] in uids}
