"""policy.yaml, read again when it changes. No file is no policy; one with a fault allows nothing and is told."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from services.api.core.access import Identity
from services.api.core.policy import Policy, read_policy

log = logging.getLogger("podbus.api.policy")

_CHECK_SECONDS = 1.0


class PolicyFile:
    """ports.LocalPolicy. Looks at the file at most once a second."""

    def __init__(self, path: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic = monotonic
        self._policy = Policy()
        self._seen: tuple[int, ...] = ()
        self._looked_at = float("-inf")

    def allows(self, who: Identity, method: str, path: str) -> bool:
        now = self._monotonic()
        if now - self._looked_at >= _CHECK_SECONDS:
            self._looked_at = now
            self._refresh()
        return self._policy.allows(who, method, path)

    def _refresh(self) -> None:
        try:
            found = self._path.stat()
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            if seen == self._seen:
                return
            text = self._path.read_text()
        except FileNotFoundError:
            if self._policy.rules:
                log.warning("the policy is gone path=%s", self._path)
            self._seen, self._policy = (), Policy()
            return
        except (OSError, UnicodeDecodeError) as error:
            if self._seen != (0,):
                log.error("the policy can't be read and allows nothing path=%s error=%s", self._path, error)
            self._seen, self._policy = (0,), Policy()
            return
        self._seen = seen
        self._policy, problems = _parsed(text)
        for problem in problems:
            log.error("the policy is wrong and allows nothing path=%s %s", self._path, problem)
        if not problems:
            log.info("policy read path=%s rules=%d", self._path, len(self._policy.rules))


def _parsed(text: str) -> tuple[Policy, list[str]]:
    import yaml  # only where there is a policy

    try:
        return read_policy(yaml.safe_load(text))
    except yaml.YAMLError as error:
        return Policy(), [" ".join(str(error).split())]
