#!/usr/bin/env bash
# Builds the control plane that the tests join: kube-apiserver, kube-controller-manager and kube-scheduler 1.20.2 of
# Debian's source package, with etcd and kubectl of its binary ones. Nothing is installed: all packages are unpacked
# into a directory that goes afterwards. Takes minutes, once.
#
#   deploy/cluster/build.sh
#
# PODBUS_CACHE  where the programs are kept, in kubernetes-1.20.2/bin (default ${XDG_CACHE_HOME:-/var/cache}/podbus)
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cache=${PODBUS_CACHE:-${XDG_CACHE_HOME:-/var/cache}/podbus}
version=1.20.2
home=$cache/kubernetes-$version
commands=(kube-apiserver kube-controller-manager kube-scheduler)
packages=(golang-1.19-go golang-1.19-src etcd-server kubernetes-client rsync libpopt0 libxxhash0)

say() { printf 'cluster: %s\n' "$*"; }
die() {
    printf 'cluster: %s\n' "$*" >&2
    exit 1
}

# Runs a step of the build; when it fails, says which, and shows the end of what it said.
step() { # NAME COMMAND...
    local name=$1
    shift
    if ! "$@" >"$work/log" 2>&1 </dev/null; then
        tail -n 40 -- "$work/log" >&2
        die "$name failed"
    fi
}

recipe=$(sha256sum <"$here/build.sh" | cut -d' ' -f1)
mkdir -p "$cache"
exec 8>"$cache/kubernetes-$version.lock"
flock 8 # a second run waits for the first one's result
if [[ -e $home/recipe && $(<"$home/recipe") == "$recipe" ]]; then exit 0; fi

work=$(mktemp -d "$cache/kubernetes-build.XXXXXX")
# Go's module files are read-only directories.
trap 'chmod -R u+w -- "$work"; rm -rf -- "$work"' EXIT
root=$work/root
mkdir -p "$root" "$work/bin" "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/packages"

# --- packages, from the archives that this machine uses, by an apt state of our own ------------------------------------

say "getting the sources of Kubernetes $version and a Go compiler"
# shellcheck disable=SC2016  # apt's own variables
apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | sort -u |
    while read -r uri release component; do
        printf 'deb %s %s %s\ndeb-src %s %s %s\n' "$uri" "$release" "$component" "$uri" "$release" "$component"
    done >"$work/sources.list"
[[ -s $work/sources.list ]] || die 'apt has no archive: /etc/apt/sources.list and sources.list.d are empty'
cat >"$work/apt.conf" <<EOF
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$work/apt/lists";
Dir::Cache "$work/apt/cache";
APT::Sandbox::User "root";
EOF
export APT_CONFIG=$work/apt.conf
cd -- "$work/packages"
step 'apt-get update' apt-get update
step 'getting the packages' apt-get download "${packages[@]}"
step 'getting the sources' apt-get source --download-only kubernetes
for package in *.deb; do dpkg -x "$package" "$root"; done

# --- the build -----------------------------------------------------------------------------------------------------

tree=$work/go/src/k8s.io/kubernetes
mkdir -p "$tree" "$work/tools"
# Debian's patches concern kubectl alone, which comes from the binary package.
tar -xf kubernetes_*.orig.tar.* --strip-components=1 -C "$tree"
rm -f -- *.deb *.tar.*
printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' \
    "$(dirname -- "$(find "$root/usr/lib" -name 'libpopt.so.0' | head -n 1)")" "$root/usr/bin/rsync" >"$work/tools/rsync"
chmod +x "$work/tools/rsync"
export GOROOT=$root/usr/lib/go-1.19 GOPATH=$work/go GO111MODULE=off GOCACHE=$work/gocache CGO_ENABLED=0 GOFLAGS=
export PATH=$work/tools:$GOROOT/bin:$PATH HOME=$work
cd -- "$tree"
say 'generating code'
step 'generating code' make gen_openapi
say "building ${commands[*]}: minutes"
package=k8s.io/kubernetes/vendor/k8s.io/component-base/version
flags="-s -w -X $package.gitVersion=v$version -X $package.gitMajor=1 -X $package.gitMinor=20"
step 'building' go build -ldflags "$flags" -o "$work/bin/" "${commands[@]/#/k8s.io/kubernetes/cmd/}"

# --- what stays ----------------------------------------------------------------------------------------------------

cp -- "$root/usr/bin/etcd" "$root/usr/bin/kubectl" "$work/bin/"
rm -rf -- "$home"
mkdir -p "$home"
mv -- "$work/bin" "$home/bin"
printf '%s' "$recipe" >"$home/recipe"
say "built: $home/bin"
