# SPDX-License-Identifier: Apache-2.0
"""Run in a process of its own: imports what is named, in this order, computes with each, and compares. Prints the hash of
the engine's results: they are to be the same bits as without the others.

    beside.py NAME...       NAME: anymps, torch, paddle
"""
import hashlib
import json
import sys
import tempfile

modules = {name: __import__(name) for name in sys.argv[1:]}

import numpy as np  # noqa: E402  after the modules: the order of the libraries is theirs

random = np.random.default_rng(5)
IMAGE, WEIGHTS = random.standard_normal((2, 16, 40, 40), np.float32), random.standard_normal((32, 16, 3, 3), np.float32)
LEFT, RIGHT = random.standard_normal((96, 200), np.float32), random.standard_normal((200, 128), np.float32)
MATRIX = random.standard_normal((60, 45))
SQUARE = random.standard_normal((45, 45)) + 45 * np.eye(45)  # numpy's own product depends on the environment: OPENBLAS_CORETYPE


def with_anymps(anymps):
    graph, ops, feeds = anymps.Graph(), anymps.ops, (IMAGE, WEIGHTS, LEFT, RIGHT, MATRIX, SQUARE)
    image, weights, left, right, matrix, square = (graph.input(f"x{i}", "f64" if x.dtype == np.float64 else "f32", x.shape)
                                                   for i, x in enumerate(feeds))
    half = [ops.cast(x, dtype="bf16") for x in (left, right)]
    graph.outputs(ops.conv(image, weights, pads=[1, 1, 1, 1]), ops.matmul(left, right), ops.cast(ops.matmul(*half), dtype="f32"),
                  ops.svd(matrix)[1], ops.inverse(square))
    run = anymps.compile(graph)
    kernels = {step["kernel"] for step in json.loads(run.text("plan"))}
    assert kernels >= {"cpu:onednn", "cpu:lapack"}, kernels
    return dict(zip(("convolution", "product", "bf16 product", "singular values", "inverse"), map(np.asarray, run(*feeds))))


def with_torch(torch):
    image, weights, left, right, matrix, square = map(torch.from_numpy, (IMAGE, WEIGHTS, LEFT, RIGHT, MATRIX, SQUARE))
    return {
        "convolution": torch.nn.functional.conv2d(image, weights, padding=1).numpy(),
        "product": (left @ right).numpy(),
        "bf16 product": (left.bfloat16() @ right.bfloat16()).float().numpy(),
        "singular values": torch.linalg.svd(matrix)[1].numpy(),
        "inverse": torch.linalg.inv(square).numpy(),
    }


def paddle_convolution(paddle):
    """Through Paddle's predictor: nothing else calls its oneDNN."""
    layer = paddle.nn.Conv2D(16, 32, 3, padding=1, bias_attr=False)
    layer.weight.set_value(WEIGHTS)
    with tempfile.TemporaryDirectory() as folder:
        paddle.jit.save(layer, f"{folder}/model", input_spec=[paddle.static.InputSpec(IMAGE.shape, "float32")])
        config = paddle.inference.Config(f"{folder}/model.json", f"{folder}/model.pdiparams")
        config.enable_mkldnn()
        config.disable_glog_info()
        predictor = paddle.inference.create_predictor(config)
        predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu(IMAGE)
        predictor.run()
        return predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()


def with_paddle(paddle):
    left, right, matrix, square = map(paddle.to_tensor, (LEFT, RIGHT, MATRIX, SQUARE))
    return {
        "convolution": paddle_convolution(paddle),
        "product": (left @ right).numpy(),
        # There is no product of bf16 on the CPU.
        "bf16 product": (left.astype("bfloat16").astype("float32") @ right.astype("bfloat16").astype("float32")).numpy(),
        "singular values": paddle.linalg.svd(matrix)[1].numpy(),
        "inverse": paddle.linalg.inv(square).numpy(),
    }


COMPUTE = {"anymps": with_anymps, "torch": with_torch, "paddle": with_paddle}
# Twice: what one of them sets up at its first call must leave the other as it was.
results = {name: [COMPUTE[name](module)] for name, module in modules.items()}
for name, module in modules.items():
    results[name].append(COMPUTE[name](module))
first = results["anymps"][0]
for name, rounds in results.items():
    for result in rounds:
        for what, numbers in result.items():
            tolerance = 2 ** -7 if what == "bf16 product" else 1e-9 if numbers.dtype == np.float64 else 1e-4
            worst = np.abs(numbers - first[what]).max() / np.abs(first[what]).max()
            assert numbers.shape == first[what].shape and worst < tolerance, f"{what}: {name} differs by {worst}"
            assert name != "anymps" or np.array_equal(numbers, first[what]), f"{what}: not the same twice"
print(hashlib.sha256(b"".join(np.ascontiguousarray(numbers).tobytes() for numbers in first.values())).hexdigest())
