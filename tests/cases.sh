# Graphs that say in their head what is tested; source it after lib.sh. The first line is the description, further ones '# KEY: VALUE':
#   plan       constraints of the plan file
#   options    of tpc-shard; with --train the step is compared with one rank's
#   gives      of a step: an output and its numbers, exactly
#   ranks      numbers of ranks (2 3)
#   sends      the plan's collectives, counted; nothing is checked without
#   holds      a jq filter that is true of plan.json
#   dims       of one run, as B=2,S=7; one line for each run
#   rel        how far from the unsharded run it may be, where not as usual
#   file       'onnx': the graph as ONNX, in which values of outputs come first
#   refused    a pattern of the sentence by which tpc-shard refuses
# 'random' for the content of a constant stands for whole numbers from -3 to 3 that depend on its name.
said() { sed -n "s/^# $2: //p" "$1"; } # GRAPH KEY

filled() { # GRAPH
    awk '/= random/ {
        type = $0; sub(/^[^[]*\[/, "", type); sub(/\].*/, "", type)
        n = 1
        for (k = split(type, size, ","); k > 0; k--) n *= size[k]
        seed = 7
        for (i = 1; i <= length($2); i++) seed = (seed * 31 + index("abcdefghijklmnopqrstuvwxyz0123456789_", substr($2, i, 1))) % 65521
        text = ""
        for (i = 0; i < n; i++) {
            seed = (seed * 17364 + 1) % 65521
            text = text (i ? ", " : "") seed % 7 - 3
        }
        name = $2; sub(/:$/, "", name)
        sub(/random/, "[" text "] origin " name)      # as an initializer, which no pass folds
    } { print }' "$1"
}

planned() { # GRAPH N OPTION...
    graph=$1 n=$2
    shift 2
    filled "$graph" >"$work/case.graph"
    echo "{\"constraints\": [$(said "$graph" plan)]}" >"$work/case.json"
    model=$work/case.graph
    if [ "$(said "$graph" file)" = onnx ]; then
        $shard "$model" --tp 1 -q --force -o "$work/file" || return 1
        model=$work/file/rank-0.onnx
    fi
    # shellcheck disable=SC2046 # options are words
    $shard "$model" --tp "$n" --plan "$work/case.json" -q --force -o "$work/case" $(said "$graph" options) "$@"
}

whole() { # GRAPH: the file of what is compared with
    case " $(said "$1" options)" in
    *" --train"*)
        # shellcheck disable=SC2046 # options are words
        $shard "$work/case.graph" --tp 1 -q --force -o "$work/one" $(said "$1" options) && echo "$work/one/rank-0.onnx"
        ;;
    *) echo "$work/case.graph" ;;
    esac
}

compared() { # GRAPH N [DIMS]
    rel=$(said "$1" rel)
    gives=$(said "$1" gives)
    # shellcheck disable=SC2046 # so are sizes
    $run "$work/case" --local "$2" --threads 1 -q --random 1 --check "$(whole "$1")" ${rel:+--rel "$rel"} \
        $(echo "$3" | sed 's/[^,]*=[^,]*/--dim &/g; s/,/ /g') ${gives:+--output "$work/given"} || return 1
    [ -z "$gives" ] || given_as $gives
}
given_as() { # OUTPUT NUMBER...
    file=$work/given/$1.npy
    shift
    found=$(echo $(tail -c $((4 * $#)) "$file" | od -An -v -tf4))
    rm -rf "$work/given"
    [ "$found" = "$*" ] || { echo "$found, expected $*"; return 1; }
}

sends() { # COUNTED
    found=$(jq -c '[.collectives[].op] | group_by(.) | map({(.[0]): length}) | add // {}' "$work/case/plan.json")
    [ "$found" = "$1" ] || { echo "collectives: $found, expected $1"; return 1; }
}

holds_at() { # GRAPH N
    planned "$1" "$2" || return 1
    [ -z "$(said "$1" sends)" ] || sends "$(said "$1" sends)" || return 1
    [ -z "$(said "$1" holds)" ] || jq -e "$(said "$1" holds)" "$work/case/plan.json" || { jq -c '.weights, .nodes' "$work/case/plan.json"; return 1; }
    [ -n "$(said "$1" dims)" ] || compared "$@" || return 1
    for dims in $(said "$1" dims); do compared "$@" "$dims" || return 1; done
}

case_holds() { # GRAPH
    ranks=$(said "$1" ranks)
    for n in ${ranks:-2 3}; do
        if [ -n "$(said "$1" refused)" ]; then refused 1 "$(said "$1" refused)" planned "$1" "$n"; else holds_at "$1" "$n"; fi || { echo "--tp $n"; return 1; }
    done
}

# cases FOLDER [NAME...]: an ok line for each graph, or for those named.
cases() {
    folder=$1
    shift
    [ $# -gt 0 ] || set -- $(cd "$folder" && ls | sed -n 's/\.graph$//p')
    for name in "$@"; do ok "$(sed -n '1s/^# //p' "$folder/$name.graph")" case_holds "$folder/$name.graph"; done
}
