"""Memory and start-up time are spent at imports: each process loads only what it uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.tree import ROOT

BUDGETS = {
    "services.api.app": ("docker", "sqlalchemy", "alembic", "cryptography", "kubernetes"),
    "services.stats.app": ("docker", "sqlalchemy", "alembic", "fastapi", "cryptography", "yaml"),
    "services.source.app": ("docker", "sqlalchemy", "fastapi", "alembic", "cryptography"),
    "services.status.app": ("docker", "sqlalchemy", "fastapi", "alembic", "cryptography", "yaml"),
    "services.podworker.app": ("docker", "sqlalchemy", "fastapi", "alembic", "cryptography", "yaml", "h2"),
    "cli.main": ("nats", "sqlalchemy", "docker", "fastapi", "yaml", "asyncio"),
}


@pytest.mark.parametrize("module", BUDGETS)
def test_a_process_does_not_load_what_others_need(module: str) -> None:
    """Seen in a fresh interpreter, since this one has everything."""
    program = f"import sys, {module}; print([name for name in {BUDGETS[module]!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
