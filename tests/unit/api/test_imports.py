"""Memory counts: what the API loads."""

from __future__ import annotations

import subprocess
import sys


def test_nothing_heavy_of_others_is_imported() -> None:
    """Docker and the databases belong to others; cryptography is for the set-up only."""
    heavy = (
        "docker",
        "sqlalchemy",
        "alembic",
        "cryptography",
        "kubernetes",
        "inotify_simple",
        "requests",
        "h11",
        "websockets",
    )
    program = f"import sys, services.api.app; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
