"""Who lives and who holds which slot, told by the kernel: byte-range locks on one file that all workers share.

Open-file-description locks: the kernel drops them when the holder is gone, however it went, and keeps them while it is
stopped or hangs. Unlike POSIX locks they aren't lost when something else in the process closes the file. The file is
never unlinked: a new one would be another set of locks. Made after fork only, since a child shares its parent's locks.

Byte s (0..255) is slot s; byte 2^20 + i (i in 0..63) is worker i's membership.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import subprocess
import sys
from pathlib import Path

from shared.kube.ids import SLOTS

MEMBERS = 64
_MEMBER_BASE = 1 << 20
_TEST_BASE = 1 << 21
_TEST_BYTES = 4096
_FLOCK = "hhqqi4x"
"""struct flock on 64-bit Linux: type, whence, start, length, pid (which must be 0 for these locks)."""

_LOOK = """
import fcntl, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDWR)
ask = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, int(sys.argv[2]), 1, 0)
sys.exit(3 if struct.unpack("hhqqi4x", fcntl.fcntl(fd, fcntl.F_OFD_GETLK, ask))[0] == fcntl.F_UNLCK else 0)
"""
"""What the child of the self-test runs."""


class TooManyWorkers(Exception):
    """All member bytes are taken."""


class LocksUnusable(Exception):
    """The lock file doesn't lock: on this file system two workers could own one pod. The text says what to do."""


class OwnerLocks:
    """One worker's view of the lock file. Every call is a few system calls and never waits. Not for threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._index: int | None = None

    @property
    def identity(self) -> str:
        """Boot id, device and inode: two workers that show different ones do not share the file."""
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        facts = os.fstat(self._fd)
        return f"{boot}:{facts.st_dev}:{facts.st_ino}"

    @property
    def index(self) -> int | None:
        """Our member index, None before `join` and after `leave`."""
        return self._index

    def members(self) -> frozenset[int]:
        """The workers that live, ours included. Costs two system calls per other worker."""
        found = set() if self._index is None else {self._index}
        ranges = [(_MEMBER_BASE, _MEMBER_BASE + MEMBERS)]
        while ranges:
            start, end = ranges.pop()
            if start >= end:
                continue
            kind, _, held, length, _ = struct.unpack(
                _FLOCK, fcntl.fcntl(self._fd, fcntl.F_OFD_GETLK, _lock(fcntl.F_WRLCK, start, end - start))
            )
            if kind == fcntl.F_UNLCK:
                continue
            # the kernel names one lock of the range, any: what is left of it and right of it is asked again
            first = max(held, start)
            last = end if length == 0 else min(held + length, end)
            found.update(range(first - _MEMBER_BASE, last - _MEMBER_BASE))
            ranges += [(start, first), (last, end)]
        return frozenset(found)

    def join(self) -> int:
        """Take the first free member index and keep it. Raises TooManyWorkers."""
        if self._index is not None:
            return self._index
        for index in range(MEMBERS):
            if self._set(fcntl.F_WRLCK, _MEMBER_BASE + index):
                self._index = index
                return index
        raise TooManyWorkers(f"{MEMBERS} workers run already on {self.path}")

    def leave(self) -> None:
        """Give the member index back; held slots stay held."""
        if self._index is not None:
            self._set(fcntl.F_UNLCK, _MEMBER_BASE + self._index)
            self._index = None

    def acquire(self, slot: int) -> bool:
        """True when the slot's lock is ours now, False while another worker holds it."""
        return self._set(fcntl.F_WRLCK, _checked(slot))

    def release(self, slot: int) -> None:
        self._set(fcntl.F_UNLCK, _checked(slot))

    def close(self) -> None:
        """Drop everything."""
        os.close(self._fd)

    def self_test(self, *, workers: int | None) -> str | None:
        """Does a child process see a lock of ours as held? None when it does, else what is wrong.

        `workers`: how many may run; None = not known. Raises LocksUnusable when it fails and more than one may run:
        one worker alone needs no lock. Takes some 20 ms; before the event loop has work.
        """
        problem = self._problem()
        if problem is None or workers == 1:
            return problem
        raise LocksUnusable(
            f"{problem}: only one worker can run with this data directory."
            " Put it on a local file system that all workers mount from the same kernel, or use one worker"
        )

    def _problem(self) -> str | None:
        byte = -1
        try:
            # several workers may test at once: each takes a byte of its own
            byte = next((b for b in range(_TEST_BASE, _TEST_BASE + _TEST_BYTES) if self._set(fcntl.F_WRLCK, b)), -1)
            if byte < 0:
                return f"{self.path}: every byte for the self-test is locked"
            child = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _LOOK, str(self.path), str(byte)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=20,
                check=False,
            )
        except OSError as error:
            return f"{self.path}: the file system refuses byte-range locks ({error.strerror or error})"
        except subprocess.TimeoutExpired:
            return f"{self.path}: a child process could not look at the lock within 20 s"
        finally:
            if byte >= 0:
                self._set(fcntl.F_UNLCK, byte)
        if child.returncode == 3:
            return f"{self.path}: another process doesn't see our lock"
        if child.returncode != 0:
            text = child.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            return f"{self.path}: a child process can't look at the lock ({text or f'exit {child.returncode}'})"
        return None

    def _set(self, kind: int, start: int) -> bool:
        try:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _lock(kind, start, 1))
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True


def _lock(kind: int, start: int, length: int) -> bytes:
    return struct.pack(_FLOCK, kind, os.SEEK_SET, start, length, 0)


def _checked(slot: int) -> int:
    if not 0 <= slot < SLOTS:
        raise ValueError(f"slot {slot} is not in 0..{SLOTS - 1}")
    return slot
