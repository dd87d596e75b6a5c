"""Environment files in a pod's emptyDir (fileKeyRef): `KEY='value'`, single quotes, which may span lines."""

from __future__ import annotations

import re

from services.podworker.core.config_objects import ConfigError

_NAME = re.compile(r"([^=\s]+)(\s*)=")


def env_file_value(text: str, key: str) -> str | None:
    """The key's value, or None when the file doesn't have it.

    Blank lines and lines that begin with # are left out. A space after `=` makes the value empty. Raises ConfigError,
    which tells the line and never its text, for anything else that isn't `KEY='value'`; lines after the key are not
    read.
    """
    at, line = 0, 1
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        stripped = text[at:end].strip()
        if not stripped or stripped.startswith("#"):
            at, line = end + 1, line + 1
            continue
        name, value, after = _assignment(text, at, line)
        if name == key:
            return value
        line += text.count("\n", at, after)
        at = after
    return None


def _assignment(text: str, at: int, line: int) -> tuple[str, str, int]:
    """(name, value, where the next line begins)"""
    while text[at] in " \t\r":
        at += 1
    match = _NAME.match(text, at)
    if match is None:
        raise ConfigError(f"line {line}: expected KEY='value'")
    if match[2]:
        raise ConfigError(f"line {line}: no space may stand before =")
    begin = match.end()
    if begin >= len(text) or text[begin] in " \t\r\n":
        return match[1], "", _next_line(text, begin)
    if text[begin] != "'":
        raise ConfigError(f"line {line}: the value must be in single quotes")
    close = text.find("'", begin + 1)
    if close < 0:
        raise ConfigError(f"line {line}: the closing quote is missing")
    end = _next_line(text, close)
    rest = text[close + 1 : end].strip()
    if rest and not rest.startswith("#"):
        raise ConfigError(f"line {line}: nothing may follow the closing quote")
    return match[1], text[begin + 1 : close], end


def _next_line(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1
