#!/bin/bash
# Times products in bf16 beside those in f32:  bf16.sh BUILD MODEL.onnx [OPTION..]
#
# All take turns, $ROUNDS times, and the minima are compared, on one thread: tpc-run on the model, with --fast, and on the model stored by
# --weights bf16, and OpenVINO in f32 and bf16 where $PYTHON has it. A decoder (with past_sequence_length) runs a step on 128 and prompts
# of 128 and 512; for another model, OPTIONs of tpc-run are its sizes. Ratios are to tpc-run in f32; the last is --fast to OpenVINO's bf16.
#   PYTHON   a python with numpy, onnx and openvino
#   WITH     a command that runs each program, as taskset -c 1
#   ROUNDS (3), REPEAT (6)
set -u
[ $# -ge 2 ] || { echo "usage: $0 BUILD MODEL.onnx [OPTION..]" >&2; exit 2; }
build=$1 model=$2 python=${PYTHON:-python3} repeat=${REPEAT:-6} here=$(dirname "$0")
shift 2
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
"$build/tpc-shard" "$model" --tp 1 --weights bf16 -q -o "$work/stored" || exit 1

tpc() { # FOLDER-OR-MODEL OPTION..
    ${WITH:-} "$build/tpc-run" "$1" --local 1 --threads 1 --random -q --repeat "$repeat" "${@:2}" |
        sed -n 's/^time: first .* then min \([0-9.]*\),.*/\1/p'
}
openvino() { # PRECISION
    [ -z "${rows:-}" ] || ${WITH:-} "$python" "$here/peer.py" openvino "$model" --rows "$rows" --past "$past" --threads 1 --repeat "$repeat" --precision "$1" 2>"$work/why"
}
least() { sort -g "$1" 2>/dev/null | head -n 1; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf(a > 0 && b > 0 ? " %.2f |" : " - |", a / (b > 0 ? b : 1)) }'; }
row() { # LABEL OPTION..
    label=$1
    shift
    rm -f "$work"/*.ms
    for _ in $(seq "${ROUNDS:-3}"); do
        tpc "$model" "$@" >>"$work/f32.ms"
        tpc "$work/stored" "$@" >>"$work/stored.ms"
        tpc "$model" --fast "$@" >>"$work/fast.ms"
        openvino f32 >>"$work/ov32.ms"
        openvino bf16 >>"$work/ov16.ms"
    done
    f32=$(least "$work/f32.ms") stored=$(least "$work/stored.ms") fast=$(least "$work/fast.ms") ov32=$(least "$work/ov32.ms") ov16=$(least "$work/ov16.ms")
    printf '| %s | %s | %.1f | %.1f | %.1f |%s %.1f |%s%s\n' "$(basename "${model%/model.onnx}" .onnx)" "$label" "${ov32:-0}" "${ov16:-0}" "$f32" "$(printf ' %.1f |' "$stored"; ratio "$stored" "$f32")" \
        "$fast" "$(ratio "$fast" "$f32")" "$(ratio "$fast" "$ov16")"
}
echo '| model | work | OpenVINO f32 | OpenVINO bf16 | tpc f32 | `--weights bf16` | to f32 | `--fast` | to f32 | to OpenVINO bf16 |'
echo '|---|---|---|---|---|---|---|---|---|---|'
if [ $# -gt 0 ] || ! "$build/tpc-shard" --print "$model" | grep past_sequence_length >/dev/null; then
    row run "$@"
    exit
fi
for work_of in "1 128 step on 128" "128 0 prompt of 128" "512 0 prompt of 512"; do
    read -r rows past label <<<"$work_of"
    row "$label" --dim batch_size=1 --dim "sequence_length=$rows" --dim "past_sequence_length=$past"
done
