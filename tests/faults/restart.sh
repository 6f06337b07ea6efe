#!/bin/sh
# restart.sh TPC-RUN FOLDER TOKENIZER TRAIN DATA: a supervised server over emulated hosts, three ranks and a spare, four clients. Ranks are killed and stopped, and links go
# down: the spare takes over, and a host that is back is used again. Then three hosts without a spare lose one: its ranks are made for two. All texts equal those of
# a server that nobody disturbs. At last a training run of TRAIN loses a link. FAULTS: of the first part, with kill, stop and links N that go down. Exit status 77: it can't be tried here.
run=$1
folder=$2
tokenizer=$3
trained=$4
data=$5
. "${srcdir:-.}/tests/hosts.sh"
lacks=$(hosts_lack) && { echo "skipped: $lacks"; exit 77; }
link=$(mktemp)
out=$(mktemp -d)
trap 'hosts_down; rm -rf "$link" "$out"' EXIT INT TERM
hosts_up 4 || exit 1
hosts_link "$link"
launch="$(hosts_mpirun)--host {hosts} -n {ranks}"
# trial FAULTS HOSTS OPTION...
trial() {
    faults=$1 list=$2
    shift 2
    hosts_on 1 "${PYTHON:-python3}" "${srcdir:-.}/tests/serve/restart.py" same "$faults" "$run" "$folder" --serve "$@" --launch "$launch" --hosts "$list" --deterministic \
        --port 0 --threads 1 --tokenizer "$tokenizer"
}
export TOKENS="${TOKENS:-1500}"
at() { echo "$hosts_net.1$1"; }
trial "$(echo "${FAULTS:-kill,stop,link 2,link 3,kill}" | sed "s|link|sh $link|g")" "$(at 1),$(at 2),$(at 3),$(at 4)" --restart || exit 1
trial "sh $link 3" "$(at 1),$(at 2),$(at 3)" --restart || exit 1
train() { # FILE COMMAND...
    file=$1
    shift
    "$@" "$trained" --train --deterministic --threads 1 -q --data "$data" --batch 7 --steps 300 --save-every 20 --save "$out/$file.ck" --log "$out/$file.csv"
}
train alone "$run" --local 3 >/dev/null || exit 1
STRIKE="sh $link 2" train hosts hosts_on 1 "${PYTHON:-python3}" "${srcdir:-.}/tests/train/restart.py" "$out/hosts.csv" 110 "$run" --restart --launch "$launch" \
    --hosts "$(at 1),$(at 2),$(at 3),$(at 4)" >/dev/null || exit 1
cut -d, -f1-5 "$out/alone.csv" >"$out/alone.losses"
cut -d, -f1-5 "$out/hosts.csv" | diff "$out/alone.losses" - && cmp "$out/alone.ck" "$out/hosts.ck"
