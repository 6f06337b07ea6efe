"""A small residual net with norms over batches, as a model for inference and as one that trains: resnet.onnx and resnet-training.onnx."""
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


def filled():
    net = Net()
    with torch.no_grad():
        for k, (name, x) in enumerate([*net.named_parameters(), *net.named_buffers()]):
            if x.dtype != torch.float32:
                continue
            drawn = torch.from_numpy(spread(tuple(x.shape), 200 + k).astype(np.float32))
            about = 1.0 if name.endswith("running_var") or (x.dim() == 1 and name.endswith("weight")) else 0.0
            x.copy_(about + drawn * (0.4 if x.dim() == 1 else (2 / x[0].numel()) ** 0.5))
    return net


def write(path, training):
    """Returns the net, in that mode."""
    net, mode = filled().train(training), torch.onnx.TrainingMode
    before = {n: b.clone() for n, b in net.named_buffers()}
    data = io.BytesIO()
    torch.onnx.export(net, (torch.zeros(2, 3, 32, 32),), data, dynamo=False, training=mode.TRAINING if training else mode.PRESERVE,
                      do_constant_folding=False, input_names=["pixel_values"], output_names=["logits"], opset_version=17,
                      dynamic_axes={"pixel_values": {0: "batch"}, "logits": {0: "batch"}})
    for n, b in net.named_buffers():
        b.copy_(before[n])
    model = onnx.load_from_string(data.getvalue())
    for node in model.graph.node:
        node.doc_string = ""
    onnx.save(model, path)
    return net.train(training)
