"""`python -m services.source`"""

import sys

from services.source.app import build
from shared.runtime.service import run

if __name__ == "__main__":
    sys.exit(run("source", build))
