#!/usr/bin/env bash
# Sets up what podbus needs on this machine. What is there already is left alone; a second run takes about a second.
#
#   deploy/setup.sh [python|node|tests|cluster]      (default node)
#
#   python  the virtual environment .venv from the lock file: enough for `make check`
#   node    and nats-server, Docker Engine (started if none answers), the images: enough for `make up`
#   tests   and what the tests need on top: docker-compose, the service image's Python base
#   cluster and the control plane that they join (built once, minutes)
#
# As root on Debian 12 or a derivative it installs what is missing. Elsewhere it lists all that is missing and exits 1.
#
# PYTHON                 the interpreter to use (default: the first python >= 3.11 found)
# PODBUS_VENV            the virtual environment (default .venv in the project)
# PODBUS_DOCKERD_LOG     log of a dockerd started from here (default /var/log/podbus-dockerd.log)
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname -- "$here")
venv=${PODBUS_VENV:-$root/.venv}
dockerd_log=${PODBUS_DOCKERD_LOG:-/var/log/podbus-dockerd.log}
engine_seconds=60
export PATH=$PATH:/usr/sbin:/sbin # where Debian puts dockerd, nats-server and debootstrap
export PIP_DISABLE_PIP_VERSION_CHECK=1

profile=${1:-node}
did_something=0

say() {
    did_something=1
    printf 'setup: %s\n' "$*"
}
die() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# Runs a command in silence; its output is shown only when it fails.
quietly() {
    local log code=0
    log=$(mktemp "${TMPDIR:-/tmp}/podbus-setup.XXXXXX")
    "$@" >"$log" 2>&1 </dev/null || code=$?
    if ((code != 0)); then cat -- "$log" >&2; fi
    rm -f -- "$log"
    return "$code"
}

is_root() { ((EUID == 0)); }
# systemd is in charge only where it is PID 1; the files of the package may lie anywhere.
has_systemd() { [[ -d /run/systemd/system ]]; }
is_debian() {
    have apt-get && grep -qE '^ID(_LIKE)?=.*debian' /etc/os-release 2>/dev/null
}

# --- what is missing ---------------------------------------------------------------------------------------------

# Three lists side by side: Debian package, why, how to get it where this script can't install it.
packages=() reasons=() remedies=()

missing() { # PACKAGE WHY [REMEDY]
    packages+=("$1")
    reasons+=("$2")
    remedies+=("${3:-}")
}

engine_answers() { docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

# An image that is there needs no compiler and no busybox any more.
has_image() { docker image inspect --format . "$1" >/dev/null 2>&1; }

is_usable_python() { # COMMAND: 3.11 or newer, with venv and pip for it
    "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.11 python3.12 python3.13 python3.14; do
        if is_usable_python "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

has_static_libc() {
    local file
    file=$(gcc -print-file-name=libc.a 2>/dev/null) && [[ $file == /* ]]
}

has_static_busybox() {
    local file
    for file in /bin/busybox /usr/bin/busybox; do
        # ldd fails for a static program.
        if [[ -x $file ]] && ! ldd "$file" >/dev/null 2>&1; then return; fi
    done
    return 1
}

has_compose() { have docker-compose || docker compose version >/dev/null 2>&1; }

has_working_venv() {
    "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

look_for_python() {
    if has_working_venv || find_python >/dev/null; then return; fi
    missing python3-venv 'Python 3.11 or newer with venv' 'install it, or name one: make setup PYTHON=/path/to/python3'
}

look_for_node() {
    [[ -s /etc/ssl/certs/ca-certificates.crt ]] || [[ -d /etc/pki ]] || [[ -d /etc/ssl/certs ]] ||
        missing ca-certificates 'to trust package and image registries'
    have ip || missing iproute2 "to see the node's addresses"
    have nats-server || missing nats-server 'the message bus between the services' \
        'https://github.com/nats-io/nats-server/releases, 2.9 or newer, on PATH'
    if ! have docker; then
        missing docker.io 'runs the containers; its command builds the images' \
            'https://docs.docker.com/engine/install/, 20.10 or newer'
    elif ! engine_answers && ! have dockerd; then
        missing docker.io 'runs the containers'
    fi
    if [[ $(cat /sys/module/apparmor/parameters/enabled 2>/dev/null) == Y ]] && ! have apparmor_parser; then
        missing apparmor "loads the containers' profile: this kernel enforces AppArmor"
    fi
    if ! has_image podbus/pause:3.10; then
        have gcc || missing gcc 'to compile the sandbox image (podbus/pause:3.10)'
        has_static_libc || missing libc6-dev 'to compile the sandbox image (podbus/pause:3.10)'
    fi
    if ! has_image busybox:1.36; then
        has_static_busybox || missing busybox-static 'to make busybox:1.36 where no registry answers' \
            'docker pull busybox:1.36'
    fi
}

look_for_tests() {
    has_compose || missing docker-compose 'the tests bring the compose file up'
    have curl || missing curl 'the tests ask the API by it, as people do'
    have docker-registry || missing docker-registry 'the tests pull images from a registry of their own'
    if ! has_image podbus-python:3.11; then
        have debootstrap || missing debootstrap "to make the service image's base where no registry answers" \
            'docker pull python:3.11-slim-bookworm && docker tag python:3.11-slim-bookworm podbus-python:3.11'
        [[ -e /usr/share/keyrings/debian-archive-keyring.gpg ]] ||
            missing debian-archive-keyring 'debootstrap checks signatures with it'
    fi
}

tell_missing() { # HEADLINE
    local i
    {
        printf 'setup: %s Missing:\n' "$1"
        for i in "${!packages[@]}"; do
            printf '  %-22s %s\n' "${packages[$i]}" "${reasons[$i]}"
            [[ -z ${remedies[$i]} ]] || printf '  %-22s   %s\n' '' "${remedies[$i]}"
        done
        if is_debian; then
            local wanted
            wanted=$(printf '%s\n' "${packages[@]}" | grep -v '^(' | sort -u | tr '\n' ' ' || true)
            [[ -z $wanted ]] || printf 'As root: apt-get install --no-install-recommends %s\n' "$wanted"
        fi
    } >&2
}

# --- Debian packages ---------------------------------------------------------------------------------------------

has_candidate() { # PACKAGE
    local line
    line=$(LC_ALL=C apt-cache policy "$1" 2>/dev/null | grep Candidate:) && [[ $line != *'(none)'* ]]
}

POLICY=/usr/sbin/policy-rc.d

# apt starts the services that it installs; nats-server would then hold port 4222 with no password. The policy is ours
# only while apt runs, and one that is there already is left alone.
install_packages() {
    local wanted=() without=() package own_policy=0 code=0
    mapfile -t wanted < <(printf '%s\n' "${packages[@]}" | sort -u)
    for package in "${wanted[@]}"; do has_candidate "$package" || without+=("$package"); done
    if ((${#without[@]} > 0)); then
        say 'refreshing the package lists'
        quietly apt-get update || die 'apt-get update failed'
        # Where Debian ships the command apart from the engine (since Debian 13).
        if ! have docker && has_candidate docker-cli; then wanted+=(docker-cli); fi
        without=()
        for package in "${wanted[@]}"; do has_candidate "$package" || without+=("$package"); done
        if ((${#without[@]} > 0)); then
            tell_missing "apt doesn't offer ${without[*]} (does it reach its archive?)."
            exit 1
        fi
    elif ! have docker && has_candidate docker-cli; then
        wanted+=(docker-cli)
    fi
    say "installing ${wanted[*]}"
    if [[ ! -e $POLICY ]]; then
        own_policy=1
        trap 'rm -f -- "$POLICY"' EXIT
        printf '#!/bin/sh\n# podbus set-up: no service starts while it installs packages\nexit 101\n' >"$POLICY"
        chmod 755 "$POLICY"
    fi
    DEBIAN_FRONTEND=noninteractive quietly apt-get install -y -q --no-install-recommends "${wanted[@]}" || code=$?
    if ((code != 0)); then
        say 'that failed; once more with fresh package lists'
        code=0
        quietly apt-get update || die 'apt-get update failed'
        DEBIAN_FRONTEND=noninteractive quietly apt-get install -y -q --no-install-recommends "${wanted[@]}" || code=$?
    fi
    if ((own_policy)); then
        rm -f -- "$POLICY"
        trap - EXIT
    fi
    ((code == 0)) || die 'apt-get install failed'
    for package in "${wanted[@]}"; do
        if [[ $package == nats-server ]]; then keep_nats_service_off; fi
        if [[ $package == docker.io ]]; then engine_is_ours=1; fi
    done
}

# podbus runs its own nats-server; the package's service would start at the next boot. One that somebody had before is
# not touched, since this is called only when the package came from here.
keep_nats_service_off() {
    if have systemctl; then
        quietly systemctl disable nats-server.service || true
    else
        rm -f -- /etc/systemd/system/multi-user.target.wants/nats-server.service
    fi
    if [[ -e /etc/init.d/nats-server ]]; then quietly update-rc.d nats-server disable || true; fi
}

# --- Python ------------------------------------------------------------------------------------------------------

ensure_venv() {
    local lock=$root/requirements-dev.lock stamp=$venv/.podbus-setup wanted python
    if ! has_working_venv; then
        python=$(find_python) || die 'no python >= 3.11 with venv was found'
        say "making $venv with $("$python" --version 2>&1)"
        quietly "$python" -m venv --clear "$venv"
    fi
    wanted=$({ printf '%s\n' "$root"; "$venv/bin/python" --version; cat -- "$lock" "$root/pyproject.toml"; } |
        sha256sum)
    if [[ -e $stamp && $(<"$stamp") == "$wanted" ]]; then return; fi
    say 'installing the Python dependencies from requirements-dev.lock'
    quietly "$venv/bin/python" -m pip install -q --require-hashes -r "$lock" || die 'pip install failed'
    # setuptools is in the lock: the build needs no network and no second environment.
    quietly "$venv/bin/python" -m pip install -q --no-deps --no-build-isolation -e "$root" ||
        die 'installing podbus itself failed'
    printf '%s' "$wanted" >"$stamp"
}

# --- Docker Engine -----------------------------------------------------------------------------------------------

engine_is_ours=0

# A machine without systemd and without Debian's cgroupfs-mount may have no cgroups mounted.
ensure_cgroups() {
    local controller
    if [[ -e /sys/fs/cgroup/cgroup.controllers ]] || grep -q '^cgroup /sys/fs/cgroup/' /proc/mounts; then return; fi
    say 'mounting the control groups at /sys/fs/cgroup'
    if grep -qw cgroup2 /proc/filesystems && mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null; then
        if grep -qw memory /sys/fs/cgroup/cgroup.controllers; then return; fi
        umount /sys/fs/cgroup
    fi
    mount -t tmpfs -o mode=755,nosuid,nodev,noexec cgroup /sys/fs/cgroup
    while read -r controller; do
        mkdir -p "/sys/fs/cgroup/$controller"
        mount -t cgroup -o "$controller" cgroup "/sys/fs/cgroup/$controller" 2>/dev/null ||
            rmdir "/sys/fs/cgroup/$controller"
    done < <(awk '!/^#/ && $4 == 1 { print $1 }' /proc/cgroups)
}

is_running() { # NAME: a process of that name
    local file
    for file in /proc/[0-9]*/comm; do
        if [[ $(cat "$file" 2>/dev/null) == "$1" ]]; then return; fi
    done
    return 1
}

# After a power cut both files are there with nobody behind them: dockerd refuses to start because of the first, and
# waits in vain for a containerd because of the second.
remove_stale_engine_files() {
    local pid
    if pid=$(cat /var/run/docker.pid 2>/dev/null) && [[ $(cat "/proc/$pid/comm" 2>/dev/null) != dockerd ]]; then
        rm -f /var/run/docker.pid
    fi
    if [[ -S /run/containerd/containerd.sock ]] && ! is_running containerd; then
        rm -f /run/containerd/containerd.sock
    fi
}

start_engine() {
    local options=()
    if has_systemd; then
        say 'starting Docker Engine (docker.service)'
        # With live-restore the pods outlive a restart of the engine. Only where we installed it, and it has no settings.
        if ((engine_is_ours)) && [[ ! -e /etc/docker/daemon.json ]]; then
            mkdir -p /etc/docker
            printf '{\n  "live-restore": true\n}\n' >/etc/docker/daemon.json
        fi
        quietly systemctl enable --now docker.service || die 'docker.service does not start: journalctl -u docker'
        return
    fi
    if is_running dockerd; then return; fi # it may still be starting
    say "starting Docker Engine (dockerd; log in $dockerd_log)"
    ensure_cgroups
    remove_stale_engine_files
    # dockerd refuses an option that its file sets too.
    if [[ ! -e /etc/docker/daemon.json ]]; then options=(--live-restore); fi
    # Its own session, no file of ours: the engine must outlive this script and the terminal.
    setsid nohup dockerd "${options[@]}" >>"$dockerd_log" 2>&1 </dev/null 9>&- &
    disown
}

ensure_engine() {
    local deadline
    if engine_answers; then return; fi
    if [[ -n ${DOCKER_HOST:-} && $DOCKER_HOST != unix:///var/run/docker.sock ]]; then
        die "no Docker Engine answers at DOCKER_HOST=$DOCKER_HOST; unset it to use one on this machine"
    fi
    start_engine
    deadline=$((SECONDS + engine_seconds))
    until engine_answers; do
        if ((SECONDS >= deadline)) || { ! has_systemd && ! is_running dockerd; }; then
            tail -n 20 -- "$dockerd_log" >&2 2>/dev/null || true
            die "Docker Engine didn't answer within $engine_seconds s"
        fi
        sleep 0.2
    done
}

# --- all together ------------------------------------------------------------------------------------------------

main() {
    local images=(sandbox busybox) output line
    case $profile in
        python) look_for_python ;;
        node)
            look_for_python
            look_for_node
            ;;
        tests | cluster)
            look_for_python
            look_for_node
            look_for_tests
            images+=(entry python)
            ;;
        *) die "unknown profile '$profile'; known: python node tests cluster" ;;
    esac

    if ! is_root && [[ $profile != python ]] && have docker && ! engine_answers; then
        missing '(Docker Engine)' 'no engine answers to this user' \
            'as root: systemctl start docker; then: usermod -aG docker USER'
    fi
    if ((${#packages[@]} > 0)); then
        if ! is_debian; then
            tell_missing 'this is no Debian, so nothing is installed.'
            exit 1
        elif ! is_root; then
            tell_missing 'this takes root.'
            exit 1
        fi
        install_packages
    fi

    ensure_venv
    if [[ $profile != python ]]; then
        ensure_engine
        output=$("$here/images/build.sh" "${images[@]}")
        if [[ -n $output ]]; then
            did_something=1
            printf '%s\n' "$output"
        fi
    fi
    if [[ $profile == cluster ]]; then
        # Told line by line, since it takes minutes.
        output=$("$here/cluster/build.sh" | while IFS= read -r line; do
            printf '%s\n' "$line" >&2
            printf '%s' "$line"
        done)
        if [[ -n $output ]]; then did_something=1; fi
    fi
    if ((did_something)); then say 'done'; else printf 'setup: all is there\n'; fi
}

main
