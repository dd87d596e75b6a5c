"""The engine's json-file logs, read where they lie: through the engine's own API they come at a tenth of the speed.

Each line of a file is `{"log": TEXT, "stream": ..., "time": RFC 3339}`; older parts are FILE.1, FILE.2, ... Blocking.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from shared.contracts.streams import LogOptions

_BLOCK_BYTES = 1 << 20
_TAIL_BLOCK_BYTES = 64 << 10
_NANOSECOND_DIGITS = 9


class _Entry(msgspec.Struct):
    log: str
    time: str = ""


_decoder = msgspec.json.Decoder(_Entry)


def read_log(path: Path, options: LogOptions) -> Iterator[bytes]:
    """The log's bytes in pieces, oldest first, stdout and stderr as written. `follow` and `limit_bytes` are the
    caller's matter. What is written meanwhile isn't waited for: a reader would chase a writer as fast as itself for
    ever. Raises OSError when the file isn't there or may not be read."""
    with ExitStack() as stack:
        files = [stack.enter_context(file) for file in _open_parts(path)]
        if options.tail_lines is not None:
            files = _at_tail(files, options.tail_lines)
        ends = {file: os.fstat(file.fileno()).st_size for file in files}
        since = _as_text(options.since) if options.since is not None else ""
        for file in files:
            yield from _pieces(file, ends[file], since, with_times=options.timestamps)


def _open_parts(path: Path) -> list[BinaryIO]:
    """All parts, oldest first. Opened newest first: what a rotation renames meanwhile is then found twice rather than
    not at all, and a part that was seen before is left out."""
    found: list[BinaryIO] = [path.open("rb")]
    seen = {os.fstat(found[0].fileno()).st_ino}
    number = 1
    while True:
        try:
            part = path.with_name(f"{path.name}.{number}").open("rb")
        except FileNotFoundError:
            break
        inode = os.fstat(part.fileno()).st_ino
        if inode in seen:
            part.close()
        else:
            seen.add(inode)
            found.append(part)
        number += 1
    return found[::-1]


def _at_tail(files: Sequence[BinaryIO], lines: int) -> list[BinaryIO]:
    """The files that hold the last lines, the first of them placed at where these begin."""
    wanted: list[BinaryIO] = []
    for file in reversed(files):
        if lines <= 0:
            break
        place, found = _place_of_tail(file, lines)
        file.seek(place)
        wanted.insert(0, file)
        lines -= found
    return wanted


def _place_of_tail(file: BinaryIO, lines: int) -> tuple[int, int]:
    """(where the last lines begin, how many there are at most). Reads from the end, however long the file is."""
    end = place = file.seek(0, os.SEEK_END)
    count = 0
    while place > 0:
        start = max(0, place - _TAIL_BLOCK_BYTES)
        file.seek(start)
        block = file.read(place - start)
        at = len(block) if place < end else len(block.rstrip(b"\n"))  # the last line's own end doesn't begin one
        while (at := block.rfind(b"\n", 0, at)) >= 0:
            count += 1
            if count == lines:
                return start + at + 1, lines
        place = start
    return 0, count + 1 if end else 0


def _pieces(file: BinaryIO, end: int, since: str, *, with_times: bool) -> Iterator[bytes]:
    """From where the file stands up to `end`."""
    rest = b""
    begins_line = True
    left = end - file.tell()
    while left > 0 and (block := file.read(min(left, _BLOCK_BYTES))):
        left -= len(block)
        whole, newline, after = block.rpartition(b"\n")
        if not newline:
            rest += block
            continue
        entries = _entries(rest + whole)
        rest = after
        if since:
            entries = [entry for entry in entries if entry.time.rstrip("Z") >= since]
        if not with_times:
            text = "".join([entry.log for entry in entries])
        else:
            text, begins_line = _with_times(entries, begins_line)
        if text:
            yield text.encode("utf-8", "surrogatepass")


def _entries(lines: bytes) -> list[_Entry]:
    """What can't be read (a crash of the machine leaves such lines) is left out."""
    try:
        return _decoder.decode_lines(lines)
    except msgspec.MsgspecError:
        found = []
        for line in lines.split(b"\n"):
            try:
                found.append(_decoder.decode(line))
            except msgspec.MsgspecError:
                continue
        return found


def _with_times(entries: Sequence[_Entry], begins_line: bool) -> tuple[str, bool]:
    """A time before each line; a long line comes as several entries and has one."""
    parts: list[str] = []
    for entry in entries:
        if begins_line:
            parts.append(f"{_nine_digits(entry.time)} ")
        parts.append(entry.log)
        begins_line = entry.log.endswith("\n")
    return "".join(parts), begins_line


def _nine_digits(time: str) -> str:
    """`...:05.12Z` -> `...:05.120000000Z`."""
    head, _, part = time.rstrip("Z").partition(".")
    return f"{head}.{part.ljust(_NANOSECOND_DIGITS, '0')}Z"


def _as_text(seconds: float) -> str:
    """Comparable with the entries' times without their Z."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
