"""Fails when a generated file isn't what `make docs` would write. Writes nothing; `make check` calls it."""

from __future__ import annotations

import difflib
import sys

from gen_docs import ROOT, Broken, generated


def main() -> int:
    try:
        wanted = generated()
    except Broken as error:
        sys.stderr.write(f"{error}\n")
        return 1
    stale = False
    for path, text in wanted.items():
        found = path.read_text() if path.exists() else ""
        if found != text:
            stale = True
            name = str(path.relative_to(ROOT))
            lines = difflib.unified_diff(
                found.splitlines(), text.splitlines(), name, f"{name}, generated", n=1, lineterm=""
            )
            sys.stderr.write("\n".join(lines) + "\n")
    if stale:
        sys.stderr.write("generated files are stale: run `make docs` and commit what it writes\n")
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
