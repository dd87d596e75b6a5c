"""The engine's log answers, cut into what one message of a container was."""

from __future__ import annotations

from collections import deque
from typing import Any

from shared.contracts.streams import LogOptions

_TTY_BYTES = 65536
_REMEMBERED_LINES = 64
"""One line comes again mostly, two came once: a bound far above both."""


def open_log(client: Any, container_id: str, options: LogOptions, *, timestamps: bool) -> tuple[Any, bool]:
    """(a closable iterator over its frames, whether they are the raw bytes of a terminal). Raises APIError.

    `client`: an APIClient by its inner methods, for its `logs` hands a terminal's output on byte by byte.
    """
    from docker.types import CancellableStream

    is_tty = bool(client._check_is_tty(container_id))
    query: dict[str, Any] = {
        "stdout": 1,
        "stderr": 1,
        "follow": int(options.follow),
        "timestamps": int(timestamps),
        "tail": "all" if options.tail_lines is None else str(options.tail_lines),
    }
    if options.since is not None:
        query["since"] = f"{options.since:.9f}"
    url = client._url("/containers/{0}/logs", container_id)
    answer = client._get(url, params=query, stream=True)
    client._raise_for_status(answer)
    frames = (
        client._stream_raw_result(answer, _TTY_BYTES) if is_tty else client._multiplexed_response_stream_helper(answer)
    )
    return CancellableStream(frames, answer), is_tty


class EachLineOnce:
    """Engine 20.10 gives the last lines of a followed log again when the log is rotated. A line is told from one that
    says the same by its time, so the frames must carry them; they are taken off again unless they are wanted."""

    def __init__(self, *, with_times: bool) -> None:
        self._with_times = with_times
        self._recent: deque[int] = deque(maxlen=_REMEMBERED_LINES)
        """Hashes of the last lines: a line may be long."""

    def take(self, frame: bytes) -> bytes:
        """What is to be handed on; b"" = nothing. A part of a longer line always is."""
        if frame.endswith(b"\n"):
            mark = hash(frame)
            if mark in self._recent:
                return b""
            self._recent.append(mark)
        return frame if self._with_times else frame.partition(b" ")[2]
