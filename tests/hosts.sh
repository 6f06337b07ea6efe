# hosts.sh: hosts of this machine, each with a network and a host name of its own, behind a bridge. To be sourced.
#
#   hosts_lack                          what is missing for it, in words; status 1: nothing
#   hosts_up N [MBIT [MICROSECONDS]]    N hosts, the links with so many Mbit/s and so long a delay
#   hosts_run RANKS COMMAND...          under Open MPI, RANKS of them on each host
#   hosts_down
hosts=0
hosts_id=tpc$$
hosts_net=10.77.$(($$ % 250))

hosts_lack() {
    [ "$(id -u)" = 0 ] || { echo "root is needed"; return 0; }
    for tool in ip unshare tc; do command -v $tool >/dev/null || { echo "no $tool"; return 0; }; done
    ${MPIRUN:-mpirun} --version 2>/dev/null | grep -q 'Open MPI' || { echo "no Open MPI"; return 0; }
    ip netns add $hosts_id 2>/dev/null || { echo "no network namespaces"; return 0; }
    ip netns del $hosts_id
    return 1
}

hosts_down() {
    for k in $(seq $hosts); do
        ip netns pids $hosts_id-$k 2>/dev/null | xargs -r kill -9 2>/dev/null
        ip netns del $hosts_id-$k 2>/dev/null
    done
    ip link del $hosts_id 2>/dev/null
    rm -f "${hosts_rsh:-}"
    hosts=0
}

# What a link takes at once after a pause is a packet and what it sends while its timer may be late: together what it sends in 0.25 ms. Longer
# packets take less of a core, of which a network card would take nothing.
host_up() { # NUMBER MBIT MICROSECONDS
    inside="ip netns exec $hosts_id-$1"
    packet=$(($2 == 0 || $2 > 4000 ? 65000 : $2 < 100 ? 1500 : $2 * 16))
    ip netns add $hosts_id-$1 && ip link add $hosts_id.$1 type veth peer name eth0 netns $hosts_id-$1 &&
        ip link set $hosts_id.$1 master $hosts_id mtu $packet up && $inside ip link set lo up &&
        $inside ip addr add $hosts_net.1$1/24 dev eth0 && $inside ip link set eth0 mtu $packet gso_max_size $packet up || return 1
    [ "$2" = 0 ] || $inside tc qdisc add dev eth0 root handle 1: tbf rate "$2mbit" burst $(($2 * 15 + packet + 100)) latency 100ms || return 1
    [ "$3" = 0 ] || $inside tc qdisc add dev eth0 parent 1:1 netem delay "$3us"
}

hosts_up() {
    hosts=$1
    ip link add $hosts_id type bridge && ip link set $hosts_id up || return 1
    for k in $(seq $hosts); do host_up "$k" "${2:-0}" "${3:-0}" || return 1; done
    hosts_rsh=$(mktemp)
    cat >"$hosts_rsh" <<END
#!/bin/sh
k=\${1#$hosts_net.1}
shift
exec ip netns exec $hosts_id-\$k unshare -u sh -c "hostname node\$k; \$*"
END
    chmod +x "$hosts_rsh"
}

hosts_run() {
    each=$1 list=''
    shift
    for k in $(seq $hosts); do list=$list${list:+,}$hosts_net.1$k:$each; done
    # shellcheck disable=SC2016,SC2086 # MPIRUN may be several words
    ip netns exec $hosts_id-1 unshare -u sh -c 'hostname node1; exec "$@"' sh ${MPIRUN:-mpirun} --bind-to none --mca plm_rsh_agent "$hosts_rsh" \
        --mca btl self,vader,tcp --mca oob_tcp_if_include $hosts_net.0/24 --mca btl_tcp_if_include $hosts_net.0/24 --host "$list" \
        -n $((hosts * each)) "$@"
}
