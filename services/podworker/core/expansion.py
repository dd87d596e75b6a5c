"""$(VAR) references in commands, arguments and environment values (lifecycle 7.1, 7.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by its value; unknown ones stay, `$$` is a `$`, and nothing is expanded twice."""
    parts: list[str] = []
    at = 0
    while True:
        dollar = text.find("$", at)
        if dollar < 0 or dollar == len(text) - 1:
            parts.append(text[at:])
            return "".join(parts)
        parts.append(text[at:dollar])
        piece, at = _reference(text, dollar, variables)
        parts.append(piece)


def _reference(text: str, dollar: int, variables: Mapping[str, str]) -> tuple[str, int]:
    """What stands for the `$` at that index and what follows it, and where to read on."""
    following = text[dollar + 1]
    if following == "$":
        return "$", dollar + 2
    if following != "(":
        return f"${following}", dollar + 2
    end = text.find(")", dollar + 2)
    if end < 0:
        return "$(", dollar + 2
    name = text[dollar + 2 : end]
    return variables.get(name, f"$({name})"), end + 1


def expand_all(texts: Iterable[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """`expand` for each of a command's or an argument list's items."""
    return tuple(expand(text, variables) for text in texts)
