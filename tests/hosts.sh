# hosts.sh: hosts of this machine, each with a network and a host name of its own, on a switch (switch.c). To be sourced.
#
#   hosts_lack                          what is missing for it, in words; status 1: nothing
#   hosts_up N [MBIT [MICROSECONDS]]    N hosts, each on a link of MBIT Mbit/s, with a delay of MICROSECONDS between hosts
#   hosts_on K COMMAND...               on host K
#   hosts_mpirun [AGENT]                prints Open MPI's launcher over the links, without hosts; AGENT: a command instead of ssh
#   hosts_run RANKS COMMAND...          under Open MPI, RANKS of them on each host
#   hosts_link FILE                     writes a script: sh FILE K takes the link of host K down, and with TPC_UNDO=1 up again
#   hosts_down
hosts=0
hosts_id=tpc$$
hosts_net=10.77.$(($$ % 250))
hosts_process=

hosts_lack() {
    [ "$(id -u)" = 0 ] || { echo "root is needed"; return 0; }
    [ -x "${builddir:-.}/tests/switch" ] || { echo "no ${builddir:-.}/tests/switch (make check builds it)"; return 0; }
    for tool in ip unshare; do command -v $tool >/dev/null || { echo "no $tool"; return 0; }; done
    [ -c /dev/net/tun ] || { echo "no /dev/net/tun"; return 0; }
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
    [ -z "$hosts_process" ] || kill "$hosts_process"
    rm -f "${hosts_rsh:-}"
    hosts=0 hosts_process=
}

# TCP as most machines have it.
host_up() { # NUMBER
    inside="ip netns exec $hosts_id-$1"
    $inside sysctl -q -w net.ipv4.tcp_congestion_control=cubic 2>/dev/null
    $inside ip link set lo up && $inside ip link set eth0 address 02:00:00:00:00:"$(printf %02x "$1")" up && $inside ip addr add $hosts_net.1$1/24 dev eth0
}

hosts_up() {
    hosts=$1 names=
    for k in $(seq $hosts); do ip netns add $hosts_id-$k && names="$names $hosts_id-$k" || return 1; done
    # shellcheck disable=SC2086 # names are words
    hosts_process=$("${builddir:-.}/tests/switch" "${2:-0}" "${3:-0}" $names) || return 1
    for k in $(seq $hosts); do host_up "$k" || return 1; done
    hosts_rsh=$(mktemp)
    cat >"$hosts_rsh" <<END
#!/bin/sh
k=\${1#$hosts_net.1}
shift
exec ip netns exec $hosts_id-\$k unshare -u sh -c "hostname node\$k; \$*"
END
    chmod +x "$hosts_rsh"
}

hosts_on() {
    # shellcheck disable=SC2016
    ip netns exec "$hosts_id-$1" unshare -u sh -c 'hostname node$1; shift; exec "$@"' sh "$@"
}

# shellcheck disable=SC2120 # scripts that source this give words
hosts_mpirun() {
    echo "${MPIRUN:-mpirun} --bind-to none --mca plm_rsh_agent ${1:-$hosts_rsh} --mca btl self,vader,tcp \
        --mca oob_tcp_if_include $hosts_net.0/24 --mca btl_tcp_if_include $hosts_net.0/24" | tr -s ' \n' ' '
}

hosts_run() {
    each=$1 list=''
    shift
    for k in $(seq $hosts); do list=$list${list:+,}$hosts_net.1$k:$each; done
    # shellcheck disable=SC2046 # words
    hosts_on 1 $(hosts_mpirun) --host "$list" -n $((hosts * each)) "$@"
}

hosts_link() {
    cat >"$1" <<END
[ -n "\$TPC_UNDO" ] && state=up || state=down
exec ip -n $hosts_id-\$1 link set eth0 \$state
END
}
