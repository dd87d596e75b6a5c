"""The configuration of the node's own nats-server: loopback, accounts, one user per service, a small store."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from shared.contracts.acl import Permissions, all_permissions
from shared.kube.ids import subject_token

MAX_PAYLOAD = "4MB"
"""etcd lets an object have 1.5 MiB; the server's own default of 1 MiB is too small."""
_SYNC_INTERVAL_SINCE = (2, 10, 0)
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


def find_server() -> str | None:
    """The path of nats-server: on PATH, or where Debian puts it."""
    return shutil.which("nats-server") or shutil.which("nats-server", path=_SBIN)


def server_version(binary: str) -> tuple[int, int, int] | None:
    """(2, 9, 10), or None when it doesn't say."""
    try:
        answer = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"v?(\d+)\.(\d+)\.(\d+)", answer.stdout)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def render(
    *,
    host: str,
    port: int,
    node: str,
    store: Path,
    passwords: Mapping[str, str],
    version: tuple[int, int, int] | None = None,
) -> str:
    """The text of nats.conf. `passwords`: by user. `version`: of the server, None = unknown, then only options that
    every server since 2.9 knows are written.

    Users are in accounts only: a top-level authorization beside a system account lets anybody in on servers before
    2.9.23 (CVE-2023-47090).
    """
    token = subject_token(node)
    store_options = [
        f"  store_dir: {_quoted(str(store))}",
        f"  domain: {_quoted(token)}",
        "  max_memory_store: 32MB",
        "  max_file_store: 1GB",
    ]
    if version is not None and version >= _SYNC_INTERVAL_SINCE:
        store_options.append('  sync_interval: "10s"')
    granted = all_permissions(node)
    users = "\n".join(_user(name, passwords[name], granted[name]) for name in granted if name in passwords)
    return "\n".join(
        [
            "# Written by podbus at each start; changes are lost. `podbus nats-config` prints it.",
            f"listen: {_quoted(f'{host}:{port}')}",
            f"server_name: {_quoted(token)}",
            f"max_payload: {MAX_PAYLOAD}",
            'write_deadline: "5s"',
            "jetstream {",
            *store_options,
            "}",
            "system_account: SYS",
            "accounts {",
            "  SYS {}",
            "  PODBUS {",
            "    jetstream: enabled",
            "    users: [",
            users,
            "    ]",
            "  }",
            "}",
            "",
        ]
    )


def _user(name: str, password: str, granted: Permissions) -> str:
    return "\n".join(
        [
            f"      {{user: {_quoted(name)}, password: {_quoted(password)}, permissions: {{",
            f"        publish: {{allow: {_list(granted.publish)}{_denied(granted.never_publish)}}}",
            f"        subscribe: {{allow: {_list(granted.subscribe)}{_denied(granted.never_subscribe)}}}",
            '        allow_responses: {max: 4, expires: "30s"}',
            "      }}",
        ]
    )


def _denied(subjects: tuple[str, ...]) -> str:
    return f", deny: {_list(subjects)}" if subjects else ""


def _list(subjects: tuple[str, ...]) -> str:
    return "[" + ", ".join(_quoted(subject) for subject in subjects) + "]"


def _quoted(text: str) -> str:
    """A string of the server's configuration, which knows fewer escapes than JSON: other bytes as \\xXX."""
    return '"' + "".join(_ESCAPED.get(byte) or chr(byte) for byte in os.fsencode(text)) + '"'


_ESCAPED = {byte: f"\\x{byte:02X}" for byte in (*range(0x20), *range(0x7F, 0x100))} | {
    ord('"'): '\\"',
    ord("\\"): "\\\\",
}
