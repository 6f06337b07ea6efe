#!/bin/bash
# What shares by speed are worth on unequal hosts:  unequal.sh BUILD MODEL.onnx
#
# This machine emulates hosts on a switch (../hosts.sh), one rank of one thread on each, with a part of a core by a quota of a control group.
# tpc-run --calibrate measures speeds and links over them. A prompt of $PROMPT tokens, then, by the plan for these speeds and by the best plan
# of equal shares, which alternate; the least of all runs counts. The ideal is that of compute alone: of n hosts with parts p, the sum of 1/n
# and p: n times the least p over the sum.
#   HOSTS ("1,0.333 1,0.6,0.3"), MBIT ("10000 1000"), MICROSECONDS (50), PROMPT (512), ROUNDS (4)
set -u
[ $# = 2 ] || { echo "usage: $0 BUILD MODEL.onnx" >&2; exit 2; }
build=$(realpath "$1") model=$2 prompt=${PROMPT:-512} rounds=${ROUNDS:-4} delay=${MICROSECONDS:-50}
builddir=$build
# shellcheck source=tests/hosts.sh
. "$(dirname "$0")/../hosts.sh"
if lacks=$(hosts_lack); then echo "skipped: $lacks" >&2; exit 77; fi
work=$(mktemp -d)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 LC_ALL=C

# Control groups, of the first version or the second. A network namespace has a /sys of its own, which shows none.
groups=$work/cgroup
mkdir "$groups"
for at in /sys/fs/cgroup/cpu /sys/fs/cgroup; do
    [ -e $at/cgroup.procs ] && mount --bind $at "$groups" && break
done
leave() {
    hosts_down
    for k in 1 2 3 4 5 6 7 8; do rmdir "$groups/tpc-$k" 2>/dev/null; done
    umount "$groups" && rm -rf "$work"
}
trap leave EXIT
part_of() { # HOST PART of a core, in periods of 5 ms
    mkdir -p "$groups/tpc-$1" || return 1
    quota=$(awk -v p="$2" 'BEGIN { printf "%d", 5000 * p }')
    if [ -e "$groups/tpc-$1/cpu.max" ]; then echo "$quota 5000" >"$groups/tpc-$1/cpu.max"
    else echo 5000 >"$groups/tpc-$1/cpu.cfs_period_us" && echo "$quota" >"$groups/tpc-$1/cpu.cfs_quota_us"; fi
}
cat >"$work/on-host" <<END
#!/bin/sh
k=\$(hostname)
echo \$\$ >"$groups/tpc-\${k#node}/cgroup.procs" && mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/cpu || exit 1
if [ -e "$groups/cgroup.controllers" ]; then mount --bind "$groups" /sys/fs/cgroup; else mount --bind "$groups" /sys/fs/cgroup/cpu; fi && exec "\$@"
END
chmod +x "$work/on-host"

least() { # DIR: of a few runs, ms
    hosts_run 1 "$work/on-host" "$build/tpc-run" "$1" --threads 1 --random --dim batch_size=1 --dim "sequence_length=$prompt" --dim past_sequence_length=0 \
        --repeat 2 2>/dev/null | sed -n 's/^time: first .* then min \([0-9.]*\),.*/\1/p'
}
compiled() { # DIR PROFILE
    "$build/tpc-shard" "$model" --tp "$n" -q --force --machine "$2" --workload "batch_size=1,sequence_length=$prompt,past_sequence_length=0" -o "$1"
}
row() {
    hosts_run 1 "$work/on-host" "$build/tpc-run" --calibrate "$work/profile.json" --threads 1 -q >/dev/null 2>&1 || return 1
    # The equal plan is one for ranks that all have the mean speed: the same ratio of compute to links.
    jq '(.speeds // [1]) as $s | .speeds = [range('"$n"') | ($s | add / length)]' "$work/profile.json" >"$work/equal.json"
    compiled "$work/equal" "$work/equal.json" && compiled "$work/unequal" "$work/profile.json" || return 1
    equal=1e9 unequal=1e9
    for _ in $(seq "$rounds"); do
        equal=$(least "$work/equal" | awk -v a="$equal" '{ print $1 < a ? $1 : a }')
        unequal=$(least "$work/unequal" | awk -v a="$unequal" '{ print $1 < a ? $1 : a }')
    done
    predicted=$(jq '.cost.workloads[0].seconds * 1e3' "$work/unequal/plan.json")
    speeds=$(jq -r '(.speeds // []) | map(. * 100 | round / 100) | join(" : ")' "$work/profile.json")
    ideal=$(awk -v h="$parts" -v n="$n" 'BEGIN { m = split(h, p, ","); for (i = 1; i <= m; i++) { s += p[i]; if (i == 1 || p[i] < l) l = p[i] } printf "%.2f", n * l / s }')
    awk -v h="$parts" -v m="$mbit" -v s="$speeds" -v e="$equal" -v u="$unequal" -v p="$predicted" -v i="$ideal" \
        'BEGIN { printf "| %s | %d | %s | %.0f | %.0f | %.2f | %s | %.0f |\n", h, m, s, e, u, u / e, i, p }'
}

echo "| parts of a core | Mbit/s | speeds measured | equal shares, ms | shares by speed, ms | ratio | ideal | predicted, ms |"
echo "|---|---|---|---|---|---|---|---|"
for parts in ${HOSTS:-1,0.333 1,0.6,0.3}; do
    n=$(echo "$parts" | tr , '\n' | wc -l) k=0
    for p in ${parts//,/ }; do k=$((k + 1)) && part_of $k "$p" || exit 1; done
    for mbit in ${MBIT:-10000 1000}; do
        hosts_up "$n" "$mbit" "$delay" && row || exit 1
        hosts_down
    done
done
