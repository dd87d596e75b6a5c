#!/usr/bin/env bash
# Builds podbus:dev and podbus-nats:dev for compose.yaml, with no network during the build. Images that are up to date
# are left alone.
#
# PODBUS_CACHE   where wheels are kept (default ${XDG_CACHE_HOME:-/var/cache}/podbus)
# PODBUS_VENV    the virtual environment that fetches and builds wheels (default .venv; made by `make setup`)
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/../.." && pwd)
cache=${PODBUS_CACHE:-${XDG_CACHE_HOME:-/var/cache}/podbus}
python=${PODBUS_VENV:-$root/.venv}/bin/python
build=$here/build
export PATH=$PATH:/usr/sbin:/sbin
export PIP_DISABLE_PIP_VERSION_CHECK=1

BASE=podbus-python:3.11
BASE_PYTHON=3.11

say() { printf 'compose: %s\n' "$*"; }
die() {
    printf 'compose: %s\n' "$*" >&2
    exit 1
}
quietly() {
    local log code=0
    log=$(mktemp "${TMPDIR:-/tmp}/podbus-compose.XXXXXX")
    "$@" >"$log" 2>&1 </dev/null || code=$?
    if ((code != 0)); then cat -- "$log" >&2; fi
    rm -f -- "$log"
    ((code == 0)) || die "failed: $*"
}
label_of() { docker image inspect --format '{{index .Config.Labels "podbus.recipe"}}' "$1" 2>/dev/null || true; }

# What goes into the images: names and contents, so that a removed file counts too.
recipe() {
    cd -- "$root"
    {
        docker image inspect --format '{{.Id}}' "$BASE"
        sha256sum -- pyproject.toml README.md requirements.lock "$here"/{Dockerfile,healthy,healthy-nats,share-data}
        find shared services cli -type f ! -path '*/__pycache__/*' -print0 | sort -z | xargs -0 sha256sum
        sha256sum < "$(command -v nats-server)"
    } | sha256sum | cut -c1-32
}

# The wheels of the lock file for the base image's Python, whatever Python runs here.
fetch_wheels() {
    local kept arch options=()
    arch=$(uname -m)
    kept=$cache/wheels-$(sha256sum < <(cat -- "$root/requirements.lock"; printf '%s %s' "$BASE_PYTHON" "$arch") | cut -c1-32)
    if [[ ! -d $kept ]]; then
        say 'fetching wheels'
        if [[ $("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') != "$BASE_PYTHON" ]]; then
            options=(--python-version "$BASE_PYTHON" --implementation cp --platform "manylinux_2_28_$arch"
                --platform "manylinux_2_17_$arch" --platform "manylinux2014_$arch" --platform any)
        fi
        mkdir -p -- "$kept.$$"
        quietly "$python" -m pip download -q --only-binary :all: --require-hashes "${options[@]}" \
            -r "$root/requirements.lock" -d "$kept.$$"
        # Another build may have been faster; its result is the same.
        mv -T -- "$kept.$$" "$kept" 2>/dev/null || rm -rf -- "$kept.$$"
    fi
    mkdir -p -- "$build/wheels"
    cp -- "$kept"/*.whl "$build/wheels/"
}

build_project_wheel() {
    local copy=$build/source
    # Built from a copy: setuptools would leave its build directory in the tree.
    mkdir -p -- "$copy"
    cp -r -- "$root"/{pyproject.toml,README.md,shared,services,cli} "$copy/"
    quietly "$python" -m pip wheel -q --no-deps --no-build-isolation -w "$build/dist" "$copy"
    rm -rf -- "$copy"
}

build_image() { # IMAGE TARGET RECIPE
    # With no network a wheel that was forgotten fails here, and not on a machine that reaches no registry.
    quietly env DOCKER_BUILDKIT=0 docker build -q --network none --build-arg "BASE=$BASE" --build-arg "RECIPE=$3" \
        --target "$2" -f "$here/Dockerfile" -t "$1" "$root"
}

main() {
    local wanted
    # One build at a time on this machine: tidying up would take another's unfinished layers.
    mkdir -p -- "$cache"
    exec 9<"$cache"
    flock 9
    "$here/../images/build.sh" python
    [[ -x $python ]] || die "$python is missing; run 'make setup'"
    command -v nats-server >/dev/null || die "nats-server is missing; run 'make setup'"
    wanted=$(recipe)
    if [[ $(label_of podbus:dev) == "$wanted" && $(label_of podbus-nats:dev) == "$wanted" ]]; then
        say 'podbus:dev and podbus-nats:dev are up to date'
        return
    fi
    rm -rf -- "$build"
    mkdir -p -- "$build/nats"
    fetch_wheels
    build_project_wheel
    cp -- "$(command -v nats-server)" "$build/nats/nats-server"
    # The stages are tagged so that the old builder finds its cache again; those of earlier builds are removed.
    build_image podbus-nats-build:dev bus ''
    build_image podbus-nats:dev nats "$wanted"
    build_image podbus-build:dev build ''
    build_image podbus:dev podbus "$wanted"
    quietly docker image prune -f --filter label=podbus.stage
    say 'podbus:dev and podbus-nats:dev built'
    rm -rf -- "$build"
}

main
