"""Prometheus' text format 0.0.4, written by hand: cAdvisor's names don't follow the rules that libraries enforce
(a counter without `_total`), and a page has ten thousand lines.

Numbers are written in full where Go would take an exponent; parsers read both alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Family = tuple[str, str]
"""Type and help."""

_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})


def escaped(value: str) -> str:
    """A label's value."""
    return value.translate(_ESCAPES) if '"' in value or "\\" in value or "\n" in value else value


def labels(pairs: Mapping[str, str]) -> str:
    """Sorted by name, in braces; "" for none."""
    if not pairs:
        return ""
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in sorted(pairs.items())) + "}"


def seconds(nanoseconds: int) -> float:
    return nanoseconds / 1e9


class Page:
    """Lines by family. Only what `families` declares can be told."""

    def __init__(self, families: Mapping[str, Family]) -> None:
        self._families = families
        self.lines: dict[str, list[str]] = {name: [] for name in families}

    def add(self, name: str, pairs: Mapping[str, str], value: float, at: float | None = None) -> None:
        """One sample; `at` seconds since the epoch, written in milliseconds."""
        stamp = "" if at is None else f" {int(at * 1000)}"
        self.lines[name].append(f"{name}{labels(pairs)} {value}{stamp}\n")

    def encoded(self) -> bytes:
        """Sorted by name; a family without a sample isn't there. Once: the lines are used up."""
        return b"".join(self._parts())

    def _parts(self) -> Iterable[bytes]:
        """Family by family: the page is megabytes long, and needn't be there three times."""
        for name in sorted(self._families):
            lines = self.lines.pop(name)
            if lines:
                kind, told = self._families[name]
                yield f"# HELP {name} {told}\n# TYPE {name} {kind}\n{''.join(lines)}".encode()
