# Writes blocks of transformers as text graphs, for the test scripts that source it. What is written can be changed before: the width, the inner
# width of an MLP, heads and their size, and which dimensions of activations are batch and sequence.
width=64 inner=256 heads=4 size=16
batch_dim=0 sequence_dim=1

weight() { # name sizes elements: small numbers of both signs, by the name
    awk -v name="$1" -v sizes="$2" -v n="$3" 'BEGIN {
        for (i = 1; i <= length(name); i++) seed = (seed * 31 + index("abcdefghijklmnopqrstuvwxyz0123456789_", substr(name, i, 1))) % 65521
        printf "  const %s: f32[%s] = hex \"", name, sizes
        for (i = 0; i < n; i++) {
            seed = (seed * 17364 + 1) % 65521
            printf "%02x%02x%02x%s", seed % 256, int(seed / 256), seed % 128, seed % 3 ? "3d" : "bd"
        }
        print "\""
    }'
}
graph_head() { # inputs...
    printf 'graph block {\n  opset 23\n  dim B >= 1\n  dim S >= 1\n'
    for i in "$@"; do echo "  input $i"; done
    printf '  const rest: i64[3] = [0, 0, %s]\n  const heads: i64[4] = [0, 0, %s, %s]\n  const scale: f32[] = [0.25]\n' $width $heads $size
}
graph_tail() { printf '  output %s\n}\n' "$1"; }
norm() { # in out
    weight "$2g" $width $width
    weight "$2b" $width $width
    echo "  node $2: $2: ? = LayerNormalization($1, $2g, $2b)"
}
product() { # in out rows columns: with a bias, which comes first
    weight "$2w" "$3, $4" $(($3 * $4))
    weight "$2c" "$4" "$4"
    echo "  node $2m: $2m: ? = MatMul($1, $2w)"
    echo "  node $2: $2: ? = Add($2c, $2m)"
}
mlp() { # in out
    product "$1" "$2up" $width $inner
    echo "  node $2act: $2act: ? = Relu($2up)"
    product "$2act" "$2" $inner $width
}
to_heads() { # in out
    echo "  node $2r: $2r: ? = Reshape($1, heads)"
    echo "  node $2: $2: ? = Transpose($2r) {perm = [$batch_dim, 2, $sequence_dim, 3]}"
}
core() { # q k v (by heads) out [mask that is added to the scores]
    if [ $batch_dim = 0 ]; then back="[0, 2, 1, 3]"; else back="[2, 0, 1, 3]"; fi
    echo "  node $4_t: $4_t: ? = Transpose($2) {perm = [0, 1, 3, 2]}"
    echo "  node $4_s: $4_s: ? = MatMul($1, $4_t)"
    echo "  node $4_x: $4_x: ? = Mul($4_s, scale)"
    if [ -n "$5" ]; then add "$4_x" "$5" "$4_a"; else echo "  node $4_a: $4_a: ? = Identity($4_x)"; fi
    echo "  node $4_p: $4_p: ? = Softmax($4_a)"
    echo "  node $4_v: $4_v: ? = MatMul($4_p, $3)"
    echo "  node $4_y: $4_y: ? = Transpose($4_v) {perm = $back}"
    echo "  node $4_z: $4_z: ? = Reshape($4_y, rest)"
    product "$4_z" "$4" $width $width
}
attention() { # in out
    for part in q k v; do
        product "$1" "$2$part" $width $width
        to_heads "$2$part" "$2h$part"
    done
    core "$2hq" "$2hk" "$2hv" "$2"
}
add() { echo "  node $3: $3: ? = Add($1, $2)"; }
layer() { # in out: attention, then MLP
    norm "$1" "$2na" && attention "$2na" "$2a" && add "$1" "$2a" "$2r"
    norm "$2r" "$2nm" && mlp "$2nm" "$2m" && add "$2r" "$2m" "$2"
}
