#!/bin/sh
# tables.sh PART: trials that differ in one value. Prints each that goes wrong, and how many there were.
. "${srcdir:-.}/tests/lib.sh"
bad=0
rows=$srcdir/tests/train/rows.npy
sizes="--dim batch_size=1 --dim sequence_length=8 --dim past_sequence_length=0"

# try NAME COMMAND...
try() {
    name=$1
    shift
    count=$((count + 1))
    "$@" >"$work/log" 2>&1 || { bad=$((bad + 1)); echo "bad: $name: $(tail -n 3 "$work/log" | tr '\n' ' ')"; }
}
ends() {
    echo "$count trials $1; $bad with findings"
    [ $bad = 0 ]
    exit
}

# ---- shm: ranks exchange whatever /dev/shm holds
in_shm() { # SIZE COMMAND...
    size=$1
    shift
    UCX_TLS=tcp,self unshare -m sh -c 'mount -t tmpfs -o size="$0" tmpfs /dev/shm && exec "$@"' "$size" "$@"
}
runs() { # SIZE RANKS FOLDER
    # shellcheck disable=SC2086
    (MPIRUN="in_shm $1 timeout 60 ${MPIRUN:-mpirun}" && mpirun_n "$2" "$run" "$3" --random $sizes --threads 1 -q) >"$work/out" 2>"$work/err"
    status=$?
    cat "$work/err"
    [ $status = 0 ] && grep -q '^logits' "$work/out"
}
shm() {
    mpi_works || { echo "skipped: $NO_MPI"; exit 77; }
    in_shm 64k true 2>/dev/null || { echo "skipped: no file system can be mounted"; exit 77; }
    for n in 2 8; do $shard "$samples/llama/model.onnx" --tp $n -q -o "$work/llama$n"; done
    for size in 64k 1m 2m 4200k 5m 8500k 9m 16m 20m 64m; do
        for n in 2 8; do
            try "$n ranks, $size" runs $size $n "$work/llama$n"
        done
    done
    $shard "$samples/llama/model.onnx" --tp 34 -q -o "$work/llama34"
    try "34 ranks, 64m" runs 64m 34 "$work/llama34"
    ends "of sizes and ranks"
}

# ---- folders: each is refused by a sentence, within seconds
spoil() { # COMMAND: in a copy of the folder
    rm -rf "$work/spoilt"
    cp -r "$work/one" "$work/spoilt"
    (cd "$work/spoilt" && eval "$1") || { echo "the command that spoils it fails"; return 1; }
    # shellcheck disable=SC2086
    refused 1 'rank|spoilt' timeout 20 "$run" "$work/spoilt" --local 2 --random $sizes --threads 1 -q
}
folders() {
    $shard "$samples/llama/model.onnx" --tp 2 -q -o "$work/one"
    $shard "$samples/llama/model.onnx" --tp 2 --plan "$srcdir/tests/megatron/llama.json" -q -o "$work/other"
    while IFS='|' read -r name command; do
        try "$name" spoil "$command"
    done <<'END'
a rank of another plan|cp ../other/rank-1.onnx ../other/rank-1.data .
the other rank's graph|mv rank-0.onnx x; mv rank-1.onnx rank-0.onnx; mv x rank-1.onnx
the other rank's weights|mv rank-0.data x; mv rank-1.data rank-0.data; mv x rank-1.data
one graph twice|cp rank-0.onnx rank-1.onnx
a graph that is cut|truncate -s 1000 rank-1.onnx
weights that are cut|truncate -s 1000 rank-1.data
no weights|rm rank-1.data
no graph|rm rank-1.onnx
an empty graph|: >rank-1.onnx
zeros without end|ln -sf /dev/zero rank-1.onnx
weights of zeros without end|ln -sf /dev/zero rank-1.data
a pipe|rm rank-1.data; mkfifo rank-1.data
a link to itself|rm rank-1.data; ln -s rank-1.data rank-1.data
a folder|rm rank-1.onnx; mkdir rank-1.onnx
END
    ends "of folders"
}

# ---- data: refused by a sentence, or trained on
data_of() { # STATUS PATTERN OPTIONS COMMAND: the command writes the file d beside the others
    rm -f "$work/d"*
    (cd "$work" && eval "$4") || { echo "the command that writes it fails"; return 1; }
    # shellcheck disable=SC2086
    refused "$1" "$2" timeout 30 "$run" "$work/trained" --local 2 --threads 1 --train -q --data "$work/"d* --batch 2 --steps 2 $3
}
data() {
    rows=$(realpath "$rows")
    $shard "$samples/gpt2/model.onnx" --train --tp 2 -q -o "$work/trained"
    while IFS='|' read -r name pattern options command; do
        try "$name" data_of 1 "$pattern" "$options" "$command"
    done <<'END'
an array that is cut|d.npy|-v|head -c 200 "$rows" >d.npy
an array of another kind|d.npy|-v|echo hello >d.npy
an empty array|d.npy|-v|: >d.npy
no tokens|d.bin|--sequence 8|: >d.bin
half a token|d.bin|--sequence 8|head -c 4097 /dev/zero >d.bin
fewer tokens than a row|d.bin|--sequence 8|head -c 8 /dev/zero >d.bin
tokens that the model has not|65535|--sequence 8|head -c 8192 /dev/zero | tr '\0' '\377' >d.bin
more tokens announced than there are|d.bin|--sequence 8|{ printf '\210\330\064\001\001\0\0\0\0\312\232\073'; head -c 2012 /dev/zero; } >d.bin
a pipe|d.bin|--sequence 8|mkfifo d.bin
a folder|d.bin|--sequence 8|mkdir -p d.bin
END
    rmdir "$work/d.bin" 2>/dev/null
    ends "of data"
}

case $1 in
    shm | folders | data) "$1" ;;
    *) echo "tables.sh: no part $1"; exit 1 ;;
esac
