"""How many files and connections a process may have open."""

from __future__ import annotations

import logging
import resource

log = logging.getLogger("podbus.service")


def raise_file_limit() -> int:
    """Raise this process' soft limit of open files to the hard one; the limit that holds now. The usual 1024
    is little for three files of each of three hundred cgroups, or for hundreds of clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:
            log.info("the limit of open files stays: soft=%d hard=%d error=%s", soft, hard, error)
            return soft
    return hard
