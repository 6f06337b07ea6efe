"""scale.py STRUCTURE COUNT FILE: an ONNX file with very many of one thing, written byte by byte: no package is needed.

skips: nodes that also read a random earlier value. products: weights are holes of a file. The others are names of what there is much of;
see the functions."""

import sys


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def info(name, *dims):
    shape = b"".join(block(1, block(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    return block(1, name) + block(2, block(1, number(1, 1) + block(2, shape)))


def node(op, inputs, outputs, attributes=()):
    parts = [block(1, i) for i in inputs] + [block(2, o) for o in outputs] + [block(4, op)]
    return block(1, b"".join(parts + [block(5, a) for a in attributes]))


def integer(name, value):
    return block(1, name) + number(3, value) + number(20, 2)


def integers(name, *values):
    return block(1, name) + b"".join(number(8, v) for v in values) + number(20, 7)


def text(name, value):
    return block(1, name) + block(4, value) + number(20, 3)


def words(*values):
    return b"".join((v % 2**64).to_bytes(8, "little") for v in values)


def whole(name, dim):
    """An operand of 32-bit integers."""
    return block(1, name) + block(2, block(1, number(1, 6) + block(2, block(1, block(2, dim) if isinstance(dim, str) else number(1, dim)))))


def zeros(name, *dims):
    count = 1
    for d in dims:
        count *= d
    return block(5, b"".join(number(1, d) for d in dims) + number(2, 1) + block(8, name) + block(9, bytes(4 * count)))


SPARSE = []  # tensors in the file next to the model: the bytes each takes, what is written there (b"": a hole), where the next begins


def elsewhere(path, name, *dims, fill=b"", dtype=1):
    size, offset = 1 if dtype == 2 else 4, SPARSE[-1][2] if SPARSE else 0
    for d in dims:
        size *= d
    padded = size + -size % 4096
    SPARSE.append((padded, fill * (size // len(fill)) if fill else b"", offset + padded))
    entries = (("location", path), ("offset", str(offset)), ("length", str(size)))
    external = b"".join(block(13, block(1, k) + block(2, v)) for k, v in entries)
    return block(5, b"".join(number(1, d) for d in dims) + number(2, dtype) + block(8, name) + external + number(14, 1))


def inputs(*names):
    return b"".join(block(11, n) for n in names)


def outputs(*names):
    return b"".join(block(12, n) for n in names)


X, Y = inputs(info("x", 4)), outputs(info("y", 4))
RELU = node("Relu", ["x"], ["y"])


def skips(n):
    state, parts = 1, [zeros(f"w{i}", 256, 256) for i in range(8)]

    def draw(below):
        nonlocal state
        state = (state * 69069 + 1) % 2**32
        return (state >> 16) % below

    for i in range(1, n + 1):
        last = f"v{i - 1}"
        op, other = (("Mul", None), ("MatMul", f"w{draw(8)}"), ("Add", None), ("Relu", ""))[i % 4]
        other = f"v{draw(i)}" if other is None else other
        parts.append(node(op, [last, other] if other else [last], [f"v{i}"]))
    return b"".join(parts) + inputs(info("v0", "B", 256)) + outputs(info(f"v{n}", "B", 256))


def chain_of_products(n, width, fill=lambda i: b""):
    path, parts = sys.argv[3].split("/")[-1] + ".data", []
    for i in range(n):
        parts.append(elsewhere(path, f"w{i}", width, width, fill=fill(i)))
        parts.append(node("MatMul", [f"v{i}", f"w{i}"], [f"p{i}"]) + node("Relu", [f"p{i}"], [f"v{i + 1}"]))
    return b"".join(parts) + inputs(info("v0", "B", width)) + outputs(info(f"v{n}", "B", width))


def products(n):
    return chain_of_products(n, 2048)


def some_products(n):
    return chain_of_products(n, 256, lambda i: bytes([i, 0, 128, 63]) if i % 2 else b"")


def decoder(layers, hidden, heads, kv, inner, vocab):
    """A llama as ONNX Runtime's builder writes it: packed Q, K, V and GroupQueryAttention."""
    path, size, parts = sys.argv[3].split("/")[-1] + ".data", hidden // heads, []
    weight = lambda name, *dims: parts.append(elsewhere(path, name, *dims)) or name
    microsoft = lambda op, i, o, *attributes: parts.append(block(1, b"".join(
        [block(1, x) for x in i] + [block(2, x) for x in o] + [block(4, op)] + [block(5, a) for a in attributes] + [block(7, "com.microsoft")])))
    add = lambda op, i, o, *attributes: parts.append(node(op, i, [o], attributes)) or o
    norm = lambda x, name: add("RMSNormalization", [x, weight(name, hidden)], name + "/out", integer("axis", -1 + 2**64))
    product = lambda x, name, i, o: add("MatMul", [x, weight(name, i, o)], name + "/out")
    ints = lambda name: inputs(block(1, name) + block(2, block(1, number(1, 6) + block(2, block(1, number(1, 1)) if name == "total" else block(1, block(2, "B"))))))
    x, ends = "x", [inputs(info("x", "B", "S", hidden)), ints("last"), ints("total")]
    for layer in range(layers):
        at = lambda name: f"layers.{layer}.{name}"
        qkv = product(norm(x, at("norm1")), at("qkv"), hidden, hidden + 2 * kv * size)
        cache = [at("past.key"), at("past.value")], [at("present.key"), at("present.value")]
        microsoft("GroupQueryAttention", [qkv, "", ""] + cache[0] + ["last", "total"], [at("attention")] + cache[1], integer("num_heads", heads),
                  integer("kv_num_heads", kv))
        ends += [inputs(info(c, "B", kv, "P", size)) for c in cache[0]] + [outputs(info(c, "B", kv, "T", size)) for c in cache[1]]
        x = add("Add", [x, product(at("attention"), at("o"), hidden, hidden)], at("sum1"))
        y = norm(x, at("norm2"))
        gate, up = product(y, at("gate"), hidden, inner), product(y, at("up"), hidden, inner)
        gate = add("Mul", [gate, add("Sigmoid", [gate], at("sigmoid"))], at("swish"))
        x = add("Add", [x, product(add("Mul", [gate, up], at("mul")), at("down"), inner, hidden)], at("sum2"))
    logits = product(norm(x, "norm"), "head", hidden, vocab)
    return b"".join(parts + ends) + outputs(info(logits, "B", "S", vocab))


def llama8b(n):
    return decoder(n, 4096, 32, 8, 14336, 128256)


def llama70b(n):
    return decoder(n, 8192, 64, 8, 28672, 128256)


def llama405b(n):
    return decoder(n, 16384, 128, 8, 53248, 128256)


class Net:
    """Nodes that are named after their first result, as exporters name them, and weights that are holes."""

    def __init__(self):
        self.path, self.parts = sys.argv[3].split("/")[-1] + ".data", []

    def weight(self, name, *dims, dtype=1):
        self.parts.append(elsewhere(self.path, name, *dims, dtype=dtype))
        return name

    def add(self, name, op, operands, *attributes, domain="", results=("_output_0",)):
        texts = [block(1, i) for i in operands] + [block(2, name + r) for r in results] + [block(3, name), block(4, op)]
        self.parts.append(block(1, b"".join(texts + [block(5, a) for a in attributes] + [block(7, domain)])))
        return name + results[0]

    def product(self, name, x, i, o):
        return self.add(name + "/MatMul", "MatMul", [x, self.weight(name + ".weight", i, o)])

    def norm(self, name, x, width):
        return self.add(name, "RMSNormalization", [x, self.weight(name + ".weight", width)], integer("axis", -1 + 2**64))

    def cast(self, name, x, to):
        return self.add(name, "Cast", [x], integer("to", to))

    def ints(self, name, *values):
        self.parts.append(block(5, number(1, len(values)) + number(2, 7) + block(8, name) + block(9, words(*values))))
        return name

    def constant(self, name, *values, scalar=False):
        dims = b"" if scalar else number(1, len(values))
        return self.add(name, "Constant", [], block(1, "value") + block(5, dims + number(2, 7) + block(9, words(*values))) + number(20, 4))


def expert(net, at, e, x, mask, routed, total, hidden, inner):
    """torch.onnx.export's form of the rows that chose expert e, and of adding their results to the others'."""
    name = lambda op: f"{at}/experts.{e}/{op}"
    one = lambda op, operands, *attributes: net.add(name(op), op.split("_")[0], operands, *attributes)
    const = lambda i, *values, **how: net.constant(name(f"Constant_{i}"), *values, **how)
    chosen = net.cast(name("Cast"), one("Gather", [mask, const(0, e, scalar=True)]), 9)
    pairs = one("Transpose", [one("NonZero", [chosen])], integers("perm", 1, 0))
    net.add(name("Split"), "Split", [pairs, const(1, 1, 1)], integer("axis", 1), results=("_output_0", "_output_1"))
    slot, row = one("Squeeze", [name("Split_output_0"), const(2, 1)]), one("Squeeze_1", [name("Split_output_1"), const(3, 1)])
    rows = one("Gather_1", [one("Unsqueeze", [x, const(4, 0)]), row], integer("axis", 1))
    rows = one("Reshape", [rows, const(5, -1, hidden)])
    gate, up = net.product(name("gate_proj"), rows, hidden, inner), net.product(name("up_proj"), rows, hidden, inner)
    gate = one("Mul", [gate, one("Sigmoid", [gate])])
    down = net.product(name("down_proj"), one("Mul_1", [gate, up]), inner, hidden)
    weights = one("Unsqueeze_1", [routed, const(6, 2)])
    sizes = one("Shape", [weights])
    slots, last = one("Gather_2", [sizes, const(7, 1)]), one("Gather_3", [sizes, const(8, 2)])
    flat = one("Flatten", [weights], integer("axis", 2))
    index = one("Add", [slot, one("Mul_2", [row, slots])])
    picked = one("Reshape_1", [one("Gather_4", [flat, index]), one("Concat", [const(9, -1), last], integer("axis", 0))])
    picked = one("Reshape_2", [picked, one("Concat_1", [one("Shape_1", [index]), last], integer("axis", 0))])
    scaled = net.cast(name("Cast_1"), one("Mul_3", [down, picked]), 1)
    part = one("Slice", [total, const(10, 0, 0), const(11, 1, 2**63 - 1), const(12, 0, 1)])
    scaled = one("Expand", [scaled, one("Shape_2", [part])])
    target = one("Expand_1", [one("Unsqueeze_2", [row, const(13, 1)]), one("Shape_3", [scaled])])
    zero = one("ConstantOfShape", [one("Shape_4", [total])])
    return one("Add_1", [total, one("ScatterElements", [zero, target, scaled], text("reduction", "add"))])


def written_out(net, at, x, hidden, inner, experts, taken):
    """A mixture whose experts are nodes."""
    one = lambda op, operands, *attributes: net.add(f"{at}/{op}", op.split("_")[0], operands, *attributes)
    rows = one("Reshape", [x, net.constant(f"{at}/Constant", -1, hidden)])
    scores = one("Softmax", [net.product(f"{at}/gate", rows, hidden, experts)], integer("axis", 1))
    net.add(f"{at}/TopK", "TopK", [scores, net.constant(f"{at}/Constant_1", taken)], results=("_output_0", "_output_1"))
    routed = one("Div", [f"{at}/TopK_output_0", one("ReduceSum", [f"{at}/TopK_output_0", net.constant(f"{at}/Constant_2", -1 + 2**64)])])
    depth, ends = net.constant(f"{at}/Constant_3", experts), net.constant(f"{at}/Constant_4", 0, 1)
    mask = one("Transpose", [one("OneHot", [f"{at}/TopK_output_1", depth, ends])], integers("perm", 2, 1, 0))
    total = one("ConstantOfShape", [one("Shape", [rows])])
    for e in range(experts):
        total = expert(net, at, e, rows, mask, routed, total, hidden, inner)
    return one("Reshape_1", [total, one("Shape_1", [x])])


def packed(net, at, x, hidden, inner, experts, taken):
    """A mixture as one node with weights of four bits."""
    scores = net.add(f"{at}/Reshape", "Reshape", [net.product(f"{at}/router", x, hidden, experts), net.constant(f"{at}/Constant", -1, experts)])
    rows = lambda name, *dims: net.weight(f"{at}.{name}", *dims)
    codes = lambda name, *dims: net.weight(f"{at}.{name}", *dims, dtype=2)
    operands = [x, scores, codes("gate_up", experts, 2 * inner, hidden // 2), rows("gate_up.scales", experts, 2 * inner, hidden // 32), "",
                codes("down", experts, hidden, inner // 2), rows("down.scales", experts, hidden, inner // 32)]
    return net.add(f"{at}/QMoE", "QMoE", operands, integer("k", taken), text("activation_type", "swiglu"), integer("swiglu_fusion", 1),
                   integer("normalize_routing_weights", 1), integer("expert_weight_bits", 4), integer("block_size", 32), domain="com.microsoft")


def mixture(layers, hidden, heads, kv, size, inner, experts, taken, mix):
    """A decoder whose layers end in experts."""
    net, ends = Net(), inputs(info("x", "B", "S", hidden), whole("last", "B"), whole("total", 1))
    x = "x"
    for layer in range(layers):
        at = f"/model/layers.{layer}"
        y = net.product(f"{at}/attn/qkv", net.norm(f"{at}/norm1", x, hidden), hidden, (heads + 2 * kv) * size)
        past, present = [f"past.{layer}.{w}" for w in ("key", "value")], [f"{at}/attn/GQA_present_{w}" for w in ("key", "value")]
        y = net.add(f"{at}/attn/GQA", "GroupQueryAttention", [y, "", ""] + past + ["last", "total"], integer("num_heads", heads),
                    integer("kv_num_heads", kv), domain="com.microsoft", results=("_output_0", "_present_key", "_present_value"))
        ends += b"".join(inputs(info(c, "B", kv, "P", size)) for c in past) + b"".join(outputs(info(c, "B", kv, "T", size)) for c in present)
        x = net.add(f"{at}/Add", "Add", [x, net.product(f"{at}/attn/o", y, heads * size, hidden)])
        x = net.add(f"{at}/Add_1", "Add", [x, mix(net, f"{at}/mlp", net.norm(f"{at}/norm2", x, hidden), hidden, inner, experts, taken)])
    return b"".join(net.parts) + ends + outputs(info(x, "B", "S", hidden))


def experts(n):
    return mixture(n, 2048, 16, 16, 128, 1024, 64, 6, written_out)


def few_experts(n):
    return mixture(n, 64, 4, 4, 16, 32, 8, 2, written_out)


def gptoss(n):
    return mixture(n, 2880, 64, 8, 64, 2880, 128, 4, packed)


class UNet(Net):
    """Parts of a diffusion model: convolutions, attention over the picture and a text, skips from the way down to the way up."""

    def conv(self, name, x, i, o, size=3, stride=1):
        weights = [self.weight(f"{name}.weight", o, i, size, size), self.weight(f"{name}.bias", o)]
        return self.add(name, "Conv", [x] + weights, integers("pads", *[size // 2] * 4), integers("strides", stride, stride))

    def active(self, name, x):
        return self.add(f"{name}/Mul", "Mul", [x, self.add(f"{name}/Sigmoid", "Sigmoid", [x])])

    def groups(self, name, x, width):
        return self.add(name, "GroupNormalization", [x, self.weight(f"{name}.weight", width), self.weight(f"{name}.bias", width)],
                        integer("num_groups", 32))

    def layer_norm(self, name, x, width):
        weights = [self.weight(f"{name}.weight", width), self.weight(f"{name}.bias", width)]
        return self.add(name, "LayerNormalization", [x] + weights, integer("axis", -1 + 2**64))

    def residual(self, at, x, i, o):
        y = self.conv(f"{at}/conv1", self.active(f"{at}/active1", self.groups(f"{at}/norm1", x, i)), i, o)
        time = self.product(f"{at}/time", self.active(f"{at}/active", "time"), 1280, o)
        y = self.add(f"{at}/Add", "Add", [y, self.add(f"{at}/Unsqueeze", "Unsqueeze", [time, self.ints(f"{at}/axes", 2, 3)])])
        y = self.conv(f"{at}/conv2", self.active(f"{at}/active2", self.groups(f"{at}/norm2", y, o)), o, o)
        return self.add(f"{at}/Add_1", "Add", [x if i == o else self.conv(f"{at}/short", x, i, o, size=1), y])

    def attend(self, at, x, source, width, context):
        q = self.product(f"{at}/q", x, width, width)
        kv = [self.product(f"{at}/{w}", source, context, width) for w in "kv"]
        y = self.add(at, "Attention", [q] + kv, integer("q_num_heads", width // 64), integer("kv_num_heads", width // 64))
        return self.product(f"{at}/o", y, width, width)

    def transformer(self, at, x, width, depth):
        y = self.add(f"{at}/Flatten", "Reshape", [self.groups(f"{at}/norm", x, width), self.ints(f"{at}/flat", 0, width, -1)])
        y = self.product(f"{at}/in", self.add(f"{at}/Transpose", "Transpose", [y], integers("perm", 0, 2, 1)), width, width)
        for i in range(depth):
            b = f"{at}/blocks.{i}"
            n = self.layer_norm(f"{b}/norm1", y, width)
            y = self.add(f"{b}/Add", "Add", [y, self.attend(f"{b}/attn1", n, n, width, width)])
            n = self.layer_norm(f"{b}/norm2", y, width)
            y = self.add(f"{b}/Add_1", "Add", [y, self.attend(f"{b}/attn2", n, "text", width, 2048)])
            n = self.layer_norm(f"{b}/norm3", y, width)
            gate = self.add(f"{b}/Gelu", "Gelu", [self.product(f"{b}/gate", n, width, 4 * width)])
            up = self.add(f"{b}/Mul", "Mul", [gate, self.product(f"{b}/up", n, width, 4 * width)])
            y = self.add(f"{b}/Add_2", "Add", [y, self.product(f"{b}/down", up, 4 * width, width)])
        y = self.add(f"{at}/Transpose_1", "Transpose", [self.product(f"{at}/out", y, width, width)], integers("perm", 0, 2, 1))
        return self.add(f"{at}/Add", "Add", [x, self.add(f"{at}/Reshape", "Reshape", [y, self.add(f"{at}/Shape", "Shape", [x])])])


def unet(n):
    """As in SDXL, with n residuals before each change of size: a picture of 1024 x 1024, its text, 2.6 billion weights for n = 2."""
    net, widths, depths = UNet(), (320, 640, 1280), (0, 2, 10)

    def part(at, x, i, o, depth):
        y = net.residual(at, x, i, o)
        return net.transformer(f"{at}/attentions", y, o, depth) if depth else y

    x, width = net.conv("/conv_in", "x", 4, widths[0]), widths[0]
    skips = [(x, width)]
    for level, (o, depth) in enumerate(zip(widths, depths)):
        for i in range(n):
            x, width = part(f"/down.{level}.{i}", x, width, o, depth), o
            skips.append((x, width))
        if level + 1 < len(widths):
            x = net.conv(f"/down.{level}/smaller", x, width, width, stride=2)
            skips.append((x, width))
    x = net.residual("/mid.1", part("/mid.0", x, width, width, depths[-1]), width, width)
    for level, (o, depth) in reversed(list(enumerate(zip(widths, depths)))):
        for i in range(n + 1):
            skip, more = skips.pop()
            x = net.add(f"/up.{level}.{i}/Concat", "Concat", [x, skip], integer("axis", 1))
            x, width = part(f"/up.{level}.{i}", x, width + more, o, depth), o
        if level:
            twice = block(9, b"\0\0\x80?" * 2 + b"\0\0\0@" * 2)
            net.parts.append(block(5, number(1, 4) + number(2, 1) + block(8, f"scales.{level}") + twice))
            x = net.add(f"/up.{level}/Resize", "Resize", [x, "", f"scales.{level}"], text("mode", "nearest"))
            x = net.conv(f"/up.{level}/larger", x, width, width)
    x = net.conv("/conv_out", net.active("/active_out", net.groups("/norm_out", x, width)), width, 4)
    ends = inputs(info("x", 1, 4, 128, 128), info("time", 1, 1280), info("text", 1, 77, 2048)) + outputs(info(x, 1, 4, 128, 128))
    return b"".join(net.parts) + ends


def symbols(n):
    nodes = b"".join(node("Relu", [f"x{i}"], [f"y{i}"]) for i in range(n))
    return nodes + b"".join(inputs(info(f"x{i}", f"s{i}")) + outputs(info(f"y{i}", f"s{i}")) for i in range(n))


def added_inputs(n):
    sums = b"".join(node("Add", [f"t{i - 1}" if i > 1 else "x0", f"x{i}"], [f"t{i}" if i < n - 1 else "y"]) for i in range(1, n))
    return sums + b"".join(inputs(info(f"x{i}", f"s{i}", 8)) for i in range(n)) + outputs(info("y", "s0", 8))


def added_products(n):
    one = lambda i: zeros(f"a{i}", 8, 16) + zeros(f"b{i}", 16, 8) + node("MatMul", [f"x{i}", f"a{i}"], [f"h{i}"]) + \
        node("MatMul", [f"h{i}", f"b{i}"], [f"p{i}"]) + inputs(info(f"x{i}", f"s{i}", 8))
    sums = b"".join(node("Add", [f"t{i - 1}" if i > 1 else "p0", f"p{i}"], [f"t{i}" if i < n - 1 else "y"]) for i in range(1, n))
    return b"".join(one(i) for i in range(n)) + sums + outputs(info("y", "s0", 8))


def attributes(n):
    return node("Unknown", ["x"], ["y"], [integer(f"a{i}", i) for i in range(n)]) + X + Y


def graph_inputs(n):
    return RELU + X + Y + b"".join(inputs(info(f"x{i}", f"s{i % 50}")) for i in range(n))


def graph_outputs(n):
    nodes = b"".join(node("Identity", ["x"], [f"y{i}"]) for i in range(n))
    return nodes + X + b"".join(outputs(info(f"y{i}", 4)) for i in range(n))


def split(n):
    names = [f"p{i}" for i in range(n)]
    return node("Split", ["x"], names, [integer("num_outputs", n)]) + node("Concat", names, ["y"], [integer("axis", 0)]) + \
        inputs(info("x", n)) + outputs(info("y", n))


def concat(n):
    return node("Concat", ["x"] * n, ["y"], [integer("axis", 0)]) + X + outputs(info("y", 4 * n))


def domains(n):
    nodes = b"".join(node("Relu", [f"v{i}" if i else "x"], [f"v{i + 1}"]) for i in range(n // 4))
    return nodes + X + outputs(info(f"v{n // 4}", 4))


def identities(n):
    return b"".join(node("Identity", [f"v{i}" if i else "x"], [f"v{i + 1}"]) for i in range(n)) + X + outputs(info(f"v{n}", 4))


def initializers(n):
    return RELU + X + Y + b"".join(zeros(f"w{i}", 1) for i in range(n))


def metadata(_):
    return RELU + X + Y


def chain(n):
    return b"".join(node("Relu", [f"v{i}" if i else "x"], [f"v{i + 1}"]) for i in range(n)) + X + outputs(info(f"v{n}", 4))


def scalar(name, dtype):
    return block(1, name) + block(2, block(1, number(1, dtype) + block(2, b"")))


def graph(nodes):
    return block(2, "b") + nodes


def branch(name, content):
    return block(1, name) + block(6, content) + number(20, 5)


def choice(names, then, other):
    return node("If", ["c"], names, [branch("then_branch", then), branch("else_branch", other)])


def ifs(n):
    one = lambda op, v: graph(node(op, [v], ["r"]) + outputs(block(1, "r")))
    values = ["x"] + [f"v{i}" for i in range(n)]
    return b"".join(choice([w], one("Relu", v), one("Neg", v)) for v, w in zip(values, values[1:])) + \
        inputs(scalar("c", 9)) + X + outputs(info(values[n], 4))


def branch_outputs(n):
    results, names = [f"r{i}" for i in range(n)], [f"y{i}" for i in range(n)]
    one = lambda op: graph(b"".join(node(op, ["x"], [r]) for r in results) + b"".join(outputs(block(1, r)) for r in results))
    return choice(names, one("Relu"), one("Neg")) + node("Sum", names, ["y"]) + inputs(scalar("c", 9)) + X + Y


def carried(n):
    names = [f"y{i}" for i in range(n)]
    body = inputs(scalar("i", 7), scalar("k", 9), *(info(f"a{i}", 4) for i in range(n))) + node("Identity", ["k"], ["kk"]) + \
        b"".join(node("Neg", [f"a{i}"], [f"b{i}"]) for i in range(n)) + outputs(block(1, "kk"), *(info(f"b{i}", 4) for i in range(n)))
    trip = block(5, number(2, 7) + block(8, "trip") + block(9, (5).to_bytes(8, "little")))
    return trip + node("Loop", ["trip", ""] + ["x"] * n, names, [branch("body", graph(body))]) + node("Sum", names, ["y"]) + X + Y


def inner_nodes(n):
    body = graph(b"".join(node("Relu", [f"v{i}" if i else "x"], [f"v{i + 1}"]) for i in range(n)) + inputs(info("x", 4)) + outputs(info(f"v{n}", 4)))
    return node("Unknown", ["x"], ["y"], [branch("body", body)]) + X + Y


def functions(n):
    call = lambda i: block(1, block(1, f"v{i}" if i else "x") + block(2, f"v{i + 1}") + block(4, f"F{i}") + block(7, "own"))
    return b"".join(call(i) for i in range(n)) + X + outputs(info(f"v{n}", 4))


def function(i):
    body = block(7, block(1, "a") + block(2, "b") + block(4, "Relu"))
    return block(25, block(1, f"F{i}") + block(4, "a") + block(5, "b") + body + block(9, number(2, 23)) + block(10, "own"))


def main():
    name, count = sys.argv[1], int(sys.argv[2])
    model = number(1, 10) + block(7, block(2, "g") + globals()[name](count)) + block(8, number(2, 23))
    if name.startswith("llama") or name in ("experts", "few_experts", "gptoss"):
        model += block(8, block(1, "com.microsoft") + number(2, 1))
    if name == "domains":
        model += b"".join(block(8, block(1, f"d{i}") + number(2, 1)) for i in range(count))
    if name == "metadata":
        model += b"".join(block(14, block(1, f"k{i}") + block(2, "v")) for i in range(count))
    if name == "functions":
        model += block(8, block(1, "own") + number(2, 1)) + b"".join(function(i) for i in range(count))
    with open(sys.argv[3], "wb") as f:
        f.write(model)
    if SPARSE:
        with open(sys.argv[3] + ".data", "wb") as f:
            for size, content, _ in SPARSE:
                f.write(content)
                f.seek(size - len(content), 1)
            f.truncate()


main()
