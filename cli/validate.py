"""`podbus validate FILE...`: what `source` would say of manifests, without a node."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def validate(arguments: argparse.Namespace) -> int:
    """The command: 0 when no file has an error (warnings are told), 1 else."""
    from services.source.core.manifest import read_manifests

    failed = False
    for name in arguments.files:
        try:
            data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        except OSError as error:
            print(f"{name}: error: {error.strerror}")
            failed = True
            continue
        found = read_manifests(name, data, strict=arguments.strict)
        for problem in found.problems:
            print(problem.text() if problem.is_error else f"warning: {problem.text()}")
            failed = failed or problem.is_error
        if not any(problem.is_error for problem in found.problems):
            objects = ", ".join(f"{m.key.kind} {m.key.namespace}/{m.key.name}" for m in found.manifests)
            print(f"{name}: ok: {objects or 'no objects'}")
    sys.stdout.flush()
    return 1 if failed else os.EX_OK
