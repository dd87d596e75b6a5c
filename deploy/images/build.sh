#!/usr/bin/env bash
# Builds the images that podbus and its tests need. What is there and made by the same recipe is left alone.
#
#   deploy/images/build.sh [sandbox] [busybox] [entry] [python]      (none named: sandbox busybox entry)
#
#   sandbox  podbus/pause:3.10   holds a pod's namespaces; from pause/pause.c
#   busybox  busybox:1.36        pulled where a registry answers, else made of the distribution's busybox-static
#   entry    entry:1             for the tests: an image that has both ENTRYPOINT and CMD
#   python   podbus-python:3.11  base of the service image; python:3.11-slim-bookworm pulled, else made by debootstrap
#
# An image made here carries the label podbus.recipe, a hash over all that goes into it. An image without that label
# came from elsewhere (a pull, a person) and is never replaced.
#
# PODBUS_CACHE      where a debootstrapped base is kept (default ${XDG_CACHE_HOME:-/var/cache}/podbus)
# PODBUS_NO_PULL=1  doesn't ask a registry
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034  # read by python-base.sh
cache=${PODBUS_CACHE:-${XDG_CACHE_HOME:-/var/cache}/podbus}
answer_seconds=10
pull_seconds=300

SANDBOX_IMAGE=podbus/pause:3.10
BUSYBOX_IMAGE=busybox:1.36
ENTRY_IMAGE=entry:1
# shellcheck disable=SC2034
PYTHON_IMAGE=podbus-python:3.11
# shellcheck disable=SC2034
PYTHON_UPSTREAM=python:3.11-slim-bookworm

work=$(mktemp -d "${TMPDIR:-/tmp}/podbus-images.XXXXXX")
trap 'rm -rf -- "$work"' EXIT

say() { printf 'images: %s\n' "$*"; }
die() {
    printf 'images: %s\n' "$*" >&2
    exit 1
}

# Runs a command in silence; its output is shown only when it fails.
quietly() {
    local log=$work/log
    if ! "$@" >"$log" 2>&1; then
        cat -- "$log" >&2
        die "failed: $*"
    fi
}

# recipe_of NAME < everything that goes into the image  ->  a hash
recipe_of() { { printf '%s\n' "$1"; cat; } | sha256sum | cut -c1-32; }

# is_current IMAGE RECIPE: true when the image is there and either was made by this recipe or not by us at all.
is_current() {
    local found
    found=$(docker image inspect --format '{{index .Config.Labels "podbus.recipe"}}' "$1" 2>/dev/null) || return 1
    [[ -z $found || $found == '<no value>' || $found == "$2" ]]
}

exists() { docker image inspect --format '{{.Id}}' "$1" >/dev/null 2>&1; }

# A registry gets answer_seconds to say that it has the image, and only then pull_seconds for the pull itself.
pulled() {
    local log=$work/pull puller deadline
    [[ ${PODBUS_NO_PULL:-} != 1 ]] || return 1
    timeout "$pull_seconds" docker pull "$1" >"$log" 2>&1 </dev/null &
    puller=$!
    deadline=$((SECONDS + answer_seconds))
    while kill -0 "$puller" 2>/dev/null; do
        if grep -q 'Pulling from' "$log"; then break; fi
        if ((SECONDS >= deadline)); then
            kill "$puller" 2>/dev/null || true
            break
        fi
        sleep 0.1
    done
    wait "$puller"
}

# Docker's own builder, not BuildKit: Debian's docker.io has no other.
build() { # IMAGE CONTEXT
    quietly env DOCKER_BUILDKIT=0 docker build --quiet --network none --tag "$1" "$2"
}

need() { # COMMAND PACKAGE
    command -v "$1" >/dev/null || die "$1 is missing (Debian package $2); 'make setup' installs it"
}

build_sandbox() {
    local recipe context=$work/sandbox version=${SANDBOX_IMAGE##*:}
    recipe=$(recipe_of sandbox < <(cat -- "$here/pause/pause.c" "$here/pause/Dockerfile"))
    if is_current "$SANDBOX_IMAGE" "$recipe"; then return; fi
    need gcc 'gcc and libc6-dev'
    mkdir -p "$context"
    quietly gcc -Os -Wall -Wextra -Werror -static -s -DVERSION="\"$version\"" \
        -o "$context/pause" "$here/pause/pause.c"
    sed "s/@RECIPE@/$recipe/; s/@VERSION@/$version/" "$here/pause/Dockerfile" >"$context/Dockerfile"
    build "$SANDBOX_IMAGE" "$context"
    say "$SANDBOX_IMAGE built"
}

busybox_binary() {
    local candidate
    for candidate in /bin/busybox /usr/bin/busybox; do
        # ldd fails for a static program; a dynamic one can't run in an image without libraries.
        if [[ -x $candidate ]] && ! ldd "$candidate" >/dev/null 2>&1; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    die "no static busybox is here (Debian package busybox-static); 'make setup' installs it"
}

build_busybox() {
    local recipe context=$work/busybox root=$work/busybox/root binary applet
    # A pulled one has no label, so this is asked before a binary is looked for.
    if exists "$BUSYBOX_IMAGE" && is_current "$BUSYBOX_IMAGE" none; then return; fi
    if ! exists "$BUSYBOX_IMAGE" && pulled "$BUSYBOX_IMAGE"; then
        say "$BUSYBOX_IMAGE pulled"
        return
    fi
    binary=$(busybox_binary)
    recipe=$(recipe_of busybox < <(cat -- "$here/busybox/Dockerfile" "$binary"; declare -f build_busybox))
    if is_current "$BUSYBOX_IMAGE" "$recipe"; then return; fi
    mkdir -p "$root"/{bin,etc,home,root,tmp,usr/bin,usr/sbin,sbin,var/www}
    chmod 1777 "$root/tmp"
    cp -- "$binary" "$root/bin/busybox"
    while read -r applet; do
        [[ $applet == busybox ]] || ln -s busybox "$root/bin/$applet"
    done < <("$binary" --list)
    ln -s ../../bin/env "$root/usr/bin/env"
    printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n' >"$root/etc/passwd"
    printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
    # A tar keeps the links and modes as they are.
    tar -C "$root" --owner=0 --group=0 --numeric-owner -cf "$context/root.tar" .
    rm -rf -- "$root"
    sed "s/@RECIPE@/$recipe/" "$here/busybox/Dockerfile" >"$context/Dockerfile"
    build "$BUSYBOX_IMAGE" "$context"
    say "$BUSYBOX_IMAGE built from $binary"
}

build_entry() {
    local recipe base context=$work/entry
    build_busybox
    base=$(docker image inspect --format '{{.Id}}' "$BUSYBOX_IMAGE")
    recipe=$(recipe_of entry < <(cat -- "$here/entry/Dockerfile"; printf '%s\n' "$base"))
    if is_current "$ENTRY_IMAGE" "$recipe"; then return; fi
    mkdir -p "$context"
    sed "s/@RECIPE@/$recipe/; s|@BASE@|$BUSYBOX_IMAGE|" "$here/entry/Dockerfile" >"$context/Dockerfile"
    build "$ENTRY_IMAGE" "$context"
    say "$ENTRY_IMAGE built"
}

build_python() {
    # shellcheck source-path=SCRIPTDIR source=python-base.sh
    source "$here/python-base.sh"
    python_base
}

main() {
    local wanted=("$@") image
    if ((${#wanted[@]} == 0)); then wanted=(sandbox busybox entry); fi
    for image in "${wanted[@]}"; do
        case $image in
            sandbox | busybox | entry | python) ;;
            *) die "unknown image '$image'; known: sandbox busybox entry python" ;;
        esac
    done
    need docker docker.io
    docker version --format '{{.Server.Version}}' >/dev/null 2>&1 ||
        die "no Docker Engine answers; 'make setup' starts one"
    # One build at a time in this tree: `make up` and `make test` may meet here.
    exec 9<"$here"
    flock 9
    for image in "${wanted[@]}"; do "build_$image"; done
}

main "$@"
