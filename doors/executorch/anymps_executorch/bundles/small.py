# SPDX-License-Identifier: Apache-2.0
"""Small networks, a few tens of KB each, that have the blocks of the example models: what CI runs."""

import torch
from torch import nn

from .. import models
from ..lowering import Method

F = nn.functional


def seeded(seed=0):
    torch.manual_seed(seed)


def network(make):
    """A Method of a factory of (module, inputs): seeded, with its batch norms calibrated and no zeros left."""

    def build():
        seeded()
        module, inputs = make()
        module = module.eval()
        models.seed_zeros(module)
        models.calibrate(module, inputs)
        models.scale_last(module, inputs)
        return Method(module, inputs)

    return build


def example(name):
    """An example model of the wheel."""

    def build():
        made = models.example(name)
        return Method(made.module, made.inputs)

    return build


def mobilenet():
    from torchvision.models.mobilenetv2 import InvertedResidual
    from torchvision.ops import Conv2dNormActivation

    features = nn.Sequential(
        Conv2dNormActivation(3, 8, stride=2, activation_layer=nn.ReLU6),
        InvertedResidual(8, 8, 1, 1),
        InvertedResidual(8, 12, 2, 6),
        InvertedResidual(12, 12, 1, 6),
        Conv2dNormActivation(12, 40, kernel_size=1, activation_layer=nn.ReLU6),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(40, 10),
    )
    return features, (torch.randn(1, 3, 33, 31),)


def mobilenet_v3():
    from torchvision.models.mobilenetv3 import InvertedResidual, InvertedResidualConfig

    def block(*settings):
        return InvertedResidual(InvertedResidualConfig(*settings, width_mult=1.0), nn.BatchNorm2d)

    features = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1),
        nn.Hardswish(),
        block(8, 3, 16, 8, True, "RE", 2, 1),
        block(8, 5, 24, 16, True, "HS", 1, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )
    return features, (torch.randn(1, 3, 29, 33),)


def resnet():
    from torchvision.models.resnet import BasicBlock

    down = nn.Sequential(nn.Conv2d(8, 12, 1, 2, bias=False), nn.BatchNorm2d(12))
    features = nn.Sequential(
        nn.Conv2d(3, 8, 7, 2, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        BasicBlock(8, 8),
        BasicBlock(8, 12, 2, down),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 10),
    )
    return features, (torch.randn(2, 3, 37, 35),)


class Inception(nn.Module):
    """Branches of different windows side by side."""

    def __init__(self):
        super().__init__()
        self.one = nn.Conv2d(6, 5, 1)
        self.wide = nn.Sequential(nn.Conv2d(6, 4, (1, 7), padding=(0, 3)), nn.Conv2d(4, 5, (7, 1), padding=(3, 0)))
        self.last = nn.Conv2d(16, 7, 1)

    def forward(self, x):
        pooled = F.avg_pool2d(x, 3, 1, 1)
        x = torch.cat([self.one(x), self.wide(x), pooled], 1)
        return self.last(F.max_pool2d(x, 3, 2, ceil_mode=True))


def vit():
    from torchvision.models.vision_transformer import VisionTransformer

    module = VisionTransformer(
        image_size=24, patch_size=8, num_layers=2, num_heads=2, hidden_dim=24, mlp_dim=40, num_classes=10
    )
    return module, (torch.randn(1, 3, 24, 24),)


def mobilebert():
    from transformers import MobileBertConfig, MobileBertModel

    config = MobileBertConfig(
        vocab_size=97,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        embedding_size=16,
        intra_bottleneck_size=16,
        num_feedforward_networks=2,
        max_position_embeddings=32,
        return_dict=False,
    )
    return MobileBertModel(config), (torch.randint(0, 97, (1, 11)),)


class SuperResolution(nn.Module):
    """A small EDSR: residual blocks, then a pixel shuffle."""

    def __init__(self):
        super().__init__()
        self.head = nn.Conv2d(3, 8, 3, padding=1)
        self.body = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1))
        self.tail = nn.Sequential(nn.Conv2d(8, 12, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, x):
        x = self.head(x)
        return self.tail(x + 0.1 * self.body(x))


class Segmentation(nn.Module):
    """Dilated convolutions and an interpolation that no delegate can have."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 5, 3, 1, 2, 2))

    def forward(self, x):
        y = self.body(x)
        return F.interpolate(y, x.shape[-2:], mode="bilinear", align_corners=False).softmax(1)


def speech():
    """Convolutions over time, as in Wav2Letter."""
    layers = nn.Sequential(
        nn.Conv1d(1, 8, 25, 4, 12),
        nn.ReLU(),
        nn.Conv1d(8, 9, 7, padding=3),
        nn.ReLU(),
        nn.Conv1d(9, 11, 1),
        nn.LogSoftmax(1),
    )
    return layers, (torch.randn(2, 1, 201),)


class Attention(nn.Module):
    def forward(self, query, key, value):
        return F.scaled_dot_product_attention(query, key, value)


class Decoder(nn.Module):
    """A causal layer with a table of tokens: arange, comparison, mask."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(61, 16)
        self.places = nn.Embedding(12, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 24, batch_first=True, norm_first=True)
        self.head = nn.Linear(16, 61)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.tokens(ids) + self.places(torch.arange(n))
        mask = torch.triu(torch.full((n, n), float("-inf")), 1)
        return self.head(self.layer(x, src_mask=mask, is_causal=True))


SMALL = {
    "mul": example("mul"),
    "linear": example("linear"),
    "conv1d": example("conv1d"),
    "lstm": example("lstm"),
    "ds_cnn": example("ds_cnn"),
    "mobilenet_v2": network(mobilenet),
    "mobilenet_v3": network(mobilenet_v3),
    "resnet": network(resnet),
    "inception": network(lambda: (Inception(), (torch.randn(1, 6, 15, 14),))),
    "vit": network(vit),
    "mobilebert": network(mobilebert),
    "edsr": network(lambda: (SuperResolution(), (torch.randn(1, 3, 9, 11),))),
    "deeplab": network(lambda: (Segmentation(), (torch.randn(1, 3, 21, 19),))),
    "wav2letter": network(speech),
    "attention": network(lambda: (Attention(), tuple(torch.randn(1, 2, n, 8) for n in (5, 7, 7)))),
    "decoder": network(lambda: (Decoder(), (torch.randint(0, 61, (2, 9)),))),
}
FLOAT32_ONLY = {"ds_cnn"}  # as large in halves as it needs to be once
