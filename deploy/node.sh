#!/usr/bin/env bash
# Starts and ends the node; `make up` and `make down` call it.
#
#   deploy/node.sh up           with the example pod when the node is new and its manifest directory has none
#   deploy/node.sh down         the pods stay, unless PODS=1
#
# DATA, MANIFESTS, PORT: as `podbus up` takes them.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname -- "$here")
venv=${PODBUS_VENV:-$root/.venv}
podbus=$venv/bin/podbus
data=${DATA:-/var/lib/podbus}
manifests=${MANIFESTS:-/etc/podbus/manifests}
port=${PORT:-10250}
unit=/etc/systemd/system/podbus.service
ready_seconds=90

say() { printf '%s\n' "$*"; }
die() {
    printf 'node: %s\n' "$*" >&2
    exit 1
}
has_systemd() { [[ -d /run/systemd/system ]]; }
pods() { "$podbus" get pods --data "$data" "$@"; }
is_up() { pods >/dev/null 2>&1; }

has_manifest() {
    local file
    for file in "$manifests"/*; do
        if [[ -f $file ]]; then return; fi
    done
    return 1
}

# Only at the first set-up: a person who removed the example doesn't want it back.
add_example() {
    mkdir -p -- "$manifests"
    if [[ -e $data/node ]] || has_manifest; then return; fi
    cp -- "$here/examples/web.yaml" "$manifests/web.yaml"
    say "example pod: $manifests/web.yaml"
}

start_unit() {
    local wanted
    wanted=$(sed -e "s|@ROOT@|$root|; s|@VENV@|$venv|; s|@DATA@|$data|; s|@MANIFESTS@|$manifests|; s|@PORT@|$port|" \
        "$here/systemd/podbus.service")
    if [[ ! -e $unit || $(<"$unit") != "$wanted" ]]; then
        printf '%s\n' "$wanted" >"$unit"
        systemctl daemon-reload
        systemctl enable --quiet podbus.service
        systemctl restart podbus.service
    else
        systemctl enable --quiet --now podbus.service
    fi
}

# unready: the names of pods that aren't Running with all containers ready, from the table that people see.
unready() {
    pods -A 2>/dev/null | awk '
        NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        {
            split($column["READY"], ready, "/")
            if ($column["STATUS"] == "Completed") next
            if ($column["STATUS"] != "Running" || ready[1] != ready[2]) print $column["NAME"]
        }'
}

wait_until_ready() {
    local deadline=$((SECONDS + ready_seconds)) expected=$1 waiting='' count
    while ((SECONDS < deadline)); do
        if is_up; then
            count=$(pods -A 2>/dev/null | awk 'NR > 1' | wc -l)
            waiting=$(unready | tr '\n' ' ')
            if [[ -z $waiting ]] && ((count >= expected)); then return; fi
        fi
        sleep 0.2
    done
    pods -A -o wide >&2 || true
    if is_up; then
        die "not ready after $ready_seconds s: ${waiting:-no pod}; '$podbus describe pod NAME' tells why"
    elif has_systemd; then
        die "the API didn't answer within $ready_seconds s; see journalctl -u podbus"
    else
        die "the API didn't answer within $ready_seconds s; see $data/log"
    fi
}

# Where the running agent says that it listens: the configuration file may name another address than all, and the
# agent may have been started with another port than this call's.
api_address() {
    local api
    api=$(sed -n 's/.*"api": *"\([^"]*\)".*/\1/p' "$data/run/supervisor.json" 2>/dev/null || true)
    api=${api:-https://0.0.0.0:$port}
    case $api in
        https://0.0.0.0:* | https://\[::\]:*) printf 'https://%s:%s (all addresses)' "$(hostname)" "${api##*:}" ;;
        *) printf '%s' "$api" ;;
    esac
}

tell() {
    pods -A -o wide
    say
    say "API    $(api_address); CA $data/pki/ca.crt"
    say "token  $podbus token --data $data"
    say "more   $podbus --help; pods are the manifests in $manifests"
}

up() {
    local expected=0
    [[ -x $podbus ]] || die "$podbus is missing; run 'make setup'"
    if is_up; then
        say 'podbus is up'
        tell
        return
    fi
    add_example
    if has_manifest; then expected=1; fi
    if has_systemd; then
        start_unit
    else
        "$podbus" up --detach --data "$data" --manifests "$manifests" --port "$port"
    fi
    wait_until_ready "$expected"
    tell
}

down() {
    local options=(--data "$data")
    [[ -x $podbus ]] || die "$podbus is missing; run 'make setup'"
    if [[ ${PODS:-} == 1 ]]; then options+=(--pods); fi
    if has_systemd && [[ -e $unit ]]; then systemctl disable --quiet podbus.service; fi
    "$podbus" down "${options[@]}"
    if has_systemd && [[ -e $unit ]]; then systemctl stop podbus.service; fi
}

case ${1:-} in
    up) up ;;
    down) down ;;
    *) die 'usage: deploy/node.sh up|down' ;;
esac
