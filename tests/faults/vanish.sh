#!/bin/sh
# vanish.sh TPC-RUN FOLDER: two hosts run a folder of two ranks without end; the link of the second goes down. The ranks on the first must end
# within two minutes, with a sentence that names the host. Exit status 77: it can't be tried here.
run=$1
folder=$2
. "${srcdir:-.}/tests/hosts.sh"
lacks=$(hosts_lack) && { echo "skipped: $lacks"; exit 77; }
said=$(mktemp)
trap 'hosts_down; rm -f "$said"' EXIT INT TERM
hosts_up 2 || exit 1
hosts_run 1 "$run" "$folder" --random --dim batch_size=1 --dim sequence_length=16 --dim past_sequence_length=8 --repeat 100000000 --threads 1 -q \
    >"$said" 2>&1 &
sleep 5
ip -n "$hosts_id-2" link set eth0 down
for wait in $(seq 120); do
    grep -q '^tpc-run: rank 0 on node1: node2, the host of rank 1, does not answer' "$said" && exit 0
    sleep 1
done
echo "no sentence within $wait s:"
cat "$said"
exit 1
