# SPDX-License-Identifier: Apache-2.0
"""Detections: boxes out of a YOLO head, and what is left of them, as on the CPU."""

import numpy as np
import paddle
import pytest
import support
from paddle import _C_ops
from paddle.vision import ops


def detections():
    random = np.random.default_rng(0)
    corners = random.uniform(0, 50, (2, 30, 2))
    boxes = np.concatenate([corners, corners + random.uniform(5, 40, (2, 30, 2))], -1)
    return boxes.astype("float32"), random.uniform(0, 1, (2, 4, 30)).astype("float32")


def same_on_both(function, *arrays):
    results = {}
    for place in ("mps", "cpu"):
        paddle.set_device(place)
        results[place] = function(*(paddle.to_tensor(array, place=place) for array in arrays))
    for actual, expected in zip(results["mps"], results["cpu"], strict=True):
        support.compare(actual, expected, tolerance=(1e-5, 1e-5))
    return [result.shape for result in results["mps"]]


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"normalized": False},
        {"nms_eta": 0.9},
        {"background_label": -1},
        {"keep_top_k": 5},
        {"keep_top_k": -1},
        {"nms_top_k": 7},
        {"score_threshold": 0.99},
        {"score_threshold": 2.0},
    ],
    ids=str,
)
def test_multiclass_nms(changed):
    options = {
        "score_threshold": 0.3,
        "nms_top_k": 20,
        "keep_top_k": 12,
        "nms_threshold": 0.4,
        "normalized": True,
        "nms_eta": 1.0,
        "background_label": 0,
        **changed,
    }
    same_on_both(lambda boxes, scores: _C_ops.multiclass_nms3(boxes, scores, None, *options.values()), *detections())


@pytest.mark.parametrize("changed", [{}, {"use_gaussian": True}, {"normalized": False}, {"keep_top_k": 5}], ids=str)
def test_matrix_nms(changed):
    options = {"score_threshold": 0.3, "post_threshold": 0.1, "nms_top_k": 20, "keep_top_k": 12, "return_index": True, **changed}
    same_on_both(lambda boxes, scores: ops.matrix_nms(boxes, scores, **options), *detections())


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"clip_bbox": False},
        {"scale_x_y": 1.05},
        {"conf_thresh": 0.6},
        {"iou_aware": True, "iou_aware_factor": 0.4},
    ],
    ids=str,
)
def test_yolo_box(changed):
    anchors, classes = [10, 13, 16, 30, 33, 23], 4
    options = {"anchors": anchors, "class_num": classes, "conf_thresh": 0.1, "downsample_ratio": 8, **changed}
    channels = 3 * (5 + classes + ("iou_aware" in changed))
    head = np.random.default_rng(0).standard_normal((2, channels, 6, 5)).astype("float32")
    sizes = np.array([[48, 40], [100, 90]], dtype="int32")
    shapes = same_on_both(lambda x, size: ops.yolo_box(x, size, **options), head, sizes)
    assert shapes == [[2, 90, 4], [2, 90, classes]]
