"""Who asks: tokens.csv, read again when it changes, and the names in a verified client certificate."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from services.api.core.access import AUTHENTICATED, Identity
from services.api.core.token_file import Tokens, parse_tokens

log = logging.getLogger("podbus.api.authn")

_CHECK_SECONDS = 1.0
_MISS_SECONDS = 0.1
"""After an unknown token: it may have been made a moment ago."""


class TokenFile:
    """The tokens of a file. A file that is gone or can't be read lets nobody in: a revoked token must not live on."""

    def __init__(self, path: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic = monotonic
        self._key = secrets.token_bytes(32)
        self._tokens = Tokens({}, self._key)
        self._seen: tuple[int, ...] = ()
        self._looked_at = float("-inf")

    def find(self, token: str) -> Identity | None:
        """Whose token it is. Looks at the file at most once a second, for unknown tokens ten times."""
        now = self._monotonic()
        self._look(now, _CHECK_SECONDS)
        found = self._tokens.find(token)
        if found is None and self._look(now, _MISS_SECONDS):
            found = self._tokens.find(token)
        return found

    def _look(self, now: float, seconds: float) -> bool:
        if now - self._looked_at < seconds:
            return False
        self._looked_at = now
        self._refresh()
        return True

    def _refresh(self) -> None:
        try:
            found = self._path.stat()
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            if seen == self._seen:
                return
            text = self._path.read_text(errors="surrogateescape")
        except OSError as error:
            if self._seen != (0,):
                log.error("no token is accepted path=%s error=%s", self._path, error)
            self._seen, self._tokens = (0,), Tokens({}, self._key)
            return
        if found.st_mode & 0o077:
            log.warning("others may read the tokens path=%s mode=%o", self._path, found.st_mode & 0o777)
        self._tokens, problems = parse_tokens(text, self._key)
        self._seen = seen
        for problem in problems:
            log.error("token ignored path=%s %s", self._path, problem)
        log.info("tokens read path=%s count=%d", self._path, len(self._tokens))


def peer_identity(certificate: Mapping[str, Any] | None) -> Identity | None:
    """`SSLObject.getpeercert()` of a verified certificate -> its identity: the last CN, every O. None without a CN."""
    if not certificate:
        return None
    names = [pair for part in certificate.get("subject", ()) for pair in part]
    users = [value for key, value in names if key == "commonName" and value]
    if not users:
        return None
    groups = [value for key, value in names if key == "organizationName"]
    return Identity(users[-1], (*groups, AUTHENTICATED))
