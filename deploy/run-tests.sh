#!/usr/bin/env bash
# Runs all tests but the long ones, in three rounds: what can run side by side on every core, what shares Docker Engine,
# and what needs the machine for itself. A failure in one round doesn't hide the next; the last line sums up, and the
# exit code tells of all.
#
# CI=true         a missing nats-server or engine fails a test instead of skipping it (the tests read it)
# JOBS, DOCKER_JOBS, PYTEST_ARGS, PODBUS_VENV
set -uo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 1
python=${PODBUS_VENV:-.venv}/bin/python
export PATH=$PATH:/usr/sbin:/sbin
reports=$(mktemp -d "${TMPDIR:-/tmp}/podbus-tests.XXXXXX")
trap 'rm -rf -- "$reports"' EXIT
failed=0

round() { # NAME MARKS [PYTEST ARGS...]
    local code=0 name=$1 marks=$2
    shift 2
    printf '\n### %s\n' "$name"
    # shellcheck disable=SC2086  # PYTEST_ARGS is a list of words
    "$python" -m pytest --durations=15 --durations-min=0.1 --junitxml="$reports/$name.xml" -m "$marks" "$@" \
        ${PYTEST_ARGS:-} </dev/null || code=$?
    # 5: no test has these marks. A round may be empty; a whole run may not, which the sum sees.
    if ((code != 0 && code != 5)); then failed=1; fi
}

# total ATTRIBUTE: summed over the reports
total() { sed -n "s/.*<testsuite [^>]*\\b$1=\"\\([0-9]*\\)\".*/\\1/p" "$reports"/*.xml 2>/dev/null | awk '{ n += $1 } END { print n + 0 }'; }

round side-by-side 'not docker and not e2e and not serial and not long and not cluster' -n "${JOBS:-auto}"
round docker 'docker and not e2e and not serial and not long and not cluster' -n "${DOCKER_JOBS:-2}" --dist loadfile
round alone '(e2e or serial) and not long and not cluster' -n 0

bad=$(($(total failures) + $(total errors)))
skipped=$(total skipped)
passed=$(($(total tests) - bad - skipped))
if ((passed + bad == 0)); then
    printf 'no test ran\n' >&2
    failed=1
fi
printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$bad" "$skipped"
exit "$failed"
