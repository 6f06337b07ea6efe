"""Nets that no sample is: resnet.onnx and resnet-training.onnx, a small residual net with norms over batches, as a model for inference and as one
that trains; toy.onnx, the transformer whose collectives torch's tests of DTensor count."""
import io

import numpy as np
import onnx
import torch
from torch import nn

from common import spread


class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after)
        self.conv2, self.bn2 = nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after)
        self.down = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + self.down(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8)
        self.pool, self.blocks = nn.MaxPool2d(3, 2, 1), nn.Sequential(Block(8, 8, 1), Block(8, 12, 2))
        self.average, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(12, 10)

    def forward(self, pixel_values):
        x = self.pool(torch.relu(self.bn(self.conv(pixel_values))))
        return self.head(self.average(self.blocks(x)).flatten(1))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.attention_norm, self.ffn_norm = heads, nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.w1, self.w2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        n = self.attention_norm(x)
        q, k, v = (w(n).unflatten(-1, (self.heads, -1)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.wo(y.transpose(1, 2).flatten(2))
        return x + self.w2(nn.functional.gelu(self.w1(self.ffn_norm(x))))


class Toy(nn.Module):
    """2 layers of width 16 with 4 heads, 8 tokens, 16 learned positions, and a head that is the table"""
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(8, 16), nn.Embedding(16, 16)
        self.layers, self.norm, self.head = nn.Sequential(Layer(16, 4), Layer(16, 4)), nn.LayerNorm(16), nn.Linear(16, 8, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, input_ids):
        at = torch.arange(input_ids.shape[1])
        return self.head(self.norm(self.layers(self.tokens(input_ids) + self.positions(at))))


def filled(net):
    with torch.no_grad():
        for k, (name, x) in enumerate([*net.named_parameters(), *net.named_buffers()]):
            if x.dtype != torch.float32:
                continue
            drawn = torch.from_numpy(spread(tuple(x.shape), 200 + k).astype(np.float32))
            about = 1.0 if name.endswith("running_var") or (x.dim() == 1 and name.endswith("weight")) else 0.0
            x.copy_(about + drawn * (0.4 if x.dim() == 1 else (2 / x[0].numel()) ** 0.5))
    return net


def write(path):
    """Returns the net, in the mode in which it is trained."""
    toy, training, mode = path.endswith("toy.onnx"), path.endswith("training.onnx"), torch.onnx.TrainingMode
    net = filled(Toy() if toy else Net()).train(training)
    before = {n: b.clone() for n, b in net.named_buffers()}
    name, example, axes = ("input_ids", torch.zeros(2, 6, dtype=torch.int64), {0: "batch", 1: "sequence"}) if toy else \
        ("pixel_values", torch.zeros(2, 3, 32, 32), {0: "batch"})
    data = io.BytesIO()
    torch.onnx.export(net, (example,), data, dynamo=False, training=mode.TRAINING if training else mode.PRESERVE,
                      do_constant_folding=False, input_names=[name], output_names=["logits"], opset_version=17,
                      dynamic_axes={name: axes, "logits": axes})
    for n, b in net.named_buffers():
        b.copy_(before[n])
    model = onnx.load_from_string(data.getvalue())
    for node in model.graph.node:
        node.doc_string = ""
    onnx.save(model, path)
    return net
