#!/bin/sh
# many.sh BUILD: ranks that are killed and stopped, links that go down, on three hosts that this machine emulates, many times (many.py): a server with --deterministic
# and without, and training. Commands on other hosts are no children of the supervisor, and what reaches them crosses the links (host.py). Prints tables. As root; exit status 77: it can't
# be tried here. KILLS, LINKS, STOPS, SEED, TOKENS (600): of the trial. WAYS: same, free and train.
[ $# = 1 ] || { echo "usage: $0 BUILD" >&2; exit 2; }
build=$(realpath "$1") builddir=$build srcdir=$(realpath "$(dirname "$0")/../..")
. "$srcdir/tests/hosts.sh"
lacks=$(hosts_lack) && { echo "skipped: $lacks"; exit 77; }
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'hosts_down; rm -rf "$work"' EXIT INT TERM
export TOKENS="${TOKENS:-600}" HOSTS=3 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
"$python" "$srcdir/tests/tokenizer/bytes.py" >"$work/tokenizer.json" && "$build/tpc-shard" "$srcdir/samples/llama/model.onnx" --tp 3 -q -o "$work/llama" || exit 1
hosts_up 3 || exit 1

agent=$work/agent
printf '#!/bin/sh\nexec %s %s/tests/faults/host.py run "$@"\n' "$python" "$srcdir" >"$agent"
chmod +x "$agent"
for k in 1 2 3; do
    : >"$work/host$k"
    hosts_on $k "$python" "$srcdir/tests/faults/host.py" serve "$hosts_net.1$k" >"$work/host$k" &
    until grep -q listens "$work/host$k"; do sleep 0.1; done
done
hosts_link "$work/link"
launch="$(hosts_mpirun "$agent")--host {hosts} -n {ranks}"
list=$hosts_net.11,$hosts_net.12,$hosts_net.13
LINK="sh $work/link"
export LINK
# A first run of all steps tells what the losses are.
trains() {
    data=$srcdir/tests/train/rows.npy train="--train --deterministic --threads 1 -q --data $data --batch 7 --steps ${STEPS:-12000} --save-every 20"
    "$build/tpc-shard" "$srcdir/samples/gpt2/model.onnx" --train --tp 3 -q -o "$work/train" || return 1
    for k in 1 2; do "$build/tpc-shard" "$srcdir/samples/gpt2/model.onnx" --train --tp $k -q -o "$work/train.$k-ranks" || return 1; done
    # shellcheck disable=SC2086 # options are words
    "$build/tpc-run" "$work/train" --local 3 $train --log "$work/wanted.csv" >/dev/null || return 1
    # shellcheck disable=SC2086
    hosts_on 1 "$python" "$srcdir/tests/faults/many_train.py" "$work/log.csv" "$work/wanted.csv" "$build/tpc-run" "$work/train" $train --save "$work/ck" --log "$work/log.csv" \
        --restart --restart-limit 1000:10 --launch "$launch" --hosts "$list"
}
serves() { # same|free [OPTION]
    export PLAIN="$build/tpc-run $work/plain{ranks} --local {ranks} --serve --port 0 --threads 1 --tokenizer $work/tokenizer.json"
    for k in 1 2 3; do "$build/tpc-shard" "$srcdir/samples/llama/model.onnx" --tp $k -q -o "$work/plain$k" --force || return 1; done
    way=$1
    shift
    hosts_on 1 "$python" "$srcdir/tests/faults/many.py" "$way" "$build/tpc-run" "$work/llama" --serve --restart --restart-limit 1000:10 --launch "$launch" --hosts "$list" \
        --port 0 --threads 1 --tokenizer "$work/tokenizer.json" "$@"
}
status=0
for way in ${WAYS:-same free train}; do
    echo "$way:"
    case $way in
    same) serves same --deterministic ;;
    free) serves free ;;
    train) trains ;;
    esac || status=1
done
exit $status
