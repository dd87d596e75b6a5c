"""The project's files as git has them, for tests that read code."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = ("shared", "services", "cli")


#: Not the project's: what tools leave behind. Without git (an archive, another owner's checkout) it must be known.
_LEFT_BEHIND = re.compile(r"(^|/)(\.(git|venv|cache|hypothesis|\w+_cache)|__pycache__|build|dist|[^/]+\.egg-info)(/|$)")


@cache
def tracked() -> tuple[Path, ...]:
    """Every file of the project, relative to its root."""
    names = _git_names() or [str(path.relative_to(ROOT)) for path in sorted(ROOT.rglob("*"))]
    return tuple(Path(name) for name in names if (ROOT / name).is_file() and not _LEFT_BEHIND.search(name))


def _git_names() -> list[str]:
    try:
        done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return [name for name in done.stdout.split("\0") if name]


def python_files(*tops: str) -> list[Path]:
    """Tracked Python files, below these directories of the root only."""
    return [path for path in tracked() if path.suffix == ".py" and (not tops or path.parts[0] in tops)]


def is_core(path: Path) -> bool:
    """What decides: the services' cores, the contracts, the Kubernetes vocabulary."""
    parts = path.parts
    return parts[:2] in (("shared", "contracts"), ("shared", "kube")) or (parts[0] == "services" and "core" in parts)


def text(path: Path) -> str:
    return (ROOT / path).read_text()


def parsed(path: Path) -> ast.Module:
    return ast.parse(text(path), str(path))
