# Rules for the sources of the current folder, for tests/lint.tap. Each prints a line for each fault, whose first word is what is at fault;
# $objects is the build folder. Source it.

# generated headers are not ours to format; $lint_in: only sources of that folder
sources() { find ${lint_in:-src passes} -name '*.[ch]' ! -name '*.pb-c.*' ! -path src/plan/html/page.h ! -path src/serve/page/page.h ! -path src/cli/build.h ! -path src/ir/operands.h | sort; }
all_sources() { sources; [ -n "${lint_in:-}" ] || find tests -name '*.[ch]' | sort; }

# Of each path: its layer, its level, its place among the layer's folders (-1: not in the list); of a header of a whole layer: before all.
PLACES='
function read_layers(   line, word, n, k) {
    while ((getline line < "tests/lint/layers") > 0) {
        if (line ~ /^#/) continue
        n = split(line, word, " ")
        if (word[1] == "seam") { seam[word[2]]; continue }
        level[word[2]] = word[1]
        if (n == 2) spot[word[2] "/."] = 1
        for (k = 3; k <= n; k++) spot[word[2] "/" word[k]] = k - 2
    }
}
function place(path,   part, n) {
    sub(/^src\//, "", path)
    n = split(path, part, "/")
    layer = part[1]; folder = n > 2 ? part[2] : "."
    if (!(layer in level)) return 0
    at = (layer "/" folder) in spot ? spot[layer "/" folder] : -1
    if (n == 2 && part[2] ~ /\.h$/) at = 0
    return 1
}
# what is wrong with a file that uses another
function upward(user, used,   from, from_at) {
    if (!place(user) || at < 0) return "is not in tests/lint/layers"
    from = layer; from_at = at
    if (!place(used)) return ""
    if (at < 0) return ""
    if (from == layer) return from_at > 0 && at > from_at ? "is before " layer "/" folder : ""
    return level[layer] < level[from] ? "" : "is not above " layer
}'

includes() {
    # shellcheck disable=SC2046 # files are words
    awk "$PLACES"'
    BEGIN { read_layers() }
    /^#include "/ {
        split($0, quoted, "\"")
        if (quoted[2] !~ /\// || quoted[2] ~ /^config/) next
        fault = upward(FILENAME, quoted[2])
        if (fault != "" && !(quoted[2] in seam)) print FILENAME "->" quoted[2] " " fault
    }' $(sources)
}

# Sources that this build has: it may be one without collectives for ONNX Runtime.
built() { if grep -q '^#libort_a_SOURCES' "$objects/Makefile"; then sources | grep -v '^src/ort/'; else sources; fi; }

# symbols: PATH TYPE NAME of every external symbol of the objects
symbols() {
    for f in $(built | grep '\.c$'); do
        [ -f "$objects/${f%.c}.o" ] || echo "$f - is_not_built"
        echo "$objects/${f%.c}.o"
    done | tee "$work/objects" | grep ' - '
    grep -v ' - ' "$work/objects" | xargs nm -A -g 2>/dev/null | awk -v top="$objects/" '
        { path = $1; sub(/:.*/, "", path); path = substr(path, length(top) + 1); sub(/\.o$/, ".c", path); print path, $(NF - 1), $NF }'
}

links() { # nothing is called, and no table used, of a layer or folder above
    symbols >"$work/symbols"
    awk "$PLACES"'
    BEGIN { read_layers() }
    $2 == "-" { print $1, $3; next }
    FNR == NR { if ($2 ~ /^[TDBRCGSVW]$/) home[$3] = $1; next }
    $2 == "U" && $3 in home {
        fault = upward($1, home[$3])
        if (fault != "" && !($3 in seam)) print $1 "->" $3 " " fault
    }' "$work/symbols" "$work/symbols"
}

# A file that calls or reads of another, and through any number of files is called by it, is in a circle with it. Of each circle: its first
# file and how many it has. Seams (tests/lint/layers) do not count.
circles() {
    symbols >"$work/symbols"
    awk "$PLACES"'
    BEGIN { read_layers() }
    $2 == "-" { print $1, $3; next }
    FNR == NR { if ($2 ~ /^[TDBRCGSVW]$/) home[$3] = $1; next }
    $2 == "U" && $3 in home && home[$3] != $1 && !($3 in seam) && !(($1, home[$3]) in seen) {
        seen[$1, home[$3]]
        uses[$1, ++count[$1]] = home[$3]
    }
    # strongly connected components (Tarjan, "Depth-first search and linear graph algorithms", 1972)
    function visit(v,   i, w, n, first, names) {
        number[v] = low[v] = ++last
        stack[++top] = v
        open[v] = 1
        for (i = 1; i <= count[v]; i++) {
            w = uses[v, i]
            if (!(w in number)) visit(w)
            if (open[w] && low[w] < low[v]) low[v] = low[w]
        }
        if (low[v] < number[v]) return
        do {
            w = stack[top--]
            open[w] = 0
            first = n++ == 0 || w < first ? w : first
            names = names " " w
        } while (w != v)
        if (n > 1) print first ":" n " files call each other in a circle:" names
    }
    END { for (file in count) if (!(file in number)) visit(file) }' "$work/symbols" "$work/symbols"
}

prefix() {
    symbols >"$work/symbols"
    awk '
    function begins(name, word) {
        if (name == word || index(name, word "_") == 1) return 1
        return sub(/s$/, "", word) && word != "" && (name == word || index(name, word "_") == 1)
    }
    FNR == NR { if ($0 !~ /^#/) { places[++n] = $1; $1 = ""; prefixes[n] = $0 } next }
    $2 == "-" { print $1, $3; next }
    $2 ~ /^[TDBRCGSVW]$/ && $3 !~ /^__|\./ && $3 != "main" {
        path = $1; sub(/\.c$/, "", path)
        parts = split(path, part, "/")
        for (k = part[1] == "src" ? 2 : 1; k < parts; k++) if (begins($3, part[k])) next
        for (stem = part[parts]; ; sub(/_[^_]*$/, "", stem)) {
            if (begins($3, stem)) next
            if (stem !~ /_/) break
        }
        for (k = 1; k <= n; k++) {
            if (index(path "/", places[k] "/") != 1) continue
            words = split(prefixes[k], word, " ")
            for (w = 1; w <= words; w++) if (begins($3, word[w])) next
        }
        faults[$1]++
        names[$1] = names[$1] " " $3
    }
    END { for (path in faults) print path ":" faults[path] " names begin with none of its folders, its file and tests/lint/prefixes:" names[path] }
    ' tests/lint/prefixes "$work/symbols"
}

format() {
    all_sources | xargs -n 50 "$formatter" --dry-run -Werror 2>&1 | awk -F: '/error:/ { print $1 " is not as clang-format writes it, line " $2 }'
}

line() { # LONGEST
    all_sources | xargs awk -v most="$1" 'FNR == 1 { if (n) print last ":" n " lines are longer than " most; n = 0 }
        { last = FILENAME; n += length($0) > most } END { if (n) print last ":" n " lines are longer than " most }'
}

function_lines() { # LONGEST: what stands between braces in the first column
    all_sources | grep '\.c$' | xargs awk -v most="$1" 'FNR == 1 { open = 0 } /^\{/ { open = FNR }
        /^\}/ { if (open && FNR - open - 1 > most) print FILENAME ":" open " has " FNR - open - 1 " lines, at most " most; open = 0 }'
}

file_lines() { # LONGEST FILE...
    most=$1
    shift
    wc -l "$@" | awk -v most="$most" '$2 != "total" && $1 > most { print $2 " has " $1 " lines, at most " most }'
}

comment() { # every file begins with what it is
    all_sources | xargs awk 'FNR == 1 { seen[FILENAME]; if ($0 !~ /^\/\*/) print FILENAME " does not begin with a comment" }
        END { for (i = 1; i < ARGC; i++) if (!(ARGV[i] in seen)) print ARGV[i] " does not begin with a comment" }'
}

section() { # a line "---- title ----" ends on its line; the formatter breaks a longer one
    all_sources | xargs awk '/^ *\/\* ----/ && !/\*\// { print FILENAME ":" FNR " has a section line that does not end" }'
}

# Comments name sources, passes ("the pass x") and functions ("f_x()") that exist; llm.c is a project, linux/ and asm/ are the system's.
stale() {
    { all_sources; find schemas src passes samples -name '*.def' -o -path 'samples/*.[ch]'; } 2>/dev/null | sort -u >"$work/commented"
    # shellcheck disable=SC2046 # files are words
    awk '
    BEGIN { split("that which after manager", word, " "); for (i in word) pass[word[i]]; known["llm.c"] }
    function comments(line,   out, at) { # of a line; code: the rest
        out = ""; code = ""
        while (line != "") {
            if (!inside) {
                if (!(at = index(line, "/*"))) { code = code line; break }
                code = code substr(line, 1, at - 1); line = substr(line, at + 2); inside = 1
            }
            if (!(at = index(line, "*/"))) { out = out " " line; break }
            out = out " " substr(line, 1, at - 1); line = substr(line, at + 2); inside = 0
        }
        return out
    }
    function names(pattern, what, cut,   rest, name) {
        rest = text
        while (match(rest, pattern)) {
            name = substr(rest, RSTART + cut, RLENGTH - cut); rest = substr(rest, RSTART + RLENGTH)
            if (what == "file") sub(/[^A-Za-z0-9_]$/, "", name)
            found[++n] = name; kind[n] = what; where[n] = FILENAME ":" FNR
        }
    }
    NR == FNR { path = $0; do known[path]; while (sub(/^[^\/]*\//, "", path)); next }
    FNR == 1 { inside = 0 }
    FILENAME == "passes/passes.def" && /^PASS\(/ { split($0, part, /[(,]/); pass[part[2]] }
    /#include/ { split($0, part, /[<>"]/); known[part[2]] }
    {
        if (!inside) gsub(/"([^"\\]|\\.)*"/, "")
        text = comments($0)
        names("[A-Za-z0-9_./-]+[.](c|h|def)($|[^A-Za-z0-9_.])", "file", 0)
        names("the pass [a-z_]+", "pass", 9)
        names("[a-z][a-z0-9]*_[a-z0-9_]+[(]", "function", 0)
        while (match(code, /[a-z_][a-z0-9_]*\(/)) { called[substr(code, RSTART, RLENGTH)]; code = substr(code, RSTART + RLENGTH) }
    }
    END {
        for (i = 1; i <= n; i++) {
            name = found[i]
            if (kind[i] == "file" ? !(name in known) && name !~ /^(linux|asm)\// : kind[i] == "pass" ? !(name in pass) : !(name in called))
                print where[i] " names the " kind[i] " " name ", which does not exist"
        }
    }' "$work/commented" $(cat "$work/commented")
}

# only_in PATTERN FILE...: no other file of the program has a line that matches
only_in() {
    pattern=$1
    shift
    # shellcheck disable=SC2046 # files are words
    for f in $(grep -lE "$pattern" $(sources)); do
        case " $* " in *" $f "*) ;; *) echo "$f has $pattern" ;; esac
    done
}

automake() { # blanks stand between the names there
    { sources; ls tests/*.tap; } | awk 'FILENAME == ARGV[1] { for (i = 1; i <= NF; i++) listed[$i]; next }
        !($0 in listed) { print $0 " is not in Makefile.am" }' Makefile.am -
}

entry() { # a file of passes/ has one pass of the list
    names=$(sed -n 's/^PASS(\([a-z_]*\),.*/\1/p' passes/passes.def | tr '\n' '|')
    for f in passes/*.c passes/*/*.c; do
        case $f in passes/dump.c | passes/manager.c | passes/plan/memory_price.c | passes/rows.c | passes/tell.c) continue ;; esac
        n=$(grep -cE "^[a-z].*[ *]pass_(${names%|})\\(" "$f")
        [ "$n" = 1 ] || echo "$f has $n entry points"
    done
}

# Heap memory outside of arenas: what libraries hand out or call back for, and environments that outlive every arena.
HEAP="src/plan/input/json.c src/plan/space/strategy.c src/kern/gemm/dnnl.c src/kern/core/env.c"
heap() {
    # shellcheck disable=SC2046 # files are words
    for f in $(grep -lE '(^|[^_a-zA-Z>.])(malloc|calloc|realloc|free|strdup|asprintf|getline)\(' $(sources)); do
        case " $HEAP " in *" $f "*) continue ;; esac
        case $f in src/base/*) ;; *) echo "$f takes memory of its own" ;; esac
    done
}

# Ops without a rule; the self-check fails for a row that has a rule and no sample.
#   Constant Shape Size CastLike Einsum   gone before planning; com.microsoft Attention, MultiHeadAttention, too
#   If Loop Scan                        their bodies run on every rank; tests/control.tap
#   NonZero, Unique, NonMaxSuppression data decides its size, which every rank must know
#   MaxUnpool                          its indices count the elements of the whole tensor
#   Random..., Bernoulli               another number of ranks must not draw other numbers
#   String..., RegexFullMatch, CategoryMapper  every rank has all strings; tests/strings.tap
#   AllReduce ... Shard Term            made by the plan, never planned; tests/comm
#   Dims Chain ... Positions LocalTopK  made from others that have rules
RULELESS=" Attention MultiHeadAttention Constant Shape Size CastLike Einsum If Loop Scan NonZero Unique NonMaxSuppression MaxUnpool RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli StringConcat StringSplit StringNormalizer RegexFullMatch CategoryMapper AllReduce AllGather ReduceScatter AllToAll Redistribute Broadcast Dispatch Combine Shard Term Dims Chain FusedAttention QuantizeRows DequantizeRows AttentionGradient ScatterInto ScatterElementsInto Append Room EntropyGradient QuantMatMul IntegerMatMul QuantGather ChannelsLastConv ChannelsLastPool LocalIndex Positions LocalTopK "
ruleless() {
    "$objects/tpc-shard" --list-ops >"$work/ops" || echo "tpc-shard does not list the ops"
    for op in $(awk '$4 == "none" { print $2 }' "$work/ops"); do
        case $RULELESS in *" $op "*) ;; *) echo "$op has no rule" ;; esac
    done
}

# demo.sh reads the tests' library so
strict() { srcdir=. builddir=$objects sh -euc '. tests/lib.sh' || echo "tests/lib.sh does not work under set -eu"; }

# Scripts of shells: those of sh, and the few of bash. $checker: shellcheck
shell() {
    # a script that lint_in names, or all
    for f in ${lint_in:-$(find tests samples docs -name '*.sh' -o -name '*.tap') demo.sh demo-train.sh setup.sh}; do
        case $(head -n 1 "$f") in *bash) kind=bash ;; *) kind=sh ;; esac
        "$checker" -s $kind -S warning -f gcc "$f"
    done
}

python_sources() { "$checker" check -q --output-format concise ${lint_in:-tests samples docs python}; }
