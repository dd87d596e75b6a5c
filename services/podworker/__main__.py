"""`python -m services.podworker`"""

import sys

from services.podworker.app import build
from shared.runtime.service import run

if __name__ == "__main__":
    sys.exit(run("podworker", build))
