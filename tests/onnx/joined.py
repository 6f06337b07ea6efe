"""Cases as one model: programs start once for all of them, not for each. In the joined model every name has the prefix of its case."""
import onnx
from onnx import compose


def prefix(i):
    return f"c{i}_"


def groups(models):
    """Indices of models, together where their operators are of the same versions."""
    found = {}
    for i, model in enumerate(models):
        found.setdefault((model.ir_version, *sorted((o.domain, o.version) for o in model.opset_import)), []).append(i)
    return found.values()


def join(cases):
    """(model, inputs) of {number: (model, inputs)}, whose models are of one group."""
    whole, given = onnx.ModelProto(), {}
    for i, (model, inputs) in cases.items():
        graph = compose.add_prefix_graph(model.graph, prefix(i))
        for value in graph.input:
            for d in value.type.tensor_type.shape.dim:
                if d.dim_param:
                    d.dim_param = prefix(i) + d.dim_param
        for field in ("node", "initializer", "input", "output"):
            getattr(whole.graph, field).extend(getattr(graph, field))
        given.update({prefix(i) + name: value for name, value in inputs.items()})
    whole.graph.name, whole.ir_version = "cases", model.ir_version
    whole.opset_import.extend(model.opset_import)
    return whole, given


def faults(cases, check):
    """What check(model, inputs) finds wrong, by the number of the case: of [(model, inputs)] joined, and where that is wrong, of each."""
    wrong = {}
    for numbers in groups([model for model, _ in cases]):
        together = {i: cases[i] for i in numbers}
        why = check(*join(together))
        if why:
            alone = {i: found for i, case in together.items() if (found := check(*case))}
            wrong.update(alone or {numbers[0]: f"of {len(numbers)} cases together, but of none alone: {why}"})
    return wrong
