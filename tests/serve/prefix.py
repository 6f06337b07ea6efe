"""Print a graph of two layers of attention whose prompt sees all of itself: in parts, its tokens would see less."""
import random

draw = random.Random(4)


def const(name, *shape):
    n = 1
    for d in shape:
        n *= d
    values = ", ".join(f"{draw.uniform(-1.5, 1.5):.3f}" for _ in range(n))
    print(f"  const {name}: f32[{', '.join(map(str, shape))}] = [{values}]")


print("graph prefix {\n  opset 23\n  dim B >= 1\n  dim S >= 1\n  dim P >= 0")
print("  input input_ids: i64[B, S]\n  input attention_mask: i64[B, P + S]")
for k in range(2):
    print(f"  input past_{k}.key: f32[B, 2, P, 4]\n  input past_{k}.value: f32[B, 2, P, 4]")
print("  const middle: i64[2] = [1, 2]")
const("words", 256, 8)
const("scores", 8, 256)
for k in range(2):
    for part in "qkvo":
        const(f"{part}{k}", 8, 8)
print("  node row: x0: ? = Gather(words, input_ids)\n  node shown: m: ? = Cast(attention_mask) {to = 9}\n  node mask: mask: ? = Unsqueeze(m, middle)")
for k in range(2):
    for part in "qkv":
        print(f"  node {part}_{k}: x{k}{part}: ? = MatMul(x{k}, {part}{k})")
    print(f"  node attention_{k}: a{k}: ?, present_{k}.key: ?, present_{k}.value: ? = Attention(x{k}q, x{k}k, x{k}v, mask, past_{k}.key, past_{k}.value) "
          "{q_num_heads = 2, kv_num_heads = 2}")
    print(f"  node out_{k}: o{k}x: ? = MatMul(a{k}, o{k})\n  node sum_{k}: x{k + 1}: ? = Add(x{k}, o{k}x)")
print("  node score: logits: ? = MatMul(x2, scores)\n  output logits")
for k in range(2):
    print(f"  output present_{k}.key\n  output present_{k}.value")
print("}")
