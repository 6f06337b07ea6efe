#!/bin/sh
# aarch64.sh FOLDER [few]: tpc for 64-bit ARM on a Debian machine that is none: built by a cross compiler against Debian's libraries, run by
# qemu. It prints TAP: unit tests of kernels with every row of their tables on several processors, samples by threads, a step of training, the
# bits of --deterministic as on this machine, and instructions per multiply-add out of the object code. No times: qemu has none.
# FOLDER keeps libraries and build, for the next call; `few`: what shows most in a few minutes, as .ci/run has it. Needs what
# `setup.sh arm` installs, and a build in this folder.
. "${srcdir:-.}/tests/lib.sh"
[ $# = 1 ] || [ "${2:-}" = few ] || { echo "usage: tests/aarch64.sh FOLDER [few]" >&2; exit 2; }
[ "$(uname -m)" != aarch64 ] || { echo "1..0 # SKIP this processor is one: make check runs its kernels"; exit 0; }
for tool in aarch64-linux-gnu-gcc qemu-aarch64-static apt-get dpkg-deb; do
    command -v $tool >/dev/null || { echo "1..0 # SKIP no $tool: ./setup.sh arm"; exit 0; }
done
mkdir -p "$1/root" "$1/build" "$1/apt/lists/partial" "$1/apt/cache/archives/partial"
cache=$(command -v ccache || :)
folder=$(cd "$1" && pwd) source=$(cd "$srcdir" && pwd)
units="test_byte_codes test_bytes test_codes test_conv_tiles test_few_rows test_integer_depthwise test_results test_tile"
models="bert-qdq gpt2 llama-bf16 llama-f16 llama-genai-int4 vit"
counted=$(sed -n 's,.* instructions \([a-z_]*/[a-z_]*\) .*,src/kern/\1.o,p' "$srcdir/tests/aarch64.sh")
packages="libdnnl-dev libprotobuf-c-dev libjansson-dev libxxhash-dev libpcre2-dev libutf8proc-dev check uthash-dev libc6-dev libgcc-s1"
werror=
[ -n "${2:-}" ] || models=$(models) units="$units test_copy" werror=--enable-werror

# Packages of another architecture, unpacked beside the system's own.
fetch_libraries() {
    [ ! -e "$folder/root/usr/include/dnnl.h" ] || return 0
    : >"$folder/apt/status"
    cat >"$folder/apt/conf" <<EOF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
Dir::State "$folder/apt";
Dir::State::status "$folder/apt/status";
Dir::Cache "$folder/apt/cache";
Debug::NoLocking "true";
Acquire::Retries "3";
Acquire::http::Timeout "60";
EOF
    export APT_CONFIG="$folder/apt/conf"
    # shellcheck disable=SC2086 # words
    apt-get update -qq && apt-get install -qq -y -d $packages || return 1
    for package in "$folder"/apt/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$folder/root" || return 1
    done
}

build() (
    (cd "$source" && { git ls-files -z; git ls-files -z -o --exclude-standard; } | tar -c --null -T -) | tar -x --keep-newer-files -C "$folder/build" 2>/dev/null
    cd "$folder/build" || return 1
    # Of a folder beside: a cache of objects knows them wherever FOLDER is.
    export PKG_CONFIG_LIBDIR=../root/usr/lib/aarch64-linux-gnu/pkgconfig:../root/usr/share/pkgconfig PKG_CONFIG_SYSROOT_DIR=../root
    [ -e configure ] || autoreconf -i || return 1
    [ -e Makefile ] || ./configure --quiet --host=aarch64-linux-gnu CC="$cache aarch64-linux-gnu-gcc --sysroot=../root" CFLAGS=-O1 \
        --without-mpi --without-serve $werror || return 1
    # The object code of these is counted; the rest runs a few times.
    # shellcheck disable=SC2046,SC2086 # words
    make --quiet -j "$(nproc)" CFLAGS=-O2 $counted &&
        make --quiet -j "$(nproc)" tpc-run tpc-shard $(for unit in $units; do echo "tests/unit/$unit"; done)
)

# Files with instruction sets of their own: a version of clang may have others than gcc.
clang_knows() (
    cd "$folder/build" || return 1
    for file in $(grep -l kern/core/intrinsics.h src/kern/*/*.c); do
        clang --target=aarch64-linux-gnu --sysroot=../root -DHAVE_CONFIG_H -std=gnu11 -Isrc -I. -Wall -Wextra -Wpedantic -Wshadow -Wconversion \
            -Wno-pass-failed -Werror -O1 -fsyntax-only "$file" || return 1
    done
)

arm() { # PROCESSOR PROGRAM ARGUMENTS...
    cpu=$1 program=$2
    shift 2
    CK_DEFAULT_TIMEOUT=600 timeout 600 qemu-aarch64-static -L "$folder/root" -cpu "$cpu" "$folder/build/$program" "$@"
}

sample() { # MODEL RANKS PROCESSOR
    [ -d "$work/$1.$2" ] || arm max tpc-shard "$samples/$1/model.onnx" --tp "$2" -q -o "$work/$1.$2" || return 1
    arm "$3" tpc-run "$work/$1.$2" -q --local "$2" --threads 1 --test-data "$samples/$1/test_data_set_0"
}

same_bits() { # MODEL RANKS: as one rank on this machine
    $run "$samples/$1/model.onnx" -q --threads 1 --deterministic --test-data "$samples/$1/test_data_set_0" --output "$work/here.$1" &&
        arm max tpc-run "$work/$1.$2" -q --local "$2" --threads 1 --deterministic --test-data "$samples/$1/test_data_set_0" \
            --output "$work/there.$1" && [ -n "$(ls "$work/there.$1")" ] && diff -r "$work/here.$1" "$work/there.$1"
}

step() { # OPTION...
    arm max tpc-run "$work/train" --local 2 --threads 1 --train --data "$source/tests/train/rows.npy" --batch 7 --steps 1 "$@"
}
train() { arm max tpc-shard "$samples/gpt2/model.onnx" --tp 2 --train -q -o "$work/train" && step; }

# In bf16, which a processor without it tells of: the loss is nearly that of f32.
train_fast() {
    step >"$work/f32" 2>&1 && step --fast >"$work/bf16" 2>&1 && cat "$work/f32" "$work/bf16" && ! grep "no products in bf16" "$work/bf16" &&
        sed -n 's/.* loss \([0-9.]*\),.*/\1/p' "$work/f32" "$work/bf16" | tr '\n' ' ' |
        awk '{ off = ($1 - $2) / $1; near = NF == 2 && $1 != $2 && off * off < 1e-6 } END { exit !near }'
}

# As gcc 12 makes it, and some: instructions of the best loop, where sums have registers.
instructions() { # OBJECT FUNCTION=MOST...
    object=$1
    shift
    "$python" "$source/tests/instructions.py" aarch64-linux-gnu-objdump "$folder/build/src/kern/$object.o" "$@"
}

fetch_libraries >"$work/fetched" 2>&1 || { echo "1..0 # SKIP no packages for arm64: $(tail -n 1 "$work/fetched")"; exit 0; }
last=40
ok "it builds" build
[ -x "$folder/build/tpc-run" ] || { plan; exit 1; }
last=5
if command -v clang >/dev/null; then ok "clang knows its instructions" clang_knows; else skip "clang knows its instructions" "no clang"; fi
for unit in $units; do
    ok "$unit, all sets" arm max "tests/unit/$unit"
done
for m in $models; do
    for n in 1 2 4; do
        ok "$m on $n ranks" sample "$m" $n max
    done
done
for cpu in cortex-a53 cortex-a76 neoverse-n1; do
    [ $cpu = cortex-a53 ] || [ -z "${2:-}" ] || continue
    ok "test_bytes on $cpu" arm $cpu tests/unit/test_bytes
    ok "llama-genai-int4 on 2 ranks of $cpu" sample llama-genai-int4 2 $cpu
    ok "bert-qdq on 2 ranks of $cpu" sample bert-qdq 2 $cpu
done
ok "gpt2: the bits of this machine" same_bits gpt2 2
ok "llama-genai-int4: the bits of this machine" same_bits llama-genai-int4 2
ok "a step of training" train
ok "a step of training with --fast" train_fast
ok_python "" "codes" instructions codes/dot neon_dot=0.36 neon_dot_dot=0.15 neon_i8mm_dot=0.15
ok_python "" "bytes" instructions gemm/bytes_dot plain_row=1.2 neon_straight=0.6 neon_dots_straight=0.15 neon_mmla_straight=0.08
ok_python "" "few rows" instructions attention/few_rows neon_scores=0.65 neon_values=0.65
ok_python "" "depthwise" instructions conv/integer_depthwise_sums plain_sums=1.2 neon_sums=0.6
ok_python "" "depthwise of floats" instructions conv/conv_tiles depthwise_share=0.7
ok_python "" "few bits as floats" instructions product/matmul_nbits dot_2=1.6 dot_4=1.7 dot_8=1.9
ok_python "" "results of integers" instructions conv/integer_results neon_whole:fcvtns=2
ok_python "" "codes of bytes" instructions core/byte_codes byte_codes_decode:ucvtf=2.2 round_block:frintn=4.2 byte_codes_map:tbl=1.1
ok_python "" "pairs of codes" instructions core/byte_codes combine_vectors:frintn=6.2 byte_codes_range:fcmgt=1.5
ok_python "" "tiles of bf16" instructions gemm/narrow neon_product=0.12
ok_python "" "tiles" instructions core/tile lanes_product=0.5
plan
