"""`python -m services.api`"""

from __future__ import annotations

import sys

from services.api.app import build
from shared.runtime.service import run

if __name__ == "__main__":
    sys.exit(run("api", build))
