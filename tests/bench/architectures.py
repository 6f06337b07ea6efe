#!/usr/bin/env python3
"""Exports networks of torchvision and transformers at real widths, with random weights, for models.py:  architectures.py OUT [NAME...]

Each becomes OUT/NAME.onnx, those of 8-bit products OUT/NAME.dyn.onnx too, by ONNX Runtime's quantize_dynamic. Those of text have the
symbols b and s. Needs torch, torchvision, transformers, onnx, onnxscript and onnxruntime."""
import sys

import torch
import torchvision
import transformers as hf
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import nn

IMAGES = {"resnet18": 224, "squeezenet1_1": 224, "densenet121": 224, "googlenet": 224, "inception_v3": 299, "mnasnet1_0": 224,
          "regnet_y_400mf": 224, "shufflenet_v2_x1_0": 224, "convnext_tiny": 224, "swin_t": 224, "swin_v2_t": 224, "maxvit_t": 224,
          "efficientnet_v2_s": 224, "resnext50_32x4d": 224, "deeplabv3_mobilenet_v3_large": 224, "lraspp_mobilenet_v3_large": 224, "alexnet": 224}
SMALL = dict(num_hidden_layers=4, vocab_size=8000)
TEXTS = {
    "minilm": lambda: hf.BertModel(hf.BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)),
    "albert": lambda: hf.AlbertModel(hf.AlbertConfig(hidden_size=768, num_attention_heads=12, intermediate_size=3072)),
    "mpnet": lambda: hf.MPNetModel(hf.MPNetConfig(num_hidden_layers=6)),
    "deberta": lambda: hf.DebertaV2Model(hf.DebertaV2Config(
        hidden_size=768, num_hidden_layers=6, num_attention_heads=12, intermediate_size=3072, vocab_size=32000, relative_attention=True,
        pos_att_type=["c2p", "p2c"], position_buckets=256, norm_rel_ebd="layer_norm", share_att_key=True)),
    "electra": lambda: hf.ElectraModel(hf.ElectraConfig(hidden_size=256, embedding_size=128, num_hidden_layers=12, num_attention_heads=4,
                                                        intermediate_size=1024)),
    "modernbert": lambda: hf.ModernBertModel(hf.ModernBertConfig(hidden_size=512, intermediate_size=768, num_hidden_layers=6, vocab_size=8000,
                                                                 num_attention_heads=8, pad_token_id=0, reference_compile=False)),
    "longformer": lambda: hf.LongformerModel(hf.LongformerConfig(hidden_size=512, num_hidden_layers=3, num_attention_heads=8,
                                                                 intermediate_size=2048, attention_window=[64] * 3, vocab_size=8000)),
    "funnel": lambda: hf.FunnelBaseModel(hf.FunnelConfig(block_sizes=[2, 2, 2], d_model=512, n_head=8, d_head=64, d_inner=2048, vocab_size=8000)),
    "xlnet": lambda: hf.XLNetModel(hf.XLNetConfig(d_model=512, n_layer=4, n_head=8, d_inner=2048, vocab_size=8000)),
    "opt": lambda: hf.OPTForCausalLM(hf.OPTConfig(**SMALL)),
    "bloom": lambda: hf.BloomForCausalLM(hf.BloomConfig(hidden_size=768, n_head=12, n_layer=4, vocab_size=8000)),
    "mamba": lambda: hf.MambaForCausalLM(hf.MambaConfig(hidden_size=512, **SMALL)),
}
VISION = {
    "clip_vision": (224, lambda: hf.CLIPVisionModel(hf.CLIPVisionConfig())),
    "dinov2": (224, lambda: hf.Dinov2Model(hf.Dinov2Config(num_hidden_layers=6))),
    "segformer": (512, lambda: hf.SegformerModel(hf.SegformerConfig())),
    "mobilevit": (256, lambda: hf.MobileViTModel(hf.MobileViTConfig())),
    "detr": (320, lambda: hf.DetrForObjectDetection(hf.DetrConfig(use_pretrained_backbone=False, use_timm_backbone=False, backbone=None,
                                                                  backbone_config=hf.ResNetConfig(out_features=["stage4"])))),
    "yolos": (256, lambda: hf.YolosForObjectDetection(hf.YolosConfig(hidden_size=192, num_attention_heads=3, intermediate_size=768,
                                                                     image_size=[256, 256]))),
    "swin2sr": (64, lambda: hf.Swin2SRModel(hf.Swin2SRConfig(image_size=64, embed_dim=60, depths=[2, 2], num_heads=[6, 6]))),
    "dpt": (224, lambda: hf.DPTForDepthEstimation(hf.DPTConfig(
        hidden_size=384, num_attention_heads=6, intermediate_size=1536, image_size=224, backbone_out_indices=[2, 5, 8, 11],
        neck_hidden_sizes=[48, 96, 192, 384], is_hybrid=False))),
    "convnextv2": (224, lambda: hf.ConvNextV2Model(hf.ConvNextV2Config(hidden_sizes=[40, 80, 160, 320], depths=[2, 2, 6, 2]))),
    "beit": (224, lambda: hf.BeitModel(hf.BeitConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536,
                                                     use_relative_position_bias=True))),
    "levit": (224, lambda: hf.LevitModel(hf.LevitConfig())),
    "pvt": (224, lambda: hf.PvtModel(hf.PvtConfig())),
    "poolformer": (224, lambda: hf.PoolFormerModel(hf.PoolFormerConfig())),
    "cvt": (224, lambda: hf.CvtModel(hf.CvtConfig(depth=[1, 2, 4]))),
}
SPEECH = {
    "wav2vec2": ((1, 16000), lambda: hf.Wav2Vec2Model(hf.Wav2Vec2Config(num_hidden_layers=6))),
    "conformer": ((1, 16000), lambda: hf.Wav2Vec2ConformerModel(hf.Wav2Vec2ConformerConfig(
        num_hidden_layers=4, hidden_size=384, num_attention_heads=6, intermediate_size=1536))),
    "hifigan": ((1, 100, 80), lambda: hf.SpeechT5HifiGan(hf.SpeechT5HifiGanConfig())),
}


class First(nn.Module):
    """The first output alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        if hasattr(model, "config"):
            model.config._attn_implementation, model.config.use_cache = "eager", False

    def forward(self, *inputs):
        y = self.model(*inputs)
        return y if torch.is_tensor(y) else y[0]


class UNet(nn.Module):
    """Norms of groups, SiLU, skips and upsampling to the nearest, as in diffusion."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([self.block(3, 32), self.block(32, 64), self.block(64, 128)])
        self.middle, self.last = self.block(128, 256), nn.Conv2d(32, 3, 1)
        self.up = nn.ModuleList([self.block(384, 128), self.block(192, 64), self.block(96, 32)])

    @staticmethod
    def block(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(8, o), nn.SiLU(),
                             nn.Conv2d(o, o, 3, padding=1), nn.GroupNorm(8, o), nn.SiLU())

    def forward(self, x):
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = self.middle(x)
        for block in self.up:
            x = block(torch.cat([nn.functional.interpolate(x, scale_factor=2.0, mode="nearest"), skips.pop()], 1))
        return self.last(x)


def normalised(model):
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean.normal_(0, .1)
            m.running_var.uniform_(.5, 1.5)
    return model


def image_net(name):
    bare = dict(weights_backbone=None) if "lraspp" in name or "deeplab" in name else {}
    return normalised(torchvision.models.get_model(name, weights=None, **bare))


def export(out, name):
    path, plain = f"{out}/{name}.onnx", dict(opset_version=17, dynamo=False)
    if name in IMAGES:
        x = torch.randn(1, 3, IMAGES[name], IMAGES[name])
        torch.onnx.export(image_net(name).eval(), (x,), path, opset_version=18, dynamo=True, external_data=False, input_names=["input"])
    elif name in TEXTS:
        ids = torch.ones(1, 128, dtype=torch.long)
        torch.onnx.export(First(TEXTS[name]()).eval(), (ids,), path, input_names=["input_ids"], dynamic_axes={"input_ids": {0: "b", 1: "s"}}, **plain)
    else:
        shape, make = SPEECH[name] if name in SPEECH else ((1, 3, 128, 128), UNet) if name == "unet" else ((1, 3, *[VISION[name][0]] * 2), VISION[name][1])
        torch.onnx.export(First(make()).eval(), (torch.randn(shape),), path, input_names=["x"], **plain)
    if name in ("minilm", "deberta", "clip_vision", "wav2vec2", "unet"):
        quantize_dynamic(path, path.replace(".onnx", ".dyn.onnx"), weight_type=QuantType.QInt8)


if __name__ == "__main__":
    torch.manual_seed(0)
    for wanted in sys.argv[2:] or [*IMAGES, *TEXTS, *VISION, *SPEECH, "unet"]:
        export(sys.argv[1], wanted)
        print(wanted, flush=True)
