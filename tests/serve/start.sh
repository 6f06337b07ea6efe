# Shared by the tests of the server: starts one in the background and ends it. Source it after lib.sh.
if ! $run --help | grep -q -e '--serve'; then
    skip "the server" "built without libmicrohttpd, or without text"
    plan
    exit
fi
if lacks sys; then skip "the server" "no $python"; plan; exit; fi
"$python" "$srcdir/tests/tokenizer/bytes.py" >"$work/tokenizer.json"
server=
stop() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || :
    [ ! -s "$work/launcher" ] || kill "$(cat "$work/launcher")" 2>/dev/null || :
}
trap 'stop; rm -rf "$work"' EXIT INT TERM

starts() { # COMMAND...: in the background, at a free port unless it names one; sets $server and $port
    case " $* " in *" --port "*) ;; *) set -- "$@" --port 0 ;; esac
    : >"$work/served" # what the last server said would be read before the next one says anything
    "$@" --tokenizer "$work/tokenizer.json" --serve --threads 1 2>"$work/served" &
    server=$!
    for _ in $(seq 600); do
        port=$(LC_ALL=C sed -n 's|.* at http://.*:\([0-9]*\)/v1,.*|\1|p' "$work/served")
        [ -n "$port" ] && return
        kill -0 $server 2>/dev/null || break
        sleep 0.1
    done
    cat "$work/served"
    return 1
}
# Under MPI the launcher itself is asked to end: what runs in the background is the shell around it, which would leave it behind.
mpi_starts() { # COMMAND...: on 2 ranks
    # shellcheck disable=SC2016,SC2086 # MPIRUN may be several words
    starts with_mpi sh -c 'echo $$ >"$0"; exec "$@"' "$work/launcher" ${MPIRUN:-mpirun} -n 2 "$@"
}
mpi_ends() {
    kill "$(cat "$work/launcher")" || return 1
    wait $server || :
    rm "$work/launcher"
    server=
}
ends() { # in order
    kill $server && wait $server && tail -n 1 "$work/served" | grep 'ended after [0-9]* texts\?$'
}
