"""Space and inodes of filesystems."""

from __future__ import annotations

import os

from services.stats.core.model import FilesystemUsage
from services.stats.core.parse_proc import parse_statvfs


class StatvfsFilesystems:
    """By statvfs(3)."""

    def usage(self, path: str) -> FilesystemUsage | None:
        """Of the filesystem that holds `path`; None when there is no such path."""
        try:
            found = os.statvfs(path)
        except OSError:
            return None
        return parse_statvfs(
            fragment_size=found.f_frsize,
            blocks=found.f_blocks,
            free=found.f_bfree,
            available=found.f_bavail,
            files=found.f_files,
            files_free=found.f_ffree,
        )
