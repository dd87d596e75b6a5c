"""A container's log as it's written, and its exit code: known also when the container is gone."""

from __future__ import annotations

import subprocess
from datetime import datetime
from pathlib import Path

from tests.support.node import Node


class LogFollower:
    """`docker logs --follow` and `docker wait` of one container in the background."""

    def __init__(self, path: Path, container_id: str) -> None:
        self._path = path
        with path.open("wb") as out:
            self._process = subprocess.Popen(
                ["docker", "logs", "--follow", "--timestamps", container_id], stdout=out, stderr=subprocess.DEVNULL
            )
        self._waiting = subprocess.Popen(["docker", "wait", container_id], stdout=subprocess.PIPE, text=True)

    def lines(self) -> list[str]:
        return [text for _, text in self._entries()]

    def at(self, line: str) -> float:
        """When it was first said; seconds since the epoch. Raises AssertionError: not yet."""
        for instant, text in self._entries():
            if text == line:
                return instant
        raise AssertionError(f"{line!r} isn't among {self.lines()}")

    def has_ended(self) -> bool:
        """The container has, and all it said is here."""
        return self._process.poll() is not None

    def exit_code(self) -> int:
        """Once it has ended."""
        said, _ = self._waiting.communicate(timeout=10)
        return int(said)

    def close(self) -> None:
        for process in (self._process, self._waiting):
            process.kill()
            process.wait(10)

    def _entries(self) -> list[tuple[float, str]]:
        found = []
        for line in self._path.read_text(errors="replace").splitlines(keepends=True):
            if line.endswith("\n"):
                instant, _, text = line.rstrip("\r\n").partition(" ")
                found.append((datetime.fromisoformat(instant[:26] + "+00:00").timestamp(), text))
        return found


def follow(node: Node, pod: str, container: str, directory: Path) -> LogFollower:
    """Of the container's newest instance."""
    status = node.pod(pod)["status"]
    statuses = [*status.get("initContainerStatuses", []), *status["containerStatuses"]]
    (container_id,) = (s["containerID"].removeprefix("docker://") for s in statuses if s["name"] == container)
    return LogFollower(directory / f"{pod}-{container}.log", container_id)
