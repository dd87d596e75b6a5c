# shellcheck shell=bash disable=SC2154,SC2016
# Part of build.sh: the Python base of the service image.
#
# Where no registry answers, a minimal Debian is made by debootstrap. That takes minutes, so the result is kept as a
# tarball named by the hash of its recipe; a second build only imports it. It holds Debian's point release, not the
# security archive: remove the tarball and the image to get a newer one.

PYTHON_SUITE=bookworm
PYTHON_PACKAGES=python3,python3-venv,ca-certificates

# The mirror that this machine's apt already uses, so that a proxy or a local mirror is honoured.
debian_mirror() {
    local site codename
    if command -v apt-get >/dev/null; then
        # apt-get expands the format itself.
        while read -r site codename; do
            if [[ $codename == "$PYTHON_SUITE" ]]; then
                printf '%s\n' "$site"
                return
            fi
        done < <(apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages' 'Label: Debian' 2>/dev/null)
    fi
    printf 'http://deb.debian.org/debian\n'
}

# What the services don't need: package lists, documentation, translations, byte code that Python makes again.
trim_root() { # ROOT
    rm -rf -- "$1"/var/cache/apt/archives/*.deb "$1"/var/lib/apt/lists/* "$1"/var/log/* \
        "$1"/usr/share/{doc,man,locale,info,lintian,bug}/*
    find "$1/usr" -depth -type d -name __pycache__ -exec rm -rf -- {} +
}

make_tarball() { # FILE
    local root=$work/python-root mirror
    [[ $EUID == 0 ]] || die "$PYTHON_IMAGE: debootstrap needs root, and no registry gave $PYTHON_UPSTREAM"
    need debootstrap debootstrap
    mirror=$(debian_mirror)
    say "$PYTHON_IMAGE: making a minimal Debian from $mirror; this takes some minutes, once"
    quietly debootstrap --variant=minbase --include="$PYTHON_PACKAGES" "$PYTHON_SUITE" "$root" "$mirror"
    trim_root "$root"
    mkdir -p -- "$(dirname -- "$1")"
    # Written beside the final name, so that a build cut short leaves no half tarball.
    tar -C "$root" --one-file-system -cf - . | gzip -1 >"$1.$$"
    mv -- "$1.$$" "$1"
    rm -rf -- "$root"
}

python_base() {
    local recipe tarball
    recipe=$(recipe_of python < <(
        printf '%s\n' "$PYTHON_SUITE" "$PYTHON_PACKAGES" "$(uname -m)"
        declare -f trim_root
    ))
    if is_current "$PYTHON_IMAGE" "$recipe"; then return; fi
    tarball=$cache/python-base-$recipe.tar.gz
    if [[ ! -s $tarball ]]; then
        if ! exists "$PYTHON_IMAGE" && { exists "$PYTHON_UPSTREAM" || pulled "$PYTHON_UPSTREAM"; }; then
            docker tag "$PYTHON_UPSTREAM" "$PYTHON_IMAGE"
            say "$PYTHON_IMAGE is $PYTHON_UPSTREAM"
            return
        fi
        make_tarball "$tarball"
    fi
    quietly docker import \
        --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
        --change 'ENV LANG=C.UTF-8' \
        --change 'CMD ["python3"]' \
        --change "LABEL podbus.recipe=$recipe" \
        "$tarball" "$PYTHON_IMAGE"
    say "$PYTHON_IMAGE imported from $tarball"
}
