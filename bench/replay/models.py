# SPDX-License-Identifier: Apache-2.0
"""The models whose steps are recorded, in plain torch.nn: layer for layer those of their papers."""
import torch
import torch.nn.functional as F
from torch import nn


def conv_bn(cin, cout, kernel, stride=1, groups=1):
    return nn.Sequential(nn.Conv2d(cin, cout, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(cout))


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.first, self.second = conv_bn(cin, cout, 3, stride), conv_bn(cout, cout, 3)
        self.shortcut = conv_bn(cin, cout, 1, stride) if stride > 1 or cin != cout else nn.Identity()

    def forward(self, x):
        return F.relu_(self.second(F.relu_(self.first(x))) + self.shortcut(x))


def resnet(widths, blocks, classes):
    layers, cin = [conv_bn(3, widths[0], 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], widths[0]
    for i, width in enumerate(widths):
        for j in range(blocks):
            layers.append(Block(cin, width, 2 if i and not j else 1))
            cin = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(cin, classes))


class Inverted(nn.Module):
    def __init__(self, cin, cout, stride, expand):
        super().__init__()
        wide = cin * expand
        layers = [conv_bn(cin, wide, 1), nn.ReLU6(inplace=True)] if expand > 1 else []
        self.layers = nn.Sequential(*layers, conv_bn(wide, wide, 3, stride, wide), nn.ReLU6(inplace=True), conv_bn(wide, cout, 1))
        self.residual = stride == 1 and cin == cout

    def forward(self, x):
        return x + self.layers(x) if self.residual else self.layers(x)


def mobilenet_v2(classes):
    layers, cin = [conv_bn(3, 32, 3, 2), nn.ReLU6(inplace=True)], 32
    for expand, cout, repeats, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for i in range(repeats):
            layers.append(Inverted(cin, cout, stride if i == 0 else 1, expand))
            cin = cout
    return nn.Sequential(*layers, conv_bn(cin, 1280, 1), nn.ReLU6(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, classes))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, s, w = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, s, w))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


class Transformer(nn.Module):
    def __init__(self, layers, width, heads, sequence, words):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(0.02 * torch.randn(sequence, width))
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(layers)], nn.LayerNorm(width))
        self.head = nn.Linear(width, words)

    def forward(self, x):
        return self.head(self.layers(self.words(x) + self.places)).flatten(0, 1)


def images(batch, extent, classes):
    return torch.randn(batch, 3, extent, extent), torch.randint(classes, (batch,))


def tokens(batch, sequence, words):
    return torch.randint(words, (batch, sequence)), torch.randint(words, (batch * sequence,))


def sgd(parameters, **how):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4, **how)


def adamw(parameters, **how):
    return torch.optim.AdamW(parameters, lr=1e-4, **how)


# Name -> model, feed and labels, optimizer. The tiny ones are for the tests: every kind of call in milliseconds.
MODELS = {
    "resnet18": (lambda: resnet([64, 128, 256, 512], 2, 1000), lambda: images(8, 224, 1000), lambda p: sgd(p, foreach=True)),
    "mobilenet_v2": (lambda: mobilenet_v2(1000), lambda: images(8, 224, 1000), lambda p: sgd(p, fused=True)),
    "transformer": (lambda: Transformer(6, 512, 8, 128, 4000), lambda: tokens(8, 128, 4000), lambda p: adamw(p, fused=True)),
    "tiny_resnet": (lambda: resnet([8, 16], 1, 10), lambda: images(2, 32, 10), lambda p: sgd(p, foreach=True)),
    "tiny_transformer": (lambda: Transformer(1, 32, 2, 16, 50), lambda: tokens(2, 16, 50), lambda p: adamw(p, foreach=True)),
}
