# SPDX-License-Identifier: Apache-2.0
"""torchvision's own ops on 'mps', which detection models call: results and gradients are those of its CPU kernels."""
import pytest
import torch

from tests.doors.torch import vision_models

ops = pytest.importorskip("torchvision").ops

BOXES = [[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 9, 9]]


def image(device):
    return torch.randn(2, 4, 8, 8, generator=torch.Generator().manual_seed(0)).to(device).requires_grad_()


def regions(device):
    return [torch.tensor(boxes, device=device) for boxes in ([[0.0, 0, 6, 6], [1, 2, 7, 7]], [[2.0, 1, 5, 7]])]


def deformed(device):
    torch.manual_seed(0)
    layer, x = ops.DeformConv2d(4, 3, 3), image(device)
    offset = torch.randn(2, 18, 6, 6).to(device).requires_grad_()
    layer = layer.to(device)
    return layer(x, offset), (x, offset, layer.weight, layer.bias)


def pooled(pool):
    def program(device):
        x = image(device)
        return pool(x, regions(device), 2), (x,)

    return program


PROGRAMS = {
    "deform_conv2d": deformed,
    "roi_align": pooled(ops.roi_align),
    "roi_align, strided": pooled(lambda x, boxes, size: ops.roi_align(x.transpose(2, 3), boxes, size)),
    "roi_pool": pooled(ops.roi_pool),
    "ps_roi_align": pooled(ops.ps_roi_align),
    "ps_roi_pool": pooled(ops.ps_roi_pool),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_layers(name):
    found = []
    for device in ("mps", "cpu"):
        y, given = PROGRAMS[name](device)
        found.append([y, *torch.autograd.grad((y * y).sum(), given)])
    for ours, theirs in zip(*found):
        assert ours.device.type == "mps"
        torch.testing.assert_close(ours.cpu(), theirs)


def test_nms():
    boxes, scores = torch.tensor(BOXES, device="mps"), torch.tensor([0.9, 0.8, 0.7, 0.95], device="mps")
    kept = ops.nms(boxes, scores, 0.5)
    assert kept.device.type == "mps" and kept.tolist() == [3, 2]
    assert ops.batched_nms(boxes, scores, torch.tensor([0, 1, 0, 1], device="mps"), 0.5).tolist() == [3, 0, 2]
    assert ops.nms(boxes[:0], scores[:0], 0.5).numel() == 0


def test_tensors_of_two_devices_are_refused():
    with pytest.raises(RuntimeError, match="same device"):
        ops.nms(torch.tensor(BOXES, device="mps"), torch.rand(4), 0.5)


@pytest.mark.parametrize("number", [-1.0, 2.0, float("nan")])
def test_regions_of_no_image_are_refused(number):
    """torchvision's kernels go by that number without a look at it."""
    with pytest.raises(RuntimeError, match="region is of an image"):
        ops.roi_align(image("mps"), torch.tensor([[number, 0, 0, 4, 4]], device="mps"), 2)


@pytest.mark.parametrize("name", ["lraspp_mobilenet_v3_large", "swin3d_t", "raft_small", "retinanet_resnet50_fpn"])
def test_models(name):
    """Segmentation, video, flow and detection: a step of training and inference. `python -m tests.doors.torch.vision_models` runs all."""
    assert vision_models.apart(name, vision_models.models()[name]) < (1e-3 if name.startswith("raft") else 1e-6)
