# SPDX-License-Identifier: Apache-2.0
"""The kinds of models that the device is for: loss and every gradient of a step as on the CPU, and the same model as a
program, which computes on the device from its inputs to its outputs."""

import models
import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
from paddle import nn
from paddle.vision import ops


def mobilenet_v3():
    model = paddle.vision.models.mobilenet_v3_small(num_classes=10)
    for layer in model.sublayers():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
    return model


class Detector(nn.Layer):
    """YOLO in small: two scales, the coarse one pooled as SPP does, and brought up to meet the fine one."""

    ANCHORS, CLASSES = [[10, 13, 16, 30], [62, 45, 59, 119]], 3

    def __init__(self):
        super().__init__()

        def block(inputs, outputs, stride=1, size=3):
            convolution = nn.Conv2D(inputs, outputs, size, stride, size // 2, bias_attr=False)
            return nn.Sequential(convolution, nn.BatchNorm2D(outputs), nn.Silu())

        channels = 2 * (5 + self.CLASSES)
        self.fine = nn.Sequential(block(3, 8, 2), block(8, 16, 2), block(16, 16))
        self.coarse = nn.Sequential(block(16, 32, 2), nn.Conv2D(32, 32, 1), nn.LeakyReLU(0.1))
        self.up = block(64, 16, size=1)
        self.heads = nn.LayerList([nn.Conv2D(32, channels, 1), nn.Conv2D(64, channels, 1)])

    def forward(self, x):
        fine = self.fine(x)
        coarse = self.coarse(fine)
        coarse = paddle.concat([coarse, F.max_pool2d(coarse, 5, 1, 2)], axis=1)
        fine = paddle.concat([fine, F.interpolate(self.up(coarse), scale_factor=2, mode="nearest")], axis=1)
        return self.heads[0](fine), self.heads[1](coarse)

    def loss(self, x, targets):
        losses = [F.binary_cross_entropy_with_logits(y, targets[:, :, : y.shape[2], : y.shape[3]]) for y in self(x)]
        return losses[0] + 0.5 * losses[1]

    def detect(self, x):
        """Boxes of both scales, and what is left of them."""
        sizes = paddle.full([x.shape[0], 2], x.shape[2], "int32")
        found = [
            ops.yolo_box(y, sizes, anchors, self.CLASSES, 0.01, x.shape[2] // y.shape[2])
            for y, anchors in zip(self(x), self.ANCHORS, strict=True)
        ]
        boxes = paddle.concat([boxes for boxes, _ in found], axis=1)
        scores = paddle.concat([scores for _, scores in found], axis=1).transpose([0, 2, 1])
        return paddle._C_ops.multiclass_nms3(boxes, scores, None, 0.05, 50, 20, 0.5, True, 1.0, -1)


class Tagger(nn.Layer):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 12)
        self.lstm = nn.LSTM(12, 10, num_layers=2, direction="bidirect")
        self.tags = nn.Linear(20, 5)

    def forward(self, ids):
        return self.tags(self.lstm(self.words(ids))[0])

    def loss(self, ids, tags):
        return F.cross_entropy(self(ids).reshape([-1, 5]), tags.reshape([-1]))


class Gpt(nn.Layer):
    """Two blocks that look backwards only, with one projection to queries, keys and values, and tied embeddings."""

    WIDTH, HEADS = 32, 4

    def __init__(self):
        super().__init__()
        width = self.WIDTH
        self.words, self.positions = nn.Embedding(60, width), nn.Embedding(16, width)
        self.blocks = nn.LayerList(
            nn.LayerDict(
                {
                    "norm1": nn.LayerNorm(width),
                    "qkv": nn.Linear(width, 3 * width),
                    "out": nn.Linear(width, width),
                    "norm2": nn.LayerNorm(width),
                    "up": nn.Linear(width, 4 * width),
                    "down": nn.Linear(4 * width, width),
                }
            )
            for _ in range(2)
        )
        self.norm = nn.LayerNorm(width)

    def attend(self, block, x):
        batch, length, width = x.shape
        qkv = block["qkv"](x).reshape([batch, length, 3, self.HEADS, width // self.HEADS]).transpose([2, 0, 3, 1, 4])
        query, key, value = qkv.unbind(0)
        scores = paddle.matmul(query, key, transpose_y=True) / (width // self.HEADS) ** 0.5
        ahead = paddle.triu(paddle.full([length, length], -1e9), 1)
        return block["out"](F.softmax(scores + ahead).matmul(value).transpose([0, 2, 1, 3]).reshape([batch, length, width]))

    def forward(self, ids):
        x = self.words(ids) + self.positions(paddle.arange(ids.shape[1]))
        for block in self.blocks:
            x = x + self.attend(block, block["norm1"](x))
            x = x + block["down"](F.gelu(block["up"](block["norm2"](x)), approximate=True))
        return paddle.matmul(self.norm(x), self.words.weight, transpose_y=True)

    def loss(self, ids, following):
        return F.cross_entropy(self(ids).reshape([-1, 60]), following.reshape([-1]))


class Ernie(nn.Layer):
    """Words, positions and kinds of sentences, a mask of what is padded, a pooled first token and masked words to guess."""

    def __init__(self):
        super().__init__()
        self.words, self.positions, self.kinds = nn.Embedding(60, 32, padding_idx=0), nn.Embedding(16, 32), nn.Embedding(2, 32)
        self.norm = nn.LayerNorm(32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, activation="gelu", normalize_before=False)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.pooler, self.order, self.guess = nn.Linear(32, 32), nn.Linear(32, 2), nn.Linear(32, 60)

    def forward(self, ids):
        positions = paddle.cumsum(paddle.ones_like(ids), axis=1) - 1
        kinds = (positions >= 6).astype("int64")
        mask = (ids == 0).astype("float32").unsqueeze([1, 2]) * -1e4
        x = self.encoder(self.norm(self.words(ids) + self.positions(positions) + self.kinds(kinds)), mask)
        return self.order(paddle.tanh(self.pooler(x[:, 0]))), self.guess(x)

    def loss(self, ids, words):
        order, guessed = self(ids)
        masked = F.cross_entropy(guessed.reshape([-1, 60]), words.reshape([-1]), ignore_index=-100)
        return masked + F.cross_entropy(order, ids[:, 1] % 2)


def integers(low, high, *shape, seed=0):
    return np.random.default_rng(seed).integers(low, high, shape)


def detection():
    random = np.random.default_rng(0)
    return random.standard_normal((2, 3, 32, 32)).astype("float32"), random.uniform(0, 1, (2, 16, 8, 8)).astype("float32")


def masked_words():
    words = integers(1, 60, 3, 12)
    ids = words.copy()
    ids[:, 9:] = 0
    words[:, ::2] = -100
    return ids, words


CASES = {
    "mobilenet_v3": (mobilenet_v3, lambda: models.images(4, 64)),
    "detector": (Detector, detection),
    "lstm": (Tagger, lambda: (integers(0, 50, 3, 7), integers(0, 5, 3, 7))),
    "gpt": (Gpt, lambda: (integers(0, 60, 2, 12), integers(0, 60, 2, 12, seed=1))),
    "ernie": (Ernie, masked_words),
}


def on(device, name, weights=None):
    """The model and its data on a device."""
    factory, data = CASES[name]
    return models.make(factory, device, weights), [paddle.to_tensor(array, place=device) for array in data()]


def close(actual, expected, what):
    """As close as sums in another order may come: relative to the largest number of the tensor."""
    largest = np.abs(expected).max() if expected.size else 0
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3 * largest + 1e-6, err_msg=what)


@pytest.mark.parametrize("name", CASES)
def test_a_step(name):
    from paddle_anymps import native

    def step(device, weights=None):
        with paddle.device.device_guard(device):
            model, (x, target) = on(device, name, weights)
            model.train()
            start = models.weights_of(model)
            before = native.copies()["device_to_host"][0]
            loss = model.loss(x, target) if hasattr(model, "loss") else F.cross_entropy(model(x), target)
            loss.backward()
            assert native.copies()["device_to_host"][0] == before
            trained = {key: value for key, value in model.named_parameters() if not value.stop_gradient}  # no averages
            return start, {"loss": loss.numpy(), **{key: value.grad.numpy() for key, value in trained.items()}}

    weights, expected = step("cpu")
    _, actual = step("mps", weights)
    for key, value in expected.items():
        close(actual[key], value, key)


@pytest.mark.parametrize("name", CASES)
def test_as_a_program(name):
    from paddle_anymps import native

    results, weights = [], None
    for device in ("cpu", "mps"):
        with paddle.no_grad(), paddle.device.device_guard(device):
            model, (x, _) = on(device, name, weights)
            weights = weights or models.weights_of(model)
            model.eval()
            program = paddle.jit.to_static(model, full_graph=True)
            program(x)
            before = native.copies()["device_to_host"][0]
            result = program(x)
            assert native.copies()["device_to_host"][0] == before, "a kernel is missing, and the CPU's is used"
            results.append([t.numpy() for t in (result if isinstance(result, (tuple, list)) else [result])])
    for actual, expected in zip(results[1], results[0], strict=True):
        close(actual, expected, name)


def test_detections():
    found, weights = [], None
    for device in ("cpu", "mps"):
        with paddle.no_grad(), paddle.device.device_guard(device):
            model, (x, _) = on(device, "detector", weights)
            weights = weights or models.weights_of(model)
            model.eval()
            found.append([t.numpy() for t in model.detect(x)])
    assert found[0][0].shape[0] > 4, "the example finds nothing"
    for actual, expected in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3)
