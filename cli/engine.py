"""The few questions to Docker Engine that set-up and clean-up have, over its UNIX socket by http.client.

The `docker` package is podworker's; it would cost `podbus up`'s parent 20 MiB.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

API_NEEDED = (1, 41)


class EngineError(Exception):
    """The engine doesn't answer, or refuses; `status` is 0 when it didn't answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Engine:
    """One engine by its address, `unix:///var/run/docker.sock`. Each call is a connection of its own."""

    def __init__(self, address: str) -> None:
        self._path = address.removeprefix("unix://")
        self.address = address

    def call(self, method: str, path: str, query: Mapping[str, object] | None = None, *, timeout: float = 10.0) -> Any:
        """The decoded answer, None for an empty one. Raises EngineError."""
        if not self.address.startswith("unix://"):
            raise EngineError(f"{self.address} is not a UNIX socket: the pods must run on this machine")
        target = path + (f"?{urlencode(query)}" if query else "")
        link = _UnixConnection(self._path, timeout)
        try:
            link.request(method, target)
            answer = link.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise EngineError(f"{self.address}: {str(reason).lower()}") from error
        finally:
            link.close()
        if answer.status >= 400:
            try:
                message = json.loads(body)["message"]
            except (ValueError, KeyError, TypeError):
                message = body.decode(errors="replace").strip()
            raise EngineError(message, answer.status)
        if not body:
            return None
        try:
            return json.loads(body)
        except ValueError as error:
            raise EngineError(f"{self.address} is no Docker Engine: it doesn't answer with JSON") from error

    def api_version(self) -> tuple[int, int]:
        text = str(self.call("GET", "/version").get("ApiVersion", "0.0"))
        major, _, minor = text.partition(".")
        return int(major), int(minor or 0)

    def has_image(self, name: str) -> bool:
        try:
            self.call("GET", f"/images/{quote(name, safe='/:@')}/json")
        except EngineError as error:
            if error.status == 404:
                return False
            raise
        return True

    def containers(self, label: str) -> list[dict[str, Any]]:
        """All with this `key=value` label, running or not, as the engine lists them."""
        query = {"all": "1", "filters": json.dumps({"label": [label]})}
        found: list[dict[str, Any]] = self.call("GET", "/containers/json", query, timeout=60)
        return found

    def inspect(self, container: str) -> dict[str, Any]:
        found: dict[str, Any] = self.call("GET", f"/containers/{container}/json")
        return found

    def stop(self, container: str, grace_seconds: int) -> None:
        """Its stop signal, then SIGKILL after the grace. Gone or stopped already is success."""
        query = {"t": str(grace_seconds)}
        self._gone_is_fine("POST", f"/containers/{container}/stop", query, grace_seconds + 30.0)

    def remove(self, container: str) -> None:
        """With its anonymous volumes, whatever its state. Gone already is success."""
        self._gone_is_fine("DELETE", f"/containers/{container}", {"force": "1", "v": "1"}, 60.0)

    def _gone_is_fine(self, method: str, path: str, query: Mapping[str, object], timeout: float) -> None:
        try:
            self.call(method, path, query, timeout=timeout)
        except EngineError as error:
            if error.status not in (304, 404, 409):
                raise
