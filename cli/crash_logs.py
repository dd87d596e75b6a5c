"""The last words of containers that crashed, for `podbus describe pod`: asked of the log API, never kept anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cli.client import Client, ClientError

MOST_LINES = 10
_MOST_BYTES = 16 << 10
_MOST_IN_LINE = 500
_KINDS = ("initContainerStatuses", "containerStatuses")


def crashed(pod: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """(container, whether its previous run is meant) of all that ended with an error, or end again and again."""
    status = pod.get("status") or {}
    for one in (one for kind in _KINDS for one in status.get(kind) or []):
        state, last = one.get("state") or {}, (one.get("lastState") or {}).get("terminated")
        ended = state.get("terminated")
        if ended is not None and ended.get("exitCode"):
            yield one["name"], False
        elif last is not None and (
            last.get("exitCode") or (state.get("waiting") or {}).get("reason") == "CrashLoopBackOff"
        ):
            yield one["name"], True


def last_words(client: Client, pod: Mapping[str, Any]) -> dict[str, list[str]]:
    """Container -> its last lines, or why they can't be had. Without those that said nothing."""
    meta, found = pod["metadata"], {}
    for name, previous in crashed(pod):
        query = {"tailLines": str(MOST_LINES), "limitBytes": str(_MOST_BYTES)}
        if previous:
            query["previous"] = "true"
        path = f"/containerLogs/{meta['namespace']}/{meta['name']}/{name}"
        try:
            text = b"".join(client.stream(path, query, timeout=10.0))
        except ClientError as error:
            found[name] = [f"<{error}>"]
            continue
        if lines := [shown(line) for line in text.decode(errors="replace").split("\n") if line.strip()]:
            found[name] = lines
    return found


def shown(line: str) -> str:
    """Without what would move the terminal's cursor or change its colours."""
    text = "".join(
        char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line.rstrip("\r").expandtabs()
    )
    return text if len(text) <= _MOST_IN_LINE else f"{text[:_MOST_IN_LINE]}..."
