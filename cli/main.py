"""The `podbus` command: arguments here, the work in modules that are imported only when asked for."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

DEFAULT_DATA = "/var/lib/podbus"


def main(argv: Sequence[str] | None = None) -> int:
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if not hasattr(arguments, "run"):
        parser.print_help()
        return 0
    module, _, function = arguments.run.partition(":")
    try:
        code: int = getattr(importlib.import_module(module), function)(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `podbus logs x | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    return code


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="podbus")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    up = commands.add_parser("up", help="start the node")
    up.add_argument("--config")
    up.add_argument("--data")
    up.add_argument("--manifests")
    up.add_argument("--port")
    up.add_argument("--workers")
    up.add_argument("--hostname-override")
    up.add_argument("--detach", action="store_true")
    up.set_defaults(run="cli.up:up")
    token = commands.add_parser("token", help="print a bearer token")
    token.add_argument("--data", default=os.environ.get("PODBUS_DATA") or DEFAULT_DATA)
    token.add_argument("--user")
    token.add_argument("--role", choices=("admin", "view", "metrics"))
    token.set_defaults(run="cli.tokens:token")
    return parser


if __name__ == "__main__":
    sys.exit(main())
