"""`python -m services.stats`"""

import sys

from services.stats.app import build
from shared.runtime.service import run

if __name__ == "__main__":
    sys.exit(run("stats", build))
