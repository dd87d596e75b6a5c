"""The engine's event stream as hints: which pods to look at again.

A dedicated thread does nothing but read: a reader that stops slows the whole engine. Docker keeps no events
for a reader that was away, and none across its own restart, so every (re)connection means: list everything.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from services.podworker.adapters.docker_calls import DockerCalls, connection_errors
from services.podworker.ports import RuntimeUnavailable
from shared.kube import names

if TYPE_CHECKING:
    from docker.types.daemon import CancellableStream

_log = logging.getLogger("podbus.podworker.docker_events")

ACTIONS = ("start", "die", "oom", "destroy", "rename", "pause", "unpause", "update")
MAX_PENDING = 4096
"""Pods waiting to be looked at; with more, "list everything" is the cheaper hint."""
FIRST_RETRY_SECONDS = 0.1
MAX_RETRY_SECONDS = 2.0

OnChange = Callable[[str], None]
"""Called in the reader's thread with the container's id, or "" when any container may have changed."""


class EventStream:
    """Hints for one consumer: `stream.changes()`; `close` ends the thread."""

    def __init__(self, calls: DockerCalls, instance: str, on_change: OnChange) -> None:
        self._calls = calls
        self._instance = instance
        self._on_change = on_change
        self._lock = threading.Lock()
        self._pending: dict[str, None] = {}
        self._lost = False
        self._closed = threading.Event()
        self._stream: CancellableStream[dict[str, Any]] | None = None

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    async def changes(self) -> AsyncIterator[str | None]:
        """UIDs, coalesced, in order of their first event; None = list everything: also first of all, once the
        stream is open, so that nothing falls between it and the list."""
        loop, wake = asyncio.get_running_loop(), asyncio.Event()

        def notify() -> None:
            # The loop may be gone when a last event comes in while the process ends.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(wake.set)

        threading.Thread(target=self._read, args=(notify,), name="docker-events", daemon=True).start()
        try:
            while True:
                await wake.wait()
                wake.clear()
                for hint in self._take():
                    yield hint
        finally:
            self.close()

    def close(self) -> None:
        """End the thread; from any thread."""
        self._closed.set()
        stream = self._stream
        if stream is not None:
            stream.close()

    def _take(self) -> list[str | None]:
        with self._lock:
            lost, pending = self._lost, list(self._pending)
            self._lost = False
            self._pending.clear()
        # What is pending happened before the list that None asks for.
        return [None] if lost else [*pending]

    def _read(self, notify: Callable[[], None]) -> None:
        from docker.errors import APIError

        broken: tuple[type[Exception], ...] = (APIError, *connection_errors())
        delay = FIRST_RETRY_SECONDS
        while not self._closed.is_set():
            try:
                for event in self._open():
                    if event is None:
                        delay = FIRST_RETRY_SECONDS
                        self._lose()
                    else:
                        self._add(event)
                    notify()
                    if self._closed.is_set():
                        return
                problem = "ended"
            except RuntimeUnavailable as error:
                problem = str(error)
            except broken as error:
                problem = f"broke: {error}"
            if self._closed.wait(delay):
                return
            _log.info("event stream %s; connecting again", problem)
            delay = min(delay * 2, MAX_RETRY_SECONDS)

    def _open(self) -> Any:
        """A new connection's events, None first of all."""
        labels = [f"{names.LABEL_INSTANCE}={self._instance}", names.LABEL_POD_UID]
        filters = {"type": ["container"], "label": labels, "event": list(ACTIONS)}
        client = self._calls.client()
        try:
            self._stream = client.events(filters=filters, decode=True)
            yield None
            yield from self._stream
        finally:
            self._stream = None
            client.close()

    def _add(self, event: dict[str, Any]) -> None:
        actor = event.get("Actor") or {}
        uid = (actor.get("Attributes") or {}).get(names.LABEL_POD_UID, "")
        if not uid:
            return
        self._on_change(actor.get("ID", ""))
        with self._lock:
            self._pending[uid] = None
            if len(self._pending) > MAX_PENDING:
                self._lost = True
                self._pending.clear()

    def _lose(self) -> None:
        self._on_change("")
        with self._lock:
            self._lost = True
