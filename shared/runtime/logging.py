"""Logs: one line an entry, to standard error; the supervisor puts them into rotated files."""

from __future__ import annotations

import logging
import sys
import time


class _Line(logging.Formatter):
    def __init__(self, process: str) -> None:
        super().__init__(f"%(asctime)s.%(msecs)03dZ %(levelname)s {process} %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:
        return super().formatMessage(record).replace("\n", "\\n")


def set_up_logging(process: str, level: str = "INFO") -> None:
    """All loggers to standard error, as `time LEVEL process logger message`, UTC."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Line(process))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("podbus").setLevel(level.upper())
