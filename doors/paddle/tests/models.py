# SPDX-License-Identifier: Apache-2.0
"""Models that the tests and the benchmark train: the same weights on every device, and nothing random in a step."""

import numpy as np
import paddle
from paddle import nn


class Bert(nn.Layer):
    """A BERT with few layers: embeddings, encoder, a classifier on the first token."""

    def __init__(self, layers=4, width=128, heads=4, words=1000, length=64, classes=4, dropout=0.0):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=dropout, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.classifier = nn.Linear(width, classes)

    def forward(self, ids):
        positions = paddle.arange(ids.shape[1], dtype="int64").unsqueeze(0)
        x = self.norm(self.words(ids) + self.positions(positions))
        return self.classifier(paddle.tanh(self.encoder(x)[:, 0]))


def mobilenet_v2(classes=10):
    model = paddle.vision.models.mobilenet_v2(num_classes=classes)
    for layer in model.sublayers():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
    return model


def resnet18(classes=10):
    return paddle.vision.models.resnet18(num_classes=classes)


def resnet50(classes=10):
    return paddle.vision.models.resnet50(num_classes=classes)


def images(batch, size, classes=10, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(0, 1, (batch, 3, size, size)).astype("float32"), random.integers(0, classes, batch)


def sentences(batch, length, words=1000, classes=4, seed=0):
    random = np.random.default_rng(seed)
    return random.integers(0, words, (batch, length)), random.integers(0, classes, batch)


def make(factory, device, weights=None, **options):
    """The model on a device. `weights`, arrays by name, make it equal to one that was made before."""
    with paddle.device.device_guard(device):
        paddle.seed(0)
        model = factory(**options)
        if weights:
            model.set_state_dict({name: paddle.to_tensor(array, place=device) for name, array in weights.items()})
    return model


def weights_of(model):
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}
