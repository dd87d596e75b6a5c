"""The engine's log files: whole, from the end, since a time, over rotations, with lines that can't be read."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.podworker.adapters import json_log_file
from services.podworker.adapters.json_log_file import read_log
from shared.contracts.streams import LogOptions

LINES = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30), max_size=40)


def entry(text: str, second: int = 0, fraction: str = "") -> bytes:
    time = f"2026-12-01T00:00:{second:02d}{fraction}Z"
    return json.dumps({"log": text, "stream": "stdout", "time": time}).encode() + b"\n"


def read(path: Path, options: LogOptions) -> bytes:
    return b"".join(read_log(path, options))


@given(LINES, st.integers(0, 50), st.integers(1, 4))
def test_the_last_lines_are_the_last_lines_over_all_parts(lines: list[str], tail: int, parts: int) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "x-json.log"
        cut = len(lines) // parts
        for number in range(parts):
            part = lines[number * cut :] if number == parts - 1 else lines[number * cut : (number + 1) * cut]
            name = path if number == parts - 1 else path.with_name(f"{path.name}.{parts - 1 - number}")
            name.write_bytes(b"".join(entry(f"{line}\n") for line in part))
        whole = [f"{line}\n" for line in lines]
        assert read(path, LogOptions()) == "".join(whole).encode()
        last = whole[-tail:] if tail else []
        assert read(path, LogOptions(tail_lines=tail)) == "".join(last).encode()


def test_a_tail_is_found_over_blocks_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_log_file, "_TAIL_BLOCK_BYTES", 16)
    monkeypatch.setattr(json_log_file, "_BLOCK_BYTES", 32)
    path = tmp_path / "x-json.log"
    path.write_bytes(b"".join(entry(f"line {number}\n") for number in range(100)))
    assert read(path, LogOptions(tail_lines=3)) == b"line 97\nline 98\nline 99\n"
    assert read(path, LogOptions(tail_lines=1000)).count(b"\n") == 100


def test_since_leaves_older_entries_out(tmp_path: Path) -> None:
    path = tmp_path / "x-json.log"
    path.write_bytes(b"".join(entry(f"{second}\n", second, ".5") for second in range(10)))
    at_five = 1796083205.0  # 2026-12-01T00:00:05Z
    assert read(path, LogOptions(since=at_five)) == b"5\n6\n7\n8\n9\n"
    assert read(path, LogOptions(since=at_five + 0.75)) == b"6\n7\n8\n9\n"


def test_a_time_has_nine_digits_and_stands_before_whole_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "x-json.log"
    path.write_bytes(entry("long ", 1, ".25") + entry("line\n", 2) + entry("next\n", 3))
    assert read(path, LogOptions(timestamps=True)) == (
        b"2026-12-01T00:00:01.250000000Z long line\n2026-12-01T00:00:03.000000000Z next\n"
    )


def test_lines_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x-json.log"
    path.write_bytes(entry("a\n") + b"\0\0\0\n{half\n" + entry("b\n") + b'{"log": "not yet')
    assert read(path, LogOptions()) == b"a\nb\n"


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nothing", LogOptions())


def test_what_is_written_while_a_log_is_read_is_not_chased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_log_file, "_BLOCK_BYTES", 100)
    path = tmp_path / "x-json.log"
    path.write_bytes(b"".join(entry(f"{number}\n") for number in range(10)))
    shown = b""
    for piece in read_log(path, LogOptions()):
        shown += piece
        assert len(shown) < 100
        with path.open("ab") as file:
            file.write(b"".join(entry("more\n") for _ in range(10)))
    assert shown == b"".join(b"%d\n" % number for number in range(10))
