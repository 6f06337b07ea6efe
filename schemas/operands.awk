# From the preprocessed rows of ops.def, "% NAME; INPUTS; OUTPUTS;" each, to an enum: where operands are, IN_NAME_input and
# OUT_NAME_output, and how many inputs an op has at most, INPUTS_NAME, unless it has a list.
BEGIN {
    RS = "%"
    print "/* Made from schemas/ops.def by schemas/operands.awk: see there. */"
    print "#ifndef TPC_IR_OPERANDS_H\n#define TPC_IR_OPERANDS_H\n\nenum {"
}
function rows(kind, op, text,   i, n, word) {
    n = split(text, word, " ")
    for (i = 1; i <= n; i++) {
        sub(/[^A-Za-z0-9_].*/, "", word[i])
        word[i] = kind "_" op "_" word[i]
        if (!(word[i] in at)) printf "    %s = %d,\n", word[i], i - 1
        else if (at[word[i]] != i - 1) {
            print "schemas/ops.def: two rows of " op " have " word[i] " at different places" >"/dev/stderr"
            exit bad = 1
        }
        at[word[i]] = i - 1
    }
    if (kind == "IN" && text !~ /[*]/ && count[op] < n) count[op] = n
}
NR > 1 {
    gsub(/"[ \t\n]+"/, "")
    gsub(/"/, "")
    split($0, part, ";")
    gsub(/[ \t\n]/, "", part[1])
    rows("IN", part[1], part[2])
    rows("OUT", part[1], part[3])
}
END {
    if (bad || NR < 2) exit 1
    for (op in count) printf "    INPUTS_%s = %d,\n", op, count[op]
    print "};\n\n#endif"
}
