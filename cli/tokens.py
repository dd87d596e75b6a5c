"""`<data>/pki/tokens.csv`: bearer tokens of the local API, in the form of Kubernetes' static token file.

Each line is token,user,uid,"group,group". `podbus token` prints the admin's, or makes another.
"""

from __future__ import annotations

import argparse
import csv
import io
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path

from cli.private_files import write_private
from shared.runtime.filelock import FileLock
from shared.runtime.paths import DataPaths

ROLES = ("admin", "view", "metrics")
ADMIN_GROUP = "podbus:admin"
ADMIN_USER = "podbus-admin"


@dataclass(frozen=True)
class Token:
    token: str
    user: str
    uid: str
    groups: tuple[str, ...]


def read_tokens(path: Path) -> list[Token]:
    """Raises FileNotFoundError. Lines with fewer than three fields are left out."""
    with path.open(newline="") as file:
        rows = [row for row in csv.reader(file) if len(row) >= 3]
    return [
        Token(row[0], row[1], row[2], tuple(part for part in (row[3] if len(row) > 3 else "").split(",") if part))
        for row in rows
    ]


def admin_token(paths: DataPaths) -> str:
    """The admin's token; made when there is none. The caller holds no lock on the file."""
    return token_for(paths, ADMIN_USER, "admin")


def token_for(paths: DataPaths, user: str, role: str) -> str:
    """The user's token with just this role; made and written when there is none. Raises OSError."""
    path = paths.pki / "tokens.csv"
    group = f"podbus:{role}"
    with FileLock(paths.pki / ".tokens.lock"):
        known = read_tokens(path) if path.exists() else []
        for entry in known:
            if entry.user == user and entry.groups == (group,):
                return entry.token
        made = Token(secrets.token_urlsafe(32), user, user, (group,))
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        for entry in [*known, made]:
            writer.writerow([entry.token, entry.user, entry.uid, ",".join(entry.groups)])
        write_private(path, out.getvalue())
    return made.token


def token(arguments: argparse.Namespace) -> int:
    """`podbus token [--user U] [--role R]`"""
    paths = DataPaths(Path(arguments.data))
    role = arguments.role or "admin"
    user = arguments.user or (ADMIN_USER if role == "admin" else f"podbus-{role}")
    try:
        if not paths.pki.is_dir():
            sys.stderr.write(f"podbus: {paths.pki} is missing: `podbus up` or `podbus init` makes it\n")
            return 1
        print(token_for(paths, user, role))
    except PermissionError:
        sys.stderr.write(f"podbus: {paths.pki} may be read by root only\n")
        return 1
    return 0
