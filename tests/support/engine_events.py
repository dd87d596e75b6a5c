"""Docker's own events of one instance's containers: a witness that podbus doesn't steer."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

from shared.kube import names


class EngineEvents:
    """`docker events` in the background; `record` gives what engine_record.py reads."""

    def __init__(self, path: Path, instance: str) -> None:
        self._path = path
        with path.open("wb") as out:
            self._process = subprocess.Popen(
                [
                    *("docker", "events", "--format", "{{json .}}", "--since", "0"),
                    *("--filter", "type=container", "--filter", f"label={names.LABEL_INSTANCE}={instance}"),
                    *("--filter", "event=start", "--filter", "event=die"),
                ],
                stdout=out,
            )

    def record(self) -> str:
        return as_record(self._path.read_text().splitlines(keepends=True))

    def close(self) -> None:
        self._process.kill()
        self._process.wait(10)


def as_record(lines: Iterable[str]) -> str:
    """Events as lines of a record. The version is the number in the container's name in the spec: `v7`. Sandboxes are
    left out; an event of a container that was not seen to start, too."""
    record = []
    seen: set[str] = set()
    for line in lines:
        if not line.endswith("\n"):
            continue
        event = json.loads(line)
        labels = event["Actor"]["Attributes"]
        if labels.get(names.LABEL_DOCKER_TYPE) == names.TYPE_SANDBOX:
            continue
        mark = "+" if event["Action"] == "start" else "-"
        if mark == "+":
            seen.add(event["id"])
        elif event["id"] not in seen:
            continue
        else:
            seen.discard(event["id"])
        pod = f"{labels[names.LABEL_POD_NAMESPACE]}/{labels[names.LABEL_POD_NAME]}"
        version = labels[names.LABEL_CONTAINER_NAME].removeprefix("v")
        record.append(f"{event['timeNano']} {mark} {pod} {labels[names.LABEL_POD_UID]} {event['id']} {version}\n")
    return "".join(record)
