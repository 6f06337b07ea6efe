#!/bin/sh
# Installs what tpc needs on a Debian or Ubuntu machine (as root or by sudo) and builds it in this folder.
#   ./setup.sh              everything          ./setup.sh packages    packages only         ./setup.sh build    build only
#   ./setup.sh ci           packages of .ci/run: those, other compilers and formatters, and what makes venvs
#   ./setup.sh arm          those of tests/aarch64.sh: another processor's compiler, and what runs its programs
set -eu
cd "$(dirname "$0")"

PACKAGES="gcc make autoconf automake pkg-config protobuf-c-compiler libprotobuf-c-dev check libjansson-dev uthash-dev libxxhash-dev
libdnnl-dev libpcre2-dev libutf8proc-dev libmicrohttpd-dev libopenmpi-dev openmpi-bin mpich libmpich-dev jq python3"
CI_PACKAGES="clang libomp-dev libclang-rt-dev clang-format python3-venv ccache groff-base chromium qemu-user-static"
ARM_PACKAGES="gcc-aarch64-linux-gnu qemu-user-static"

packages() { # NAME...
    missing=
    for p in "$@"; do
        dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $p"
    done
    [ -z "$missing" ] && return
    echo "installs packages by apt, a minute or so:$missing"
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing
}

build() {
    [ -x tpc-run ] || echo "builds tpc here: about two minutes on two idle cores"
    [ -x configure ] || autoreconf -i
    [ -f Makefile ] || ./configure --quiet
    make --quiet -j "$(nproc)"
    echo "built ./tpc-shard and ./tpc-run; next: ./tpc-shard samples/llama --tp 2, or: export PATH=$PWD:\$PATH"
}

case "${1:-all}" in
    packages) packages $PACKAGES ;;
    build) build ;;
    ci) packages $PACKAGES $CI_PACKAGES ;;
    arm) packages $ARM_PACKAGES ;;
    all) packages $PACKAGES; build ;;
    *) echo "usage: ./setup.sh [packages|build|ci|arm]" >&2; exit 2 ;;
esac
