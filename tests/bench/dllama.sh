#!/bin/bash
# Times tpc-run beside distributed-llama on hosts that this machine emulates, a rank of one thread on each:  dllama.sh BUILD MODEL.onnx
#
# MODEL.onnx is `samples/export.py OUT llama --size bench`; dllama.py makes a model of its sizes for the other program, which has weights of
# 4 bits and rounds what they meet, and messages, to 8 bits. They take turns, and the least of all runs counts.
#   DLLAMA   its program: `git clone https://github.com/b4rtaz/distributed-llama && make -C distributed-llama dllama`
#   PYTHON   a python with numpy
#   HOSTS ("1 2"), MBIT (1000), MICROSECONDS of delay (0), PROMPT (128), STEPS (16), ROUNDS (3)
set -u
[ $# = 2 ] || { echo "usage: $0 BUILD MODEL.onnx" >&2; exit 2; }
build=$(realpath "$1") builddir=$build model=$2 here=$(dirname "$0") dllama=${DLLAMA:-dllama} prompt=${PROMPT:-128} steps=${STEPS:-16}
skip() { echo "skipped: $1" >&2; exit 77; }
# shellcheck source=tests/hosts.sh
. "$here/../hosts.sh"
if lacks=$(hosts_lack); then skip "$lacks"; fi
dllama=$(command -v "$dllama") || skip "there is no ${DLLAMA:-dllama} (DLLAMA)"
"${PYTHON:-python3}" -c 'import numpy' 2>/dev/null || skip "no numpy for ${PYTHON:-python3} (PYTHON)"
work=$(mktemp -d); trap 'hosts_down; rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 LC_ALL=C

on() { ip netns exec "$hosts_id-$1" "${@:2}"; }
# Each appends the milliseconds of a prompt and of a step to $work/NAME.
time_tpc() { # NAME FOLDER OPTIONS...
    hosts_run 1 "$build/tpc-run" "$2" "${@:3}" --threads 1 --dim batch_size=1 --dim "sequence_length=$prompt" --generate "$steps" --bench=json \
        2>/dev/null | jq -r '[.[] | (.runs | min) * 1000 / (if .test | startswith("tg") then .tokens else 1 end)] | @tsv' >>"$work/$1"
}
time_dllama() { # HOSTS
    local workers=() pids=() k
    for k in $(seq 2 "$1"); do
        on "$k" "$dllama" worker --port 9999 --nthreads 1 >/dev/null 2>&1 & pids+=($!)
        workers+=("$hosts_net.1$k:9999")
    done
    sleep 0.5
    on 1 "$dllama" inference --model "$work/peer/model.m" --tokenizer "$work/peer/tokenizer.t" --buffer-float-type q80 --nthreads 1 \
        --temperature 0 --prompt "$(printf 'a%.0s' $(seq "$prompt"))" --steps $((prompt + steps)) ${workers[@]:+--workers "${workers[@]}"} 2>&1 |
        grep -a 'ms/tok' | sed 's/.*(\([0-9.]*\) ms.*/\1/' | paste - - | awk -v n="$prompt" '{ print $1 * n "\t" $2 }' >>"$work/dllama"
    [ ${#pids[@]} = 0 ] || { kill "${pids[@]}" 2>/dev/null; wait "${pids[@]}" 2>/dev/null; }
}
row() { # HOSTS LABEL FILE
    printf '| %s | %s |' "$1" "$2"
    for column in 1 2; do printf ' %.1f |' "$(cut -f "$column" "$work/$3" | sort -g | head -n 1)"; done
    echo
}

"${PYTHON:-python3}" "$here/dllama.py" "$work/peer" || exit 1
echo "| hosts | program | prompt of $prompt, ms | step, ms |"
echo "|---|---|---|---|"
for n in ${HOSTS:-1 2}; do
    hosts_up "$n" "${MBIT:-1000}" "${MICROSECONDS:-0}" || exit 1
    hosts_run 1 "$build/tpc-run" --calibrate "$work/links.json" --threads 1 -q >/dev/null 2>&1 || exit 1
    "$build/tpc-shard" "$model" --tp "$n" -q --force --weights int4 --machine "$work/links.json" -o "$work/ranks" || exit 1
    rm -f "$work/dllama" "$work/int4" "$work/q8"
    for _ in $(seq "${ROUNDS:-3}"); do
        time_dllama "$n"
        time_tpc int4 "$work/ranks"
        [ "$n" = 1 ] || time_tpc q8 "$work/ranks" --wire q8
    done
    hosts_down
    row "$n" "distributed-llama, Q40" dllama
    row "$n" "tpc, \`--weights int4\`" int4
    [ "$n" = 1 ] || row "$n" "tpc, the same with \`--wire q8\`" q8
done
