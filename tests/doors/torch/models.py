# SPDX-License-Identifier: Apache-2.0
"""Models that train some steps on a device: what they are, what they are fed, and how a step is taken.

    python -m tests.doors.torch.models resnet18 [--device mps] [--optimizer adamw] [--compile BACKEND] [--steps 3]

prints the losses and the norms of the gradients. Weights and inputs are made on the CPU, so that every device starts from the same ones.
"""
import argparse
import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Job:
    """A model and what one step of it computes: loss(model, *inputs)."""
    model: nn.Module
    inputs: tuple
    loss: object = None
    rate: float = 0.05  # of SGD; lower where batch norms over few elements widen the smallest difference

    def __post_init__(self):
        self.loss = self.loss or (lambda model, x, y: F.cross_entropy(model(x), y))

    def to(self, device, dtype=torch.float32):
        """`dtype`: of all that is f32."""
        move = lambda v: v.to(device, dtype if v.dtype == torch.float32 else v.dtype) if isinstance(v, torch.Tensor) \
            else type(v)(map(move, v)) if isinstance(v, (list, tuple)) \
            else {k: move(x) for k, x in v.items()} if isinstance(v, dict) else v
        return Job(self.model.to(device, dtype), move(self.inputs), self.loss, self.rate)


def without_dropout(model):
    """Random streams differ between devices."""
    for module in model.modules():
        if isinstance(module, (nn.Dropout, nn.Dropout2d)):
            module.p = 0.0
        elif isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
    return model


def images(batch, size):
    return torch.randn(batch, 3, size, size), torch.arange(batch) % 10


def resnet18():
    from torchvision.models import resnet18
    return Job(resnet18(weights=None, num_classes=10), images(4, 64), rate=1e-3)


def mobilenet_v2():
    from torchvision.models import mobilenet_v2
    return Job(without_dropout(mobilenet_v2(weights=None, num_classes=10)), images(4, 64), rate=1e-3)


def vit_b_16():
    from torchvision.models import vit_b_16
    return Job(without_dropout(vit_b_16(weights=None, num_classes=10, image_size=32)), images(2, 32), rate=1e-3)


def detection():
    """SSDlite: anchors, box coding, matching, hard negative mining; the losses of all heads."""
    from torchvision.models.detection import ssdlite320_mobilenet_v3_large
    model = without_dropout(ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5))
    boxes = torch.tensor([[20.0, 30.0, 120.0, 150.0], [5.0, 5.0, 60.0, 40.0]])
    targets = [{"boxes": boxes + 10 * i, "labels": torch.tensor([1 + i, 3])} for i in range(2)]
    return Job(model, ([torch.rand(3, 96, 96), torch.rand(3, 80, 112)], targets),
               lambda model, x, y: sum(model(x, y).values()), rate=1e-3)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, mask):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, words=97, width=64, heads=4, layers=2, length=24):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.randn(length, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, tokens, mask=None):
        x = self.words(tokens) + self.places
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))


def transformer():
    """Causal attention."""
    tokens = torch.randint(97, (4, 25))
    return Job(Transformer(), (tokens[:, :-1], tokens[:, 1:]), lambda model, x, y: F.cross_entropy(model(x).flatten(0, 1), y.flatten()))


def transformer_padded():
    """Attention with a mask over padding; padded targets do not count."""
    tokens, lengths = torch.randint(97, (4, 25)), torch.tensor([24, 17, 9, 21])
    real = torch.arange(24) < lengths[:, None]
    targets = tokens[:, 1:].masked_fill(~real, -100)
    return Job(Transformer(), (tokens[:, :-1], targets, real[:, None, None, :].expand(-1, 1, 24, -1)),
               lambda model, x, y, mask: F.cross_entropy(model(x, mask).flatten(0, 1), y.flatten(), ignore_index=-100))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 32)
        self.lstm = nn.LSTM(32, 48, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(96, 50)

    def forward(self, tokens):
        return self.head(self.lstm(self.words(tokens))[0])


def lstm():
    tokens = torch.randint(50, (4, 17))
    return Job(Recurrent(), (tokens[:, :-1], tokens[:, 1:]), lambda model, x, y: F.cross_entropy(model(x).flatten(0, 1), y.flatten()))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(time, outputs)
        self.norm2, self.conv2 = nn.GroupNorm(4, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x, t):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class UNet(nn.Module):
    """Predicts the noise in an image: down, attention in the middle, up with skips."""

    def __init__(self, width=16, time=32):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(time, time), nn.SiLU(), nn.Linear(time, time))
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down1, self.pool1 = Residual(width, width, time), nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.down2, self.pool2 = Residual(width, 2 * width, time), nn.AvgPool2d(2)
        self.middle, self.attend = Residual(2 * width, 2 * width, time), nn.MultiheadAttention(2 * width, 2, batch_first=True)
        self.grow2, self.up2 = nn.ConvTranspose2d(2 * width, 2 * width, 2, stride=2), Residual(4 * width, width, time)
        self.up1, self.last = Residual(2 * width, width, time), nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, t):
        angle = t[:, None] * torch.exp(torch.arange(16, device=x.device) * (-math.log(1e4) / 15))
        t = self.time(torch.cat([angle.sin(), angle.cos()], dim=1))
        a = self.down1(self.first(x), t)
        b = self.down2(self.pool1(a), t)
        c = self.middle(self.pool2(b), t)
        flat = c.flatten(2).transpose(1, 2)
        c = c + self.attend(flat, flat, flat, need_weights=False)[0].transpose(1, 2).unflatten(2, c.shape[2:])
        b = self.up2(torch.cat([self.grow2(c), b], dim=1), t)
        return self.last(self.up1(torch.cat([F.interpolate(b, scale_factor=2, mode="nearest"), a], dim=1), t))


def diffusion():
    clean, noise, t = torch.randn(2, 3, 16, 16), torch.randn(2, 3, 16, 16), torch.rand(2)
    keep = torch.cos(t * math.pi / 2)[:, None, None, None]
    return Job(UNet(), (keep * clean + (1 - keep**2).sqrt() * noise, t * 1000, noise),
               lambda model, x, t, noise: F.mse_loss(model(x, t), noise))


MODELS = {f.__name__: f for f in (resnet18, mobilenet_v2, vit_b_16, detection, transformer, transformer_padded, lstm, diffusion)}
OPTIMIZERS = {
    "sgd": lambda p, rate: torch.optim.SGD(p, lr=rate, momentum=0.9, weight_decay=1e-4, foreach=False),
    "sgd_foreach": lambda p, rate: torch.optim.SGD(p, lr=rate, momentum=0.9, nesterov=True, foreach=True),
    "sgd_fused": lambda p, rate: torch.optim.SGD(p, lr=rate, momentum=0.9, fused=True),
    "adam": lambda p, rate: torch.optim.Adam(p, lr=1e-3, eps=1e-3, foreach=False),
    "adamw": lambda p, rate: torch.optim.AdamW(p, lr=1e-3, eps=1e-3, foreach=False),
    "adamw_foreach": lambda p, rate: torch.optim.AdamW(p, lr=1e-3, eps=1e-3, foreach=True),
    "adamw_fused": lambda p, rate: torch.optim.AdamW(p, lr=1e-3, eps=1e-3, fused=True),
}


def train(name, device, optimizer="sgd", steps=3, autocast=None, clip=None, compiled=None, dtype=torch.float32):
    """(loss, norm of all gradients) of each step. `autocast` is a dtype; f16 trains with a GradScaler."""
    torch.manual_seed(0)
    job = MODELS[name]().to(device, dtype)
    model = job.model.train()
    forward = torch.compile(model, backend=compiled) if compiled else model
    step = OPTIMIZERS[optimizer](model.parameters(), job.rate)
    scaler = torch.amp.GradScaler(device, enabled=autocast == torch.float16, init_scale=1024.0)
    found = []
    for _ in range(steps):
        step.zero_grad()
        with torch.autocast(device, dtype=autocast or torch.bfloat16, enabled=autocast is not None):
            loss = job.loss(forward, *job.inputs)
        scaler.scale(loss).backward()
        scaler.unscale_(step)
        norm = nn.utils.clip_grad_norm_(model.parameters(), clip or math.inf)
        scaler.step(step)
        scaler.update()
        found.append((loss.item(), norm.item()))
    return found


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.doors.torch.models", description=__doc__)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--device", default="mps")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="sgd")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--compile", metavar="BACKEND")
    args = parser.parse_args()
    print(*train(args.model, args.device, args.optimizer, args.steps, compiled=args.compile))


if __name__ == "__main__":
    main()
