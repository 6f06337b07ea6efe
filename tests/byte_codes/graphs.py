"""Random graphs of operators between bytes, as quantisers write them, and a comparison of outputs.

    graphs.py OUT SEED COUNT    writes OUT/K.graph, and OUT/K.open.graph, of which every value is an output, so that nothing is fused
    graphs.py --equal A B       folders of .npy: those of A equal those of B, bit by bit?
"""
import os
import random
import struct
import sys

FUNCTIONS = ["Sigmoid", "Tanh", "Relu", "HardSwish", "HardSigmoid {alpha = 0.3, beta = 0.4}", "LeakyRelu {alpha = 0.2}", "LeakyRelu {alpha = 1.5}",
             "Swish {alpha = 1.5}", "Exp", "Abs", "Neg", "Sqrt", "Floor", "Elu", "Softplus"]


class Graph:
    def __init__(self, rng):
        self.rng, self.lines, self.names, self.count = rng, [], [], 0
        shape = [rng.choice([1, 2]), rng.choice([4, 8, 36]), rng.randint(5, 9), rng.randint(4, 8)]
        self.head = f"  input x: f32[{', '.join(map(str, shape))}]\n"
        self.values = [self.encode("x", shape)]

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def const(self, text):
        name = self.name()
        self.lines.append(f"  const {name}: {text}")
        return name

    def node(self, op, operands, results=1):
        op, _, attributes = op.partition(" ")
        names = [self.name() for _ in range(results)]
        self.names += names
        self.lines.append(f"  node {self.name()}: {', '.join(n + ': ?' for n in names)} = {op}({', '.join(operands)}) {attributes}")
        return names if results > 1 else names[0]

    # A value of bytes: name, shape, scale and zero point.
    def coding(self):
        r = self.rng
        kind = r.choice(["u8", "u8", "i8"])
        scale = r.choice([r.uniform(0.003, 0.05), 2.0 ** r.randint(-7, -4)])
        zero = self.const(f"{kind}[] = [{r.randint(0, 200) if kind == 'u8' else r.randint(-60, 60)}]") if r.random() < 0.8 else None
        return self.const(f'f32[] = hex "{struct.pack("<f", scale).hex()}"'), zero

    def encode(self, x, shape, coding=None):
        coding = coding or self.coding()
        return self.node("QuantizeLinear", [x, *[c for c in coding if c]]), shape, coding

    def decode(self, v):
        return self.node("DequantizeLinear", [v[0], *[c for c in v[2] if c]])

    def some(self):
        return self.rng.choice(self.values[-3:])

    def function(self):
        v = self.some()
        y = self.node(self.rng.choice(FUNCTIONS), [self.decode(v)])
        if self.rng.random() < 0.4:
            y = self.node(self.rng.choice(FUNCTIONS), [self.decode(self.encode(y, v[1]))])
        return self.encode(y, v[1])

    def gate(self):
        v = self.some()
        x = self.decode(v)
        y = self.decode(self.encode(self.node(self.rng.choice(["Sigmoid", "HardSigmoid", "Tanh"]), [x]), v[1]))
        return self.encode(self.node("Mul", self.rng.sample([x, y], 2)), v[1])

    def pair(self):
        v = self.some()
        alike = [w for w in self.values if w[1] == v[1]]
        x, y = self.decode(v), self.decode(self.rng.choice(alike))
        how = self.rng.random()
        if how < 0.3:
            small = self.encode(self.node("ReduceMean {axes = [2, 3]}", [x]), None)
            y = self.decode(small)
        elif how < 0.4:
            y = self.node("DequantizeLinear", [self.const(f'u8[{v[1][-1]}] = hex "{bytes(self.rng.randrange(256) for _ in range(v[1][-1])).hex()}"'), v[2][0]])
        y = self.node(self.rng.choice(["Add", "Mul", "Sub", "Max", "Min"]), self.rng.sample([x, y], 2))
        if self.rng.random() < 0.3:
            y = self.node("Relu", [y])
        return self.encode(y, v[1])

    def coded_move(self, op, operands, shape, coding, results=1):
        coding = coding if self.rng.random() < 0.7 else self.coding()
        made = self.node(op, operands, results)
        return self.encode(made, shape, coding) if results == 1 else [self.encode(m, shape, coding) for m in made]

    def move(self):
        r, v = self.rng, self.some()
        x, shape, coding = self.decode(v), v[1], v[2]
        how = r.choice(["Transpose", "Reshape", "Slice", "Split", "Concat", "MaxPool", "Resize", "Gather", "Expand", "Again"])
        if how == "Transpose":
            perm = r.sample(range(4), 4)
            return self.coded_move(f"Transpose {{perm = {perm}}}", [x], [shape[p] for p in perm], coding)
        if how == "Reshape":
            shape = [shape[0], shape[1], shape[2] * shape[3], 1]
            return self.coded_move("Reshape", [x, self.const(f"i64[4] = {shape}")], shape, coding)
        if how == "Slice" and shape[1] > 1:
            operands = [x] + [self.const(f"i64[1] = [{k}]") for k in (1, shape[1], 1)]
            return self.coded_move("Slice", operands, [shape[0], shape[1] - 1, *shape[2:]], coding)
        if how == "Split" and shape[1] % 2 == 0:
            both = self.coded_move("Split {axis = 1, num_outputs = 2}", [x], [shape[0], shape[1] // 2, *shape[2:]], coding, 2)
            self.values.append(both[0])
            return both[1]
        if how == "Concat":
            other = r.choice([w for w in self.values if w[1] == shape])
            return self.coded_move("Concat {axis = 1}", [x, self.decode(other)], [shape[0], 2 * shape[1], *shape[2:]], coding)
        if how == "MaxPool" and min(shape[2:]) >= 2:
            return self.coded_move("MaxPool {kernel_shape = [2, 2], pads = [1, 0, 0, 1]}", [x], shape, coding)
        if how == "Resize" and shape[2] < 20:
            return self.coded_move("Resize {mode = \"nearest\"}", [x, "_", self.const("f32[4] = [1, 1, 2, 1]")], [*shape[:2], 2 * shape[2], shape[3]], coding)
        if how == "Gather":
            return self.coded_move("Gather {axis = 2}", [x, self.const("i64[3] = [0, 2, 1]" if shape[2] > 2 else "i64[3] = [0, 0, 0]")], [*shape[:2], 3, shape[3]], coding)
        if how == "Expand":
            return self.coded_move("Expand", [self.node("ReduceMax {axes = [2]}", [x]), self.const(f"i64[4] = {shape}")], shape, coding)
        return self.encode(x, shape, coding)

    def text(self, steps):
        for _ in range(steps):
            self.values.append(self.rng.choice([self.function, self.gate, self.pair, self.move])())
        outputs = [self.node("Neg", [self.decode(v)]) for v in self.values[-2:]]
        body = "graph bytes {\n  opset 24\n" + self.head + "\n".join(self.lines) + "\n"
        return [body + "".join(f"  output {o}\n" for o in names) + "}\n" for names in (outputs, outputs + [n for n in self.names if n not in outputs])]


def equal(a, b):
    names = sorted(os.listdir(a))
    assert names, "no outputs"
    for name in names:
        assert open(f"{a}/{name}", "rb").read() == open(f"{b}/{name}", "rb").read(), f"{name} differs"


if __name__ == "__main__":
    if sys.argv[1] == "--equal":
        equal(*sys.argv[2:])
    else:
        for k in range(int(sys.argv[3])):
            for kind, text in zip(("", ".open"), Graph(random.Random(int(sys.argv[2]) + k)).text(7)):
                with open(f"{sys.argv[1]}/{k}{kind}.graph", "w") as f:
                    f.write(text)
