#!/bin/sh
# vanish.sh TPC-RUN FOLDER: two hosts (network namespaces) run a folder of two ranks without end; the link of the second goes down. The ranks on
# the first must end within two minutes, with a sentence that names the host. Exit status 77: it can't be tried here. Needs root and Open MPI.
run=$1
folder=$2
[ "$(id -u)" = 0 ] && command -v ip unshare >/dev/null && mpirun --version 2>/dev/null | grep -q 'Open MPI' || { echo "skipped: no root, ip, unshare or Open MPI"; exit 77; }
id=tpc$$
work=$(mktemp -d)
clean() {
    for k in 1 2; do ip netns pids $id-$k 2>/dev/null | xargs -r kill -9 2>/dev/null; ip netns del $id-$k 2>/dev/null; done
    ip link del $id 2>/dev/null
    rm -rf "$work"
}
trap clean EXIT INT TERM
ip link add $id type bridge 2>/dev/null && ip link set $id up && ip netns add $id-1 && ip netns add $id-2 || { echo "skipped: no network namespaces"; exit 77; }
for k in 1 2; do
    ip link add $id.$k type veth peer name eth0 netns $id-$k && ip link set $id.$k master $id up && ip -n $id-$k link set lo up &&
        ip -n $id-$k addr add 10.77.$(($$ % 250)).1$k/24 dev eth0 && ip -n $id-$k link set eth0 up || exit 1
done
net=10.77.$(($$ % 250))
cat >"$work/rsh" <<END
#!/bin/sh
k=\${1#$net.1}
shift
exec ip netns exec $id-\$k unshare -u sh -c "hostname node\$k; \$*"
END
chmod +x "$work/rsh"
# shellcheck disable=SC2016
ip netns exec $id-1 unshare -u sh -c 'hostname node1; exec mpirun "$@"' mpirun --bind-to none --mca plm_rsh_agent "$work/rsh" \
    --mca btl self,tcp --mca oob_tcp_if_include $net.0/24 --mca btl_tcp_if_include $net.0/24 --host $net.11:1,$net.12:1 -n 2 \
    "$run" "$folder" --random --dim batch_size=1 --dim sequence_length=16 --dim past_sequence_length=8 --repeat 100000000 --threads 1 -q >"$work/said" 2>&1 &
sleep 5
ip link set $id.2 down
for wait in $(seq 120); do
    grep -q '^tpc-run: rank 0 on node1: node2, the host of rank 1, does not answer' "$work/said" && exit 0
    sleep 1
done
echo "no sentence within $wait s:"
cat "$work/said"
exit 1
