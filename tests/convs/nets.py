"""Random small convolutional nets as text graphs, and a comparison of outputs.

    nets.py OUT SEED COUNT      writes OUT/K.graph
    nets.py --large OUT SEED COUNT      of images whose values leave the cache, OUT/large-K.graph; outputs are means
    nets.py --integers OUT SEED COUNT      of quantised convolutions, OUT/integers-K.graph: no number in them is rounded but to codes
    nets.py --norms OUT SEED COUNT      of convolutions and norms of channels and groups, OUT/norms-K.graph; some are of lines, strided and wide
    nets.py --dense OUT SEED COUNT      of dense blocks, whose layers read all features so far, OUT/dense-K.graph
    nets.py --compare A B       folders of .npy: equal but for rounding?
    nets.py --equal A B         quite equal?
"""
import os
import random
import re
import struct
import sys


class Net:
    """A net grows by one operator at a time; sizes of its last values are known."""

    def __init__(self, rng, large=False):
        self.rng, self.lines, self.count, self.large = rng, [], 0, large
        self.spatial = 2 if large else rng.choice([1, 2, 2, 2, 3])
        shape = [rng.choice([1, 2]), rng.choice([1, 3, 8])] + [rng.randint(6, 11) for _ in range(self.spatial)]
        shape[-1] = rng.choice([shape[-1], shape[-1], 1])
        if large:
            shape = [rng.randint(9, 14), rng.choice([3, 8]), rng.randint(90, 110), rng.randint(90, 110)]
        self.head = f"  input x: f32[{', '.join(map(str, shape))}]\n"
        self.now, self.shape = "x", shape

    def constant(self, shape, lo=-1.0, hi=1.0):
        self.count += 1
        n = 1
        for d in shape:
            n *= d
        data = struct.pack(f"<{n}f", *[self.rng.uniform(lo, hi) for _ in range(n)]).hex()
        self.lines.append(f'  const c{self.count}: f32[{", ".join(map(str, shape))}] = hex "{data}"')
        return f"c{self.count}"

    def number(self, x):
        return self.constant([], x, x)

    def node(self, op, operands, attributes="", results=1):
        self.count += 1
        names = [f"v{self.count}_{k}" for k in range(results)]
        made = ", ".join(f"{n}: ?" for n in names)
        self.lines.append(f"  node n{self.count}: {made} = {op}({', '.join(operands)}){' {' + attributes + '}' if attributes else ''}")
        return names if results > 1 else names[0]

    def conv(self, x, shape, out, window=None, stride=None):
        r, n = self.rng, self.spatial
        group = r.choice([g for g in (1, 1, 2, 4, shape[1]) if shape[1] % g == 0 and out % g == 0])
        k = window or [r.choice([1, 1, 2, 3]) for _ in range(n)]
        s = stride or [r.choice([1, 1, 2]) for _ in range(n)]
        d = [r.choice([1, 1, 2]) for _ in range(n)]
        pads = [kk // 2 * dd for kk, dd in zip(k, d)] * 2
        if any(h + 2 * p < (kk - 1) * dd + 1 for h, p, kk, dd in zip(shape[2:], pads, k, d)):
            return None
        operands = [x, self.constant([out, shape[1] // group, *k])] + ([self.constant([out])] if r.random() < 0.6 else [])
        y = self.node("Conv", operands, f"group = {group}, kernel_shape = {k}, strides = {s}, dilations = {d}, pads = {pads}")
        sizes = [(h + 2 * p - (kk - 1) * dd - 1) // ss + 1 for h, p, kk, dd, ss in zip(shape[2:], pads, k, d, s)]
        return y, [shape[0], out, *sizes]

    def grow_conv(self):
        made = self.conv(self.now, self.shape, self.rng.choice([12, 16] if self.large else [1, 4, 5, 8, 16]))
        if made:
            self.now, self.shape = made
            for grow in self.rng.sample([self.grow_norm, self.grow_function, self.grow_scale, self.grow_branch], self.rng.randint(0, 3)):
                grow()

    def grow_sum(self):
        """Branches of one tensor; the windows of the second and third lie within that of the first, or do not quite."""
        r, n, out = self.rng, self.spatial, self.rng.choice([2, 4, 8])
        group = r.choice([g for g in (1, 1, 2) if self.shape[1] % g == 0])
        k, s, d = [r.choice([1, 2, 3]) for _ in range(n)], [r.choice([1, 1, 2]) for _ in range(n)], [r.choice([1, 1, 2]) for _ in range(n)]
        pads = [[r.randint(0, (kk - 1) * dd) for kk, dd in zip(k, d)] for _ in range(2)]
        sizes = [(h + a + b - (kk - 1) * dd - 1) // ss + 1 for h, a, b, kk, dd, ss in zip(self.shape[2:], *pads, k, d, s)]
        if min(sizes) < 1:
            return
        branches = []
        for _ in range(r.randint(2, 3)):
            own = [r.randint(1, kk) for kk in k] if branches else k
            at = [r.randint(0, kk - oo) for kk, oo in zip(k, own)]
            before = [a - i * dd for a, i, dd in zip(pads[0], at, d)]
            after = [b - (kk - oo - i) * dd for b, kk, oo, i, dd in zip(pads[1], k, own, at, d)]
            if min(before + after) < 0:
                continue
            operands = [self.now, self.constant([out, self.shape[1] // group, *own])] + ([self.constant([out])] if r.random() < 0.6 else [])
            branches.append(self.node("Conv", operands, f"group = {group}, kernel_shape = {own}, strides = {s}, dilations = {d}, pads = {before + after}"))
        y = branches[0]
        for other in branches[1:]:
            pair = [y, other]
            r.shuffle(pair)
            y = self.node("Add", pair)
        self.now, self.shape = y, [self.shape[0], out, *sizes]

    def grow_transposed(self):
        r, n, out = self.rng, self.spatial, self.rng.choice([1, 3, 8, 40])
        group = r.choice([1, 1, 1, self.shape[1]])
        k, s, d = [r.randint(1, 4) for _ in range(n)], [r.randint(1, 40 if n == 1 else 3) for _ in range(n)], [r.choice([1, 1, 2]) for _ in range(n)]
        sides = [[r.randint(0, min(2, (kk - 1) * dd)) for kk, dd in zip(k, d)] for _ in range(2)]
        more = [r.randint(0, max(ss, dd) - 1) for ss, dd in zip(s, d)]
        sizes = [(h - 1) * ss + m + (kk - 1) * dd + 1 - a - b for h, ss, m, kk, dd, a, b in zip(self.shape[2:], s, more, k, d, *sides)]
        if min(sizes) < 1 or max(sizes) > (600 if n == 1 else 60):
            return
        operands = [self.now, self.constant([self.shape[1], out, *k])] + ([self.constant([out * group])] if r.random() < 0.6 else [])
        self.now = self.node("ConvTranspose", operands, f"group = {group}, kernel_shape = {k}, strides = {s}, dilations = {d}, "
                             f"pads = {sides[0] + sides[1]}, output_padding = {more}")
        self.shape = [self.shape[0], out * group, *sizes]

    def grow_norm(self):
        c = self.shape[1]
        self.now = self.node("BatchNormalization", [self.now] + [self.constant([c]) for _ in range(3)] + [self.constant([c], 0.1, 1)])

    def grow_function(self):
        op = self.rng.choice(["Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "Elu", "Clip", "SiLU", "PRelu", "Gelu", "hswish", "gelu"])
        if op == "Clip":
            self.now = self.node(op, [self.now, self.constant([], -1, 0), self.constant([], 0.5, 1)])
        elif op == "SiLU":
            self.now = self.node("Mul", [self.now, self.node("Sigmoid", [self.now])])
        elif op == "hswish":
            gate = self.node("Clip", [self.node("Add", [self.now, self.number(3)]), self.number(0), self.number(6)])
            self.now = self.node("Div", [self.node("Mul", [self.now, gate]), self.number(6)])
        elif op == "gelu":
            gate = self.node("Add", [self.node("Erf", [self.node("Div", [self.now, self.number(2**0.5)])]), self.number(1)])
            self.now = self.node("Mul", [self.node("Mul", [self.now, gate]), self.number(0.5)])
        elif op == "PRelu":
            self.now = self.node(op, [self.now, self.constant([self.shape[1]] + [1] * self.spatial)])
        else:
            self.now = self.node(op, [self.now])

    def grow_pad(self):
        n = self.spatial
        pads = [0, 0] + [self.rng.randint(0, 2) for _ in range(n)]
        self.count += 1
        self.lines.append(f"  const c{self.count}: i64[{2 * n + 4}] = {pads + pads}")
        self.now = self.node("Pad", [self.now, f"c{self.count}"])
        self.shape = [h + 2 * p for h, p in zip(self.shape, pads)]
        self.grow_conv()

    def grow_scale(self):
        one = self.rng.choice([[], [1], [self.shape[1]] + [1] * self.spatial])
        self.now = self.node(self.rng.choice(["Mul", "Add", "Sub"]), [self.now, self.constant(one)])

    def grow_branch(self):
        made = self.conv(self.now, self.shape, self.shape[1], [1] * self.spatial, [1] * self.spatial)
        pair = [self.now, made[0]]
        self.rng.shuffle(pair)
        self.now = self.node("Add", pair)

    def grow_concat(self):
        axis = self.rng.choice([1, 1, 2])
        self.now = self.node("Concat", [self.now, self.node("Relu", [self.now])], f"axis = {axis}")
        self.shape[axis] *= 2

    def grow_split(self):
        if self.shape[1] % 2 == 0:
            a, b = self.node("Split", [self.now], "axis = 1, num_outputs = 2", 2)
            self.now = self.node("Sub", [a, b])
            self.shape[1] //= 2

    def grow_pool(self):
        op, n = self.rng.choice(["MaxPool", "AveragePool", "LpPool"]), self.spatial
        if min(self.shape[2:]) >= 2:
            self.now = self.node(op, [self.now], f"kernel_shape = {[2] * n}, strides = {[2] * n}")
            self.shape[2:] = [h // 2 for h in self.shape[2:]]

    def grow_gate(self):
        op = self.rng.choice(["GlobalAveragePool", "GlobalMaxPool"])
        small = self.conv(self.node(op, [self.now]), self.shape[:2] + [1] * self.spatial, self.shape[1], [1] * self.spatial, [1] * self.spatial)
        self.now = self.node("Mul", [self.now, self.node("Sigmoid", [small[0]])])

    def grow_softmax(self):
        self.now = self.node("Softmax", [self.now], f"axis = {self.rng.choice([1, 2, -1])}")

    def grow_transpose(self):
        perm = [0, 1] + self.rng.sample(range(2, self.spatial + 2), self.spatial)
        if self.rng.random() < 0.5:
            perm = perm[1:] + perm[:1]
        self.now = self.node("Transpose", [self.now], f"perm = {perm}")
        self.shape = [self.shape[p] for p in perm]

    def text(self, steps):
        grows = [self.grow_conv] * 4 + [self.grow_function, self.grow_scale, self.grow_concat, self.grow_pad, self.grow_split, self.grow_pool,
                                        self.grow_transposed, self.grow_sum, self.grow_gate, self.grow_softmax, self.grow_transpose]
        self.grow_conv()
        outputs = []
        for _ in range(steps):
            self.rng.choice(grows)()
            if self.now != "x" and self.rng.random() < 0.15:
                outputs.append(self.now)
        if self.large:
            self.lines.append("  const last: i64[1] = [-1]")
            outputs = [self.node("ReduceMean", [o, "last"]) for o in dict.fromkeys(outputs + [self.now])]
        outputs = outputs if self.large else list(dict.fromkeys(outputs + [self.node("Neg", [self.now])]))
        body = "\n".join(self.lines)
        return "graph net {\n  opset 23\n" + self.head + body + "\n" + "".join(f"  output {o}\n" for o in outputs) + "}\n"


class IntegerNet(Net):
    """Scales are powers of two and sums are small, so real numbers are exact however they are computed. Filters are large: small ones are
    decoded at load."""

    def codes(self, dtype, shape):
        self.count += 1
        n = 1
        for d in shape:
            n *= d
        self.lines.append(f'  const c{self.count}: {dtype}[{", ".join(map(str, shape))}] = hex "{bytes(self.rng.randrange(256) for _ in range(n)).hex()}"')
        return f"c{self.count}"

    def scale(self):
        return self.number(2.0 ** self.rng.randint(-8, -4))

    def encoded(self, x):
        return self.node("QuantizeLinear", [x, *self.now_coded()])

    def now_coded(self):
        self.coding = [self.scale(), self.codes(self.rng.choice(["u8", "u8", "i8"]), [])]
        return self.coding

    def filter_codes(self, dtype, shape, zeros):
        """Near their zero points, so that sums stay exact in f32, too; zeros: how many, 0: none."""
        self.count += 2
        zero, n = [self.rng.randint(10, 100) for _ in range(zeros)], 1
        for d in shape:
            n *= d
        near = [(zero[i * zeros // n] if zeros else 8 * (dtype == "u8")) + self.rng.randint(-8, 8) for i in range(n)]
        data, size = bytes(v % 256 for v in near).hex(), f"{zeros}" if zeros > 1 else ""
        self.lines.append(f'  const c{self.count}: {dtype}[{", ".join(map(str, shape))}] = hex "{data}"')
        if zeros:
            self.lines.append(f'  const c{self.count - 1}: {dtype}[{size}] = hex "{bytes(zero).hex()}"')
        return [f"c{self.count}"], [f"c{self.count - 1}"] * (zeros > 0)

    def filter(self, shape):
        dtype, channels = self.rng.choice(["i8", "i8", "u8"]), self.rng.random() < 0.5
        codes, zero = self.filter_codes(dtype, shape, self.rng.choice([0, shape[0] if channels else 1]))
        powers = [2.0 ** self.rng.randint(-8, -4) for _ in range(shape[0])]
        if not channels or shape[0] == 1:
            return self.node("DequantizeLinear", codes + [self.number(powers[0])] + zero)
        self.count += 1
        self.lines.append(f'  const c{self.count}: f32[{shape[0]}] = hex "{struct.pack(f"<{shape[0]}f", *powers).hex()}"')
        return self.node("DequantizeLinear", codes + [f"c{self.count}"] + zero, "axis = 0")

    def constant(self, shape, lo=-1.0, hi=1.0):
        if len(shape) > 2:
            return self.filter(shape)
        return super().constant(shape, lo, hi) if lo == hi else self.whole(shape)

    def whole(self, shape):
        """Multiples of 1/256, so that sums stay exact."""
        self.count += 1
        n = shape[0] if shape else 1
        data = struct.pack(f"<{n}f", *[self.rng.randint(-512, 512) / 256 for _ in range(n)]).hex()
        self.lines.append(f'  const c{self.count}: f32[{", ".join(map(str, shape))}] = hex "{data}"')
        return f"c{self.count}"

    def decoded(self):
        return self.node("DequantizeLinear", [self.now, *self.coding])

    def residual(self):
        """Two codings are added, and rounded again."""
        x, n = self.decoded(), self.spatial
        y, self.shape = self.conv(x, self.shape, self.shape[1], [1] * n, [1] * n)
        y = self.node("QuantizeLinear", [y, *self.now_coded()])
        pair = [x, self.node("DequantizeLinear", [y, *self.coding])]
        self.rng.shuffle(pair)
        y = self.node("Add", pair)
        self.now = self.encoded(self.node("Relu", [y]) if self.rng.random() < 0.5 else y)

    def step(self):
        r, x = self.rng, self.decoded()
        if self.shape[1] >= 130 and r.random() < 0.5:
            self.residual()
            return
        made = self.conv(x, self.shape, r.choice([130, 132, 160, self.shape[1]]))
        if not made:
            return
        if r.random() < 0.2 and made[1] == self.shape:
            made = self.node("Add", [made[0], x]), made[1]
        y, self.shape = made
        how = r.choice(["Relu", "Clip", "", ""])
        if how:
            y = self.node(how, [y] + ([self.number(r.choice([0.0, -0.5])), self.number(1.5)] if how == "Clip" else []))
        if r.random() < 0.2:
            self.outputs.append(y)
        self.now = self.encoded(y)
        if r.random() < 0.4:
            self.outputs.append(self.node("Neg", [self.node("GlobalAveragePool", [self.decoded()])]))

    def text(self, steps):
        self.outputs = []
        self.now = self.encoded("x")
        for _ in range(steps):
            self.step()
        self.outputs.append(self.node("Neg", [self.decoded()]))
        return "graph net {\n  opset 23\n" + self.head + "\n".join(self.lines) + "\n" + "".join(f"  output {o}\n" for o in self.outputs) + "}\n"


class DynamicNet(IntegerNet):
    """As a quantiser writes it: the numbers of each activation choose its scale. ConvInteger is as it becomes at load."""

    def conv_integer(self, x, scale, zero):
        r = self.rng
        shape, kind = [r.choice([130, 132]), self.shape[1]] + [r.choice([1, 2, 3]) for _ in range(self.spatial)], r.choice(["u8", "i8"])
        codes, by = self.filter_codes(kind, shape, r.randint(0, 1))
        operands = [self.node("DequantizeLinear", [x, self.number(1), zero]), self.node("DequantizeLinear", codes + [self.number(1)] + by)]
        y = self.node("Conv", operands, f"kernel_shape = {shape[2:]}, pads = {[1] * 2 * self.spatial}")
        self.shape = [self.shape[0], shape[0]] + [h + 3 - k for h, k in zip(self.shape[2:], shape[2:])]
        y = self.node("Cast", [self.node("Cast", [y], "to = 6")], "to = 1")
        return self.node("Mul", [y, self.node("Mul", [scale, self.scale()])])

    def text(self, steps):
        self.now = "x"
        for k in range(steps):
            y = self.conv_integer(*self.node("DynamicQuantizeLinear", [self.now], results=3))
            self.now = self.node("Add", [y, self.number(0.25)])
            if k < steps - 1:
                self.now = self.node("Relu", [self.now])
            else:
                self.grow_function()
                self.grow_scale()
        return "graph net {\n  opset 23\n" + self.head + "\n".join(self.lines) + f"\n  output {self.now}\n}}\n"


class NormNet(Net):
    def ints(self, numbers):
        self.count += 1
        self.lines.append(f"  const c{self.count}: i64[{len(numbers)}] = [{', '.join(map(str, numbers))}]")
        return f"c{self.count}"

    def grow_norm(self):
        r, c = self.rng, self.shape[1]
        groups = r.choice([g for g in (1, 2, 3, 4, 8) if c % g == 0])
        how, epsilon = r.choice(["instance", "group", "written"]), "epsilon = 0.01"
        if how != "written":
            op = "InstanceNormalization" if how == "instance" else "GroupNormalization"
            attributes = epsilon if how == "instance" else f"num_groups = {groups}, {epsilon}"
            self.now = self.node(op, [self.now, self.constant([c], 0.5, 2), self.constant([c])], attributes)
            return
        grouped = self.node("Reshape", [self.now, self.ints([0, groups, -1])])
        y = self.node("InstanceNormalization", [grouped, self.constant([groups], 0.5, 2), self.constant([groups])], epsilon)
        y = self.node("Reshape", [y, self.ints(self.shape)])
        ones = [c] + [1] * self.spatial
        self.now = self.node("Add", [self.node("Mul", [y, self.constant(ones)]), self.constant(ones)])

    def line(self):
        made = self.conv(self.now, self.shape, 256, [self.rng.choice([2, 3])], [2])
        if made:
            self.now, self.shape = made

    def text(self, steps):
        if self.spatial == 1:
            self.line()
        for _ in range(steps):
            self.grow_conv()
            self.grow_norm()
            if self.rng.random() < 0.6:
                self.grow_function()
        if self.spatial == 1:
            self.line()
        return "graph net {\n  opset 23\n" + self.head + "\n".join(self.lines) + f"\n  output {self.now}\n}}\n"


class DenseNet(Net):
    """Every layer reads all features so far: joined anew, or joined to what the layer before joined. Sometimes something else reads them, too,
    or another layer does. In half of the nets layers are products."""

    def __init__(self, rng):
        super().__init__(rng)
        if rng.random() < 0.5:
            self.spatial, self.shape = 0, [rng.choice([1, 3]), rng.choice([3, 8])]
            self.head = f"  input x: f32[{self.shape[0]}, {self.shape[1]}]\n"

    def layer(self, x, channels, out):
        shape = [self.shape[0], channels, *self.shape[2:]]
        if not self.spatial:
            return self.node("MatMul", [x, self.constant([channels, out])])
        return self.conv(x, shape, out, [self.rng.choice([1, 3])] * self.spatial, [1] * self.spatial)[0]

    def norm(self, x, channels):
        ones = [channels] + [1] * self.spatial
        return self.node("Relu", [self.node("Add", [self.node("Mul", [x, self.constant(ones)]), self.constant(ones)])])

    def conv(self, x, shape, out, window=None, stride=None):
        w = self.constant([out, shape[1], *window])
        return self.node("Conv", [x, w], f"pads = {[k // 2 for k in window] * 2}"), [shape[0], out, *shape[2:]]

    def text(self, steps):
        r, outputs = self.rng, []
        sizes = [r.choice([4, 16])]
        parts = [self.layer("x", self.shape[1], sizes[0])]
        joined = parts[0]
        for _ in range(steps):
            sizes.append(r.choice([3, 8, 32]))
            parts.append(self.layer(self.norm(joined, sum(sizes[:-1])), sum(sizes[:-1]), sizes[-1]))
            operands = parts if r.random() < 0.6 or joined == parts[0] else [joined, parts[-1]]
            joined = self.node("Concat", operands, f"axis = {r.choice([1, -1 - self.spatial])}")
            if r.random() < 0.15:
                outputs.append(self.node("ReduceMax", [joined, self.axis()]) if r.random() < 0.5 else joined)
            if r.random() < 0.15:
                outputs.append(self.norm(self.node("Concat", [joined, parts[0]], "axis = 1"), sum(sizes) + sizes[0]))
        outputs += [self.norm(joined, sum(sizes)), self.node("Neg", [parts[-1]])]
        return "graph net {\n  opset 23\n" + self.head + "\n".join(self.lines) + "\n" + "".join(f"  output {o}\n" for o in dict.fromkeys(outputs)) + "}\n"

    def axis(self):
        self.count += 1
        self.lines.append(f"  const c{self.count}: i64[1] = [1]")
        return f"c{self.count}"


def npy(path):
    data = open(path, "rb").read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    shape = re.search(rb"'shape': \(([^)]*)\)", data)[1]
    return shape, struct.unpack(f"<{(len(data) - start) // 4}f", data[start:])


def compare(a, b, tolerance=2e-4):
    names = sorted(os.listdir(a))
    assert names and names == sorted(os.listdir(b)), "other outputs"
    for name in names:
        (s, x), (t, y) = npy(f"{a}/{name}"), npy(f"{b}/{name}")
        assert s == t, f"{name}: sizes {s} and {t}"
        most = max([abs(v) for v in y], default=0) + 1e-3
        for i, (p, q) in enumerate(zip(x, y)):
            assert abs(p - q) <= tolerance * most, f"{name}: element {i} is {p} and {q}"


def compare_all(folders, *tolerance):
    """Folders with results of one net in two ways each, fast and plain."""
    assert folders, "nothing to compare"
    for folder in folders:
        try:
            compare(f"{folder}/fast", f"{folder}/plain", *tolerance)
        except AssertionError as error:
            sys.exit(f"net {folder}: {error}")


def write(out, seed, count, kind=""):
    for k in range(count):
        rng = random.Random(seed + k)
        net = NormNet(rng) if kind == "norms-" else DenseNet(rng) if kind == "dense-" else Net(rng, kind == "large-") if kind != "integers-" else DynamicNet(rng) if k % 4 == 3 else IntegerNet(rng)
        with open(f"{out}/{kind}{k}.graph", "w") as f:
            f.write(net.text(7 if not kind else 5 if kind in ("large-", "dense-") else 3))


if __name__ == "__main__":
    if sys.argv[1] in ("--compare", "--equal"):
        compare_all(sys.argv[2:], *[0] if sys.argv[1] == "--equal" else [])
    elif sys.argv[1] in ("--large", "--integers", "--norms", "--dense"):
        write(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[1][2:] + "-")
    else:
        write(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
