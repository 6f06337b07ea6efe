#!/bin/bash
# Processor time and memory of tpc-shard on large models and many ranks:  scale.sh BUILD
#
# tests/scale.py makes the models; weights are holes of a sparse file. SCRATCH: a folder with room for such files ($TMPDIR).
set -u
[ $# = 1 ] || { echo "usage: $0 BUILD" >&2; exit 2; }
build=$1 scale=$(dirname "$0")/../scale.py python=${PYTHON:-python3}
work=$(mktemp -d "${SCRATCH:-${TMPDIR:-/tmp}}/scale.XXXXXX"); trap 'rm -rf "$work"' EXIT

row() { # WHAT RANKS OPTIONS...
    local what=$1 ranks=$2; shift 2
    /usr/bin/time -f '%U %S %M' -o "$work/time" "$build/tpc-shard" "$work/model.onnx" --tp "$ranks" -q "$@" >"$work/out" 2>&1 || { tail -n 1 "$work/out" >&2; return; }
    awk -v w="$what" -v r="$ranks" '{ printf "| %s | %s | %.1f s | %d MB |\n", w, r, $1 + $2, $3 / 1000 }' <(tail -n 1 "$work/time")
}
make() { rm -f "$work"/model.onnx*; "$python" "$scale" "$1" "$2" "$work/model.onnx"; }

echo "| model | ranks | processor time | peak memory |"
echo "|---|---|---|---|"
make llama8b 32
for n in 8 64 1024 4096; do row "llama of 8 B parameters, plan" $n -n; done
make llama405b 126
for n in 8 64 1024; do row "llama of 405 B parameters, plan" $n -n; done
row "the same, all files written" 8 -o "$work/ranks"
du -sk --apparent-size "$work/ranks" | awk '{ printf "rank files of %d GB", $1 / 1e6 }' >"$work/sizes"
du -sk "$work/ranks" | awk '{ printf " take %d MB of the disk\n", $1 / 1e3 }' >>"$work/sizes"
rm -rf "$work/ranks"
make products 10000
row "10 000 products, one behind another, plan" 8 -n
make gptoss 36
for n in 8 64; do row "36 layers of 128 experts, a node each layer, plan" $n -n; done
make experts 61
row "61 layers of 64 experts, each written out as nodes (264 000), as a page" 8 -n --report html="$work/page.html"
wc -c <"$work/page.html" | awk '{ printf "the page has %d KB\n", $1 / 1e3 }' >>"$work/sizes"
make unet 2
for n in 2 8; do row "diffusion model of 2.6 B parameters with skips, plan" $n -n; done
make skips 10000
row "10 000 nodes with random skips, plan" 8 -n
cat "$work/sizes"
