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


HEAD = {"anchors": [10, 13, 16, 30, 33, 23, 30, 61, 62, 45], "anchor_mask": [1, 0, 3], "class_num": 4, "downsample_ratio": 16}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "changed",
    [{}, {"scored": True}, {"use_label_smooth": False}, {"scale_x_y": 1.1}, {"ignore_thresh": 0.05}, {"ignore_thresh": 0.9}],
    ids=str,
)
def test_yolo_loss(changed, dtype):
    random = np.random.default_rng(3)
    head = random.standard_normal((2, 3 * 9, 6, 6)).astype(dtype)
    boxes = np.concatenate([random.uniform(0.05, 0.95, (2, 7, 2)), random.uniform(0.05, 0.8, (2, 7, 2))], -1).astype(dtype)
    boxes[0, 2, 2:] = boxes[1, 5, 3] = 0  # padding
    boxes[1, 0] = boxes[1, 1]  # two in one place: the last one counts
    labels = random.integers(0, 4, (2, 7)).astype("int32")
    scores = random.uniform(0.2, 1, (2, 7)).astype(dtype)
    options = {"ignore_thresh": 0.4, **HEAD, **changed}
    scored = options.pop("scored", False)

    def loss(x, boxes, labels, scores):
        x.stop_gradient = False
        loss = ops.yolo_loss(x, boxes, labels, gt_score=scores if scored else None, **options)
        (loss * paddle.to_tensor([1.0, 2.0], dtype=dtype)).sum().backward()
        return loss.detach(), x.grad

    results = same_on_both(loss, head, boxes, labels, scores)
    assert results == [[2], [2, 27, 6, 6]]


def test_yolo_loss_of_a_box_at_the_edge():
    """Its place would be outside of the head, where Paddle's CPU reads what lies there."""
    paddle.set_device("mps")
    x = paddle.zeros([1, 27, 6, 6])
    x.stop_gradient = False
    loss = ops.yolo_loss(x, paddle.to_tensor([[[1.0, 1.0, 0.4, 0.9]]]), paddle.to_tensor([[1]], dtype="int32"), ignore_thresh=0.5, **HEAD)
    loss.backward()
    assert np.isfinite(loss.numpy()).all() and np.isfinite(x.grad.numpy()).all()


@pytest.mark.parametrize(
    "changed",
    [{}, {"pixel_offset": True}, {"post_nms_top_n": 5}, {"pre_nms_top_n": 20}, {"nms_thresh": 0.0, "pre_nms_top_n": 0}, {"min_size": 30.0}, {"min_size": 1e4}],
    ids=str,
)
def test_generate_proposals(changed):
    random = np.random.default_rng(5)
    corners = random.uniform(0, 60, (6, 5, 3, 2))
    anchors = np.concatenate([corners, corners + random.uniform(5, 40, (6, 5, 3, 2))], -1).astype("float32")
    inputs = [
        random.uniform(0, 1, (2, 3, 6, 5)).astype("float32"),
        random.standard_normal((2, 12, 6, 5)).astype("float32"),
        np.array([[80, 90], [100, 70]], dtype="float32"),
        anchors,
        random.uniform(0.1, 0.3, anchors.shape).astype("float32"),
    ]
    options = {"pre_nms_top_n": 60, "post_nms_top_n": 25, "nms_thresh": 0.5, "min_size": 3.0, "return_rois_num": True, **changed}
    same_on_both(lambda *arrays: ops.generate_proposals(*arrays, **options), *inputs)


@pytest.mark.parametrize("images", [[12], [4, 0, 8]], ids=["one image", "three images"])
@pytest.mark.parametrize("offset", [False, True])
def test_distribute_fpn_proposals(images, offset):
    random = np.random.default_rng(6)
    corners = random.uniform(0, 300, (12, 2))
    boxes = np.concatenate([corners, corners + random.uniform(1, 900, (12, 2))], -1).astype("float32")
    boxes[3, 2:] = boxes[3, :2] - 5

    def levels(boxes, counts):
        rois, places, numbers = ops.distribute_fpn_proposals(boxes, 2, 5, 4, 224, offset, counts)
        return [*rois, places, *numbers]

    same_on_both(levels, boxes, np.array(images, dtype="int32"))
