"""One client of the Engine API and the threads that its blocking calls run in."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from services.podworker.ports import RuntimeUnavailable

if TYPE_CHECKING:
    from docker import APIClient
    from requests import PreparedRequest, Response

_log = logging.getLogger("podbus.podworker.docker_calls")

Result = TypeVar("Result")

DEFAULT_SOCKET = "unix:///var/run/docker.sock"
CALL_TIMEOUT_SECONDS = 60
"""For one answer. A call that takes longer has an unknown outcome: RuntimeUnavailable, then a fresh look."""


class DockerCalls:
    """A bounded pool of threads around one `docker.APIClient`.

    Each kind of work has its own pool, so that pulls and streams can't starve the calls of a pod's life.
    The client is made at the first call, and made anew after the engine was away: it may have been upgraded,
    and the version of the API is agreed on when the client is made.
    """

    def __init__(
        self, name: str, threads: int, base_url: str | None = None, silence_seconds: int | None = None
    ) -> None:
        """`silence_seconds`: how long a streamed answer may bring nothing; None = for ever, as the engine's events
        do."""
        self.base_url = base_url or os.environ.get("DOCKER_HOST") or DEFAULT_SOCKET
        self._threads = threads
        self._silence_seconds = silence_seconds
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._client: APIClient | None = None

    async def run(self, call: Callable[[APIClient], Result]) -> Result:
        """`call` in a thread of the pool. A lost connection becomes RuntimeUnavailable; the engine's refusals
        (docker.errors.APIError) are the caller's. A cancelled caller leaves the call running to its end."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._guarded, call)

    def close(self) -> None:
        """Don't wait: a call in flight is finished by the engine whether or not anybody listens."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def client(self) -> APIClient:
        """A new client. Blocks for one request (GET /version). Raises RuntimeUnavailable."""
        from docker import APIClient
        from docker.errors import DockerException

        try:
            client = APIClient(
                base_url=self.base_url, version="auto", timeout=CALL_TIMEOUT_SECONDS, max_pool_size=self._threads
            )
            # A quarter of each call's CPU would go into looking for proxies: the engine is on this machine.
            client.trust_env = False
            if self._silence_seconds is not None:
                client.send = partial(_send, client.send, self._silence_seconds)  # type: ignore[method-assign]
            return client
        except DockerException as error:
            raise RuntimeUnavailable(f"the container engine at {self.base_url} doesn't answer: {error}") from error

    def _guarded(self, call: Callable[[APIClient], Result]) -> Result:
        from docker.errors import APIError

        with self._lock:
            client = self._client
            if client is None:
                client = self._client = self.client()
        try:
            return call(client)
        except APIError:
            raise
        except connection_errors() as error:
            with self._lock:
                if self._client is client:
                    self._client = None
            _log.info("connection to the container engine lost: %s", error)
            raise RuntimeUnavailable(f"the container engine at {self.base_url} went away: {error}") from error


def connection_errors() -> tuple[type[Exception], ...]:
    """What the client raises when the engine is gone, restarting, or silent for too long.
    docker.errors.APIError is among the first one's subclasses but is an answer: catch it before these."""
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    return (RequestException, HTTPError, ConnectionError, TimeoutError)


def _send(send: Callable[..., Response], seconds: int, request: PreparedRequest, **kwargs: Any) -> Response:
    """docker-py asks for streamed answers without any limit."""
    if kwargs.get("timeout") is None:
        kwargs["timeout"] = seconds
    return send(request, **kwargs)


def is_silence(error: Exception) -> bool:
    """Of connection_errors: whether the engine is there, but nothing came for the client's timeout."""
    from requests.exceptions import ConnectionError as Lost
    from requests.exceptions import ReadTimeout
    from urllib3.exceptions import ReadTimeoutError

    inner = error.args[0] if isinstance(error, Lost) and error.args else error
    return isinstance(inner, (ReadTimeout, ReadTimeoutError))
