"""Secrets' values out of a text that a container wrote, before it becomes a part of a status."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "***"
SHORTEST = 3
"""What is shorter stays: it would hide nothing and tear the text to pieces."""


def masked(text: str, values: Iterable[str]) -> str:
    """The text with each value, and each line of a longer one, replaced."""
    parts = {part for value in values for part in (value.strip(), *map(str.strip, value.splitlines()))}
    hidden = sorted((part for part in parts if len(part) >= SHORTEST), key=len, reverse=True)
    return re.sub("|".join(map(re.escape, hidden)), MASK, text) if hidden else text
