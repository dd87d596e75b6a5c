"""A manifest directory (or one file): read whole, and watched by inotify as a hint."""

from __future__ import annotations

import asyncio
import logging
import stat
import time
from pathlib import Path

from inotify_simple import INotify, flags  # type: ignore[import-untyped]

from services.source.core.documents import MAX_FILE_BYTES
from services.source.core.files import EntryKind, SkippedFile, skip_reason
from services.source.core.merge import Listing

log = logging.getLogger("podbus.source.directory")

_MASK = (
    flags.CLOSE_WRITE
    | flags.CREATE
    | flags.MOVED_TO
    | flags.MOVED_FROM
    | flags.DELETE
    | flags.ATTRIB
    | flags.DELETE_SELF
    | flags.MOVE_SELF
)
_SETTLE_SECONDS = 0.01
"""An editor's or cp's burst of events is one change."""


FRESH_SECONDS = 1.0
"""A file that was written to within this time may be half written; one from the future is taken as it is."""


class ManifestDirectory:
    """Manifests (services.source.ports) of `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.origin = str(path)
        self._inotify: INotify | None = None
        self._watched = path
        self._watched_inode = (0, 0)
        self._woken = asyncio.Event()

    def listing(self) -> Listing:
        self._follow()
        try:
            kind = self._path.stat().st_mode
            if stat.S_ISREG(kind):
                return self._read([self._path])
            if not stat.S_ISDIR(kind):
                return Listing(
                    origin=self.origin, missing=True, error=f"{self.origin} is neither a directory nor a file"
                )
            return self._read(sorted(self._path.iterdir()))
        except FileNotFoundError:
            return Listing(origin=self.origin, missing=True, error=f"{self.origin} does not exist")
        except OSError as error:
            return Listing(origin=self.origin, missing=True, error=f"{self.origin} cannot be read: {error.strerror}")

    def _read(self, paths: list[Path]) -> Listing:
        files: dict[str, bytes] = {}
        unreadable: dict[str, str] = {}
        skipped: list[SkippedFile] = []
        fresh: set[str] = set()
        now = time.time()
        for path in paths:
            try:
                kind = _kind(path)
                if path != self._path and (reason := skip_reason(path.name, kind)):
                    skipped.append(SkippedFile(str(path), reason))
                elif path.stat().st_size > MAX_FILE_BYTES:
                    unreadable[str(path)] = f"larger than {MAX_FILE_BYTES >> 20} MiB"
                else:
                    files[str(path)] = path.read_bytes()
                    if abs(now - path.stat().st_mtime) < FRESH_SECONDS:
                        fresh.add(str(path))
            except FileNotFoundError:
                if path.is_symlink():
                    unreadable[str(path)] = "the symbolic link points nowhere"
                continue  # gone between the listing and now
            except OSError as error:
                unreadable[str(path)] = error.strerror or str(error)
        return Listing(
            origin=self.origin, files=files, unreadable=unreadable, fresh=frozenset(fresh), skipped=tuple(skipped)
        )

    async def changed(self) -> None:
        """Without inotify it's the caller's period that finds changes."""
        await self._woken.wait()
        await asyncio.sleep(_SETTLE_SECONDS)
        self._woken.clear()

    def _follow(self) -> None:
        """Watch the directory, or while there is none its nearest parent, in which it may appear. Before a listing, so
        that nothing falls between the two."""
        place = self._path
        while not place.is_dir() and place != place.parent:
            place = place.parent
        try:
            seen = place.stat()
        except OSError:
            return  # gone just now: the next listing follows
        inode = (seen.st_dev, seen.st_ino)  # a link may name another directory now, and a mount may lie on it
        if self._inotify is not None and (self._watched, self._watched_inode) == (place, inode):
            return
        self.close()
        inotify = INotify(nonblocking=True)
        try:
            inotify.add_watch(place, _MASK)
        except OSError as error:
            log.debug("no inotify path=%s error=%s", place, error)
            inotify.close()
            return
        self._inotify, self._watched, self._watched_inode = inotify, place, inode
        asyncio.get_running_loop().add_reader(inotify.fileno(), self._readable)

    def _readable(self) -> None:
        assert self._inotify is not None
        for event in self._inotify.read(timeout=0):
            if event.mask & (flags.DELETE_SELF | flags.MOVE_SELF | flags.IGNORED):
                self.close()
                self._woken.set()
                return
            if self._concerns_us(event.name):
                self._woken.set()

    def _concerns_us(self, name: str) -> bool:
        """In our own directory everything does; above it only the way to it."""
        if self._watched == self._path:
            return True
        return name == self._path.relative_to(self._watched).parts[0]

    def close(self) -> None:
        if self._inotify is not None:
            asyncio.get_running_loop().remove_reader(self._inotify.fileno())
            self._inotify.close()
            self._inotify = None


def _kind(path: Path) -> EntryKind:
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        return EntryKind.DIRECTORY
    return EntryKind.FILE if stat.S_ISREG(mode) else EntryKind.OTHER
