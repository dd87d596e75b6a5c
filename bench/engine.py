"""The Engine API alone: plain HTTP over its socket, nothing between. What every pod start is compared with."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

from shared.runtime.settings import DEFAULT_SANDBOX_IMAGE

APP_IMAGE = "busybox:1.36"
APP_COMMAND = ["sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"]
AT_A_TIME = 4
"""Pods started side by side: 2 x cores here, as podworker does on two cores."""
_LABEL = "podbus.bench"


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=120)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class RawEngine:
    """One keep-alive connection per thread."""

    def __init__(self) -> None:
        self._path = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
        self._threads = threading.local()
        self._numbers = itertools.count(1)
        self._tag = f"{os.getpid():x}"

    def json(self, method: str, path: str, body: object = None) -> Any:
        """The answer. Raises RuntimeError with the engine's words."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        text = None if body is None else json.dumps(body)
        try:
            answer, data = self._ask(method, path, text, headers)
        except (ConnectionError, http.client.HTTPException):
            # the engine closes a connection that was idle for long
            self._threads.link = None
            answer, data = self._ask(method, path, text, headers)
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {data.decode(errors='replace').strip()}")
        return json.loads(data) if data.strip() else None

    def _ask(
        self, method: str, path: str, text: str | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        link: http.client.HTTPConnection | None = getattr(self._threads, "link", None)
        if link is None:
            link = self._threads.link = _UnixConnection(self._path)
        link.request(method, path, text, headers)
        answer = link.getresponse()
        return answer, answer.read()

    def start_pod(self) -> None:
        """Create and start a sandbox, create and start one container in it."""
        name = f"podbus-bench-{self._tag}-{next(self._numbers)}"
        labels = {_LABEL: self._tag}
        sandbox = self._run(
            f"{name}-sandbox",
            {
                "Image": DEFAULT_SANDBOX_IMAGE,
                "Labels": labels,
                "HostConfig": {"NetworkMode": "bridge", "IpcMode": "shareable"},
            },
        )
        joined = f"container:{sandbox}"
        self._run(
            f"{name}-app",
            {
                "Image": APP_IMAGE,
                "Cmd": APP_COMMAND,
                "Labels": labels,
                "HostConfig": {"NetworkMode": joined, "IpcMode": joined},
            },
        )

    def _run(self, name: str, body: dict[str, Any]) -> str:
        """Create and start one container; its id."""
        made: str = self.json("POST", f"/containers/create?name={name}", body)["Id"]
        self.json("POST", f"/containers/{made}/start")
        return made

    def start_pods(self, count: int, at_a_time: int = AT_A_TIME) -> float:
        """Seconds for `count` pods, `at_a_time` side by side."""
        with ThreadPoolExecutor(at_a_time) as pool:
            began = time.monotonic()
            for future in [pool.submit(self.start_pod) for _ in range(count)]:
                future.result()
            return time.monotonic() - began

    def remove_pods(self) -> None:
        """All that this object started."""
        self._remove(f"{_LABEL}={self._tag}")

    def remove_instance(self, instance: str) -> None:
        """Every container of one podbus instance."""
        self._remove(f"podbus.instance={instance}")

    def _remove(self, label: str) -> None:
        filters = _quoted(json.dumps({"label": [label]}))
        found = [one["Id"] for one in self.json("GET", f"/containers/json?all=1&filters={filters}")]
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            list(pool.map(lambda one: self.json("DELETE", f"/containers/{one}?force=1&v=1"), found))

    def events_of_others(self, since: float, until: float, instance: str) -> int:
        """Container events of anybody but that instance (the engine remembers the last 256): others at work."""
        filters = _quoted(json.dumps({"type": ["container"]}))
        link = _UnixConnection(self._path)
        link.request("GET", f"/events?since={since:.3f}&until={until:.3f}&filters={filters}")
        lines = link.getresponse().read().splitlines()
        link.close()
        labels = [json.loads(line).get("Actor", {}).get("Attributes", {}) for line in lines if line.strip()]
        return sum(one.get("podbus.instance") != instance for one in labels)


def _quoted(text: str) -> str:
    return quote(text, safe="")
