"""`python -m services.status`"""

import sys

from services.status.app import build
from shared.runtime.service import run

if __name__ == "__main__":
    sys.exit(run("status", build))
