"""tokens.csv, in the form of Kubernetes' static token file: `token,user,uid,"group1,group2"`."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from hashlib import blake2b

from services.api.core.access import AUTHENTICATED, Identity


class Tokens:
    """The identities by the keyed hash of their tokens: a lookup takes the same time however much is guessed,
    and no token stays in memory."""

    def __init__(self, by_digest: Mapping[bytes, Identity], key: bytes) -> None:
        self._by_digest = by_digest
        self._key = key

    def __len__(self) -> int:
        return len(self._by_digest)

    def find(self, token: str) -> Identity | None:
        return self._by_digest.get(_digest(token, self._key))


def parse_tokens(text: str, key: bytes) -> tuple[Tokens, list[str]]:
    """(the usable lines, one sentence for each other line, without its token). `key`: random bytes."""
    found: dict[bytes, Identity] = {}
    problems: list[str] = []
    reader = csv.reader(text.splitlines())
    try:
        for row in reader:
            fields = [field.strip() for field in row]
            if not any(fields) or fields[0].startswith("#"):
                continue
            if len(fields) < 3 or not fields[0] or not fields[1]:
                problems.append(f'line {reader.line_num}: needs token,user,uid and may have "group1,group2"')
                continue
            groups = [group.strip() for group in fields[3].split(",")] if len(fields) > 3 else []
            digest = _digest(fields[0], key)
            if digest in found:
                problems.append(f"line {reader.line_num}: the same token as an earlier line's, ignored")
                continue
            found[digest] = Identity(fields[1], (*filter(None, groups), AUTHENTICATED), fields[2])
    except csv.Error as error:
        problems.append(f"line {reader.line_num}: {error}")
    return Tokens(found, key), problems


def _digest(token: str, key: bytes) -> bytes:
    return blake2b(token.encode("utf-8", "surrogateescape"), key=key, digest_size=32).digest()
