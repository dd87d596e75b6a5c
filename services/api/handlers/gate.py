"""Who asks, and may they: the node's own tokens, roles and policy first, then the API server, if there is one."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from services.api.core.access import ANONYMOUS, Identity, allowed, subresources
from services.api.ports import AccessUndecided, LocalPolicy, Reviewer, ReviewFailed, TokenReviewer

log = logging.getLogger("podbus.api.access")


class NodeGate:
    """ports.Gate."""

    def __init__(
        self,
        tokens: TokenReviewer,
        policy: LocalPolicy,
        *,
        token_reviews: Reviewer | None = None,
        access_reviews: Reviewer | None = None,
        anonymous: bool = False,
        always_allow: bool = False,
    ) -> None:
        """`anonymous`: who shows nothing is system:anonymous. `always_allow`: authorization.mode AlwaysAllow."""
        self._tokens = tokens
        self._policy = policy
        self._token_reviews = token_reviews
        self._access_reviews = access_reviews
        self._anonymous = anonymous
        self._always_allow = always_allow

    async def identify(self, peer: Identity | None, tokens: Sequence[str]) -> Identity | None:
        """kubelet: the first that is good counts, an error of one doesn't stop the next; one that is shown and
        isn't good makes nobody anonymous."""
        if peer is not None:
            return peer
        for token in tokens:
            if (who := self._tokens.find(token)) is not None or (who := await self._review(token)) is not None:
                return who
        return ANONYMOUS if self._anonymous and not tokens else None

    async def allows(self, who: Identity, method: str, path: str) -> bool:
        if self._always_allow or allowed(who, method, path) or self._policy.allows(who, method, path):
            return True
        if self._access_reviews is None:
            return False
        for subresource in subresources(path):
            try:
                if await self._access_reviews.allows(who, method, subresource):
                    return True
            except ReviewFailed as error:
                log.error("authorization failed user=%r subresource=%s error=%s", who.user, subresource, error)
                raise AccessUndecided(subresource) from error
        return False

    async def _review(self, token: str) -> Identity | None:
        if self._token_reviews is None:
            return None
        try:
            return await self._token_reviews.identify(token)
        except ReviewFailed as error:
            log.error("a token could not be reviewed error=%s", error)
            return None


class NoPolicy:
    """ports.LocalPolicy, where there is none."""

    def allows(self, who: Identity, method: str, path: str) -> bool:
        return False
