"""Rules of the code that no linter knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.tree import CODE, ROOT, is_core, parsed, python_files, text, tracked

LONGEST_FILE = 400
BANNED_NAMES = frozenset(("utils", "util", "helpers", "helper", "manager", "common", "misc", "base"))
IMPURE = frozenset(
    (
        "time.time",
        "time.time_ns",
        "time.monotonic",
        "time.monotonic_ns",
        "time.perf_counter",
        "time.sleep",
        "datetime.now",
        "datetime.utcnow",
        "datetime.today",
        "date.today",
        "uuid.uuid1",
        "uuid.uuid4",
        "uuid4",
        "os.urandom",
        "os.environ",
        "os.getenv",
    )
)
IMPURE_MODULES = frozenset(("random", "secrets", "time"))
# Spelt in parts, so that this file doesn't hold them.
LEFTOVERS = tuple(first + second for first, second in (("TO", "DO"), ("FIX", "ME"), ("XX", "X"), ("HA", "CK")))
OUTSIDE = tuple(first + second for first, second in (("/wo", "rk/"), ("../sha", "red"), ("/ho", "me/"), ("/ro", "ot/")))
BINARY = frozenset((".gz", ".png", ".db", ".tar"))


def test_no_file_is_longer_than_a_person_reads() -> None:
    """Split one that is by reason to change."""
    lengths = {path: len(text(path).splitlines()) for path in python_files()}
    assert {str(path): lines for path, lines in lengths.items() if lines > LONGEST_FILE} == {}


def test_every_module_says_why_it_exists() -> None:
    """Empty package files of tests need not."""
    missing = [
        str(path)
        for path in python_files()
        if (path.parts[0] in CODE or text(path).strip()) and not ast.get_docstring(parsed(path))
    ]
    assert missing == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    """A drawer for anything grows until nobody knows what is in it."""
    assert [str(path) for path in tracked() if BANNED_NAMES & {*path.parts[:-1], path.stem}] == []


def test_what_decides_is_told_the_time() -> None:
    """Time, chance and surroundings come in as arguments, so that a test can choose them."""
    assert [fault for path in python_files(*CODE) if is_core(path) for fault in _impure(path)] == []


def test_nothing_is_left_for_later_in_the_code() -> None:
    """What isn't done is in the README's limits, or isn't begun."""
    pattern = re.compile(r"\b(" + "|".join(LEFTOVERS) + r")\b")
    assert [fault for path in _texts() for fault in _lines_with(path, pattern)] == []


def test_nothing_names_a_place_on_somebodys_machine() -> None:
    """The project stands alone: it knows its own files, and the system's."""
    pattern = re.compile("|".join(map(re.escape, OUTSIDE)))
    assert [fault for path in _texts() for fault in _lines_with(path, pattern)] == []


def _impure(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Attribute | ast.Name) and _dotted(node) in IMPURE:
            yield f"{path}:{node.lineno}: {_dotted(node)}"
        elif isinstance(node, ast.Import):
            names = {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {node.module or ""}
        else:
            continue
        if isinstance(node, ast.Import | ast.ImportFrom) and names & IMPURE_MODULES:
            yield f"{path}:{node.lineno}: imports {', '.join(sorted(names & IMPURE_MODULES))}"


def _dotted(node: ast.expr) -> str:
    """`datetime.now` for any `x.datetime.now`; "" for what isn't a plain name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return ".".join(f"{_dotted(node.value)}.{node.attr}".split(".")[-2:])
    return ""


def _texts() -> Iterator[Path]:
    for path in tracked():
        # lock files hold hashes, recordings what another program said
        if path.suffix not in BINARY | {".lock"} and path.parts[:2] not in (("tests", "golden"), ("tests", "fixtures")):
            yield path


def _lines_with(path: Path, pattern: re.Pattern[str]) -> list[str]:
    lines = (ROOT / path).read_text(errors="replace").splitlines()
    return [f"{path}:{number}: {line.strip()[:80]}" for number, line in enumerate(lines, 1) if pattern.search(line)]
