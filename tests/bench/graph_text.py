"""The text of a graph, line by line, whose weights are ranges of one file of numbers."""


class GraphText:
    def __init__(self, path, size):
        """size: bytes of the file, of which each weight takes the next ones that it fits into."""
        self.path, self.size, self.at, self.lines = path, size, 0, []

    def weight(self, name, *dims, dtype="f32"):
        size = {"f32": 4, "u8": 1}[dtype]
        for d in dims:
            size *= d
        if self.at + size > self.size:
            self.at = 0
        self.lines.append(f'const {name}: {dtype}[{", ".join(map(str, dims))}] = file "{self.path}" {self.at} {size} origin {name}')
        self.at += size
        return name

    def ints(self, name, *values, scalar=False):
        self.lines.append(f'const {name}: i64[{"" if scalar else len(values)}] = [{", ".join(map(str, values))}]')
        return name

    def node(self, result, call):
        """Results are named by a text of names between commas; the node has the first one's name."""
        names = result.split(",")
        self.lines.append(f'node {names[0]}: {", ".join(f"{n}: ?" for n in names)} = {call}')
        return names[0]
