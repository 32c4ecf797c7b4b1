# SPDX-License-Identifier: Apache-2.0
"""torchvision's models on 'mps' beside the CPU: one step of training, then inference, small and in f64, where steps do not part.

    python -m tests.doors.torch.vision_models [REGEX]      # all, about ten minutes; without the fallback

prints a line for each model: how far losses, norms of gradients and results are apart at most, relative to their size.
"""
import re
import sys
import time

import torch
from torch.nn import functional as F
from torch.utils import _pytree as pytree

DTYPE = torch.float64


def without_chance(model):
    for module in model.modules():
        if type(module).__name__.startswith(("Dropout", "StochasticDepth")):
            module.p = 0.0
        for name in ("dropout", "attention_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return model


def made(factory, device):
    torch.manual_seed(0)
    return without_chance(factory()).to(DTYPE).to(device)


def outcome(model, loss, results):
    loss.backward()
    return [loss, *[p.grad.norm() for p in model.parameters() if p.grad is not None], *pytree.tree_leaves(results)]


def classified(factory, *shape):
    """Classes, of images, of videos or of each pixel."""
    def run(device):
        model, images = made(factory, device), torch.randn(*shape, dtype=DTYPE).to(device)
        results = [y for y in pytree.tree_leaves(model.train()(images)) if y is not None]
        labels = [torch.arange(y[:, 0].numel(), device=device).reshape(y[:, 0].shape) % y.shape[1] for y in results]
        found = outcome(model, sum(F.cross_entropy(y, t) for y, t in zip(results, labels)), results)
        with torch.no_grad():
            return found + pytree.tree_leaves(model.eval()(images))
    return run


def detected(factory, labels=(1, 2), masks=False, keypoints=False, size=64):
    """Boxes, with masks or keypoints. The samplers of these models permute: here into the same order everywhere."""
    def run(device):
        model = made(factory, device).train()
        images = [torch.rand(3, size, size, dtype=DTYPE).to(device), torch.rand(3, size - 10, size + 8, dtype=DTYPE).to(device)]
        targets = []
        for i, image in enumerate(images):
            boxes = torch.tensor([[8.0, 10, 40, 50], [3, 3, 20, 30]], dtype=DTYPE, device=device) + i
            targets.append({"boxes": boxes, "labels": torch.tensor(labels, device=device)})
            if masks:
                targets[-1]["masks"] = torch.zeros(2, *image.shape[1:], dtype=torch.uint8, device=device)
                targets[-1]["masks"][:, 10:30, 10:30] = 1
            if keypoints:
                places = torch.stack([torch.linspace(9, 35, 17), torch.linspace(12, 45, 17), torch.ones(17)], 1)
                targets[-1]["keypoints"] = places.to(device).expand(2, 17, 3).clone()
        permuted = torch.randperm
        torch.randperm = lambda n, **options: torch.arange(n, device=options.get("device"))
        try:
            losses = model(images, targets)
        finally:
            torch.randperm = permuted
        found = outcome(model, sum(losses.values()), losses)
        with torch.no_grad():
            return found + pytree.tree_leaves(model.eval()(images))
    return run


def flows(factory):
    """Optical flow: in f32, which its tables of places are in."""
    def run(device):
        torch.manual_seed(0)
        model, images = factory().to(device).train(), [torch.rand(1, 3, 128, 128).to(device) for _ in range(2)]
        results = model(*images, num_flow_updates=2)
        return outcome(model, sum(y.abs().mean() for y in results), results)
    return run


def models():
    from torchvision.models import detection, optical_flow, segmentation, video
    import torchvision.models as images
    bare = {"weights": None, "weights_backbone": None}
    small = bare | {"min_size": 64, "max_size": 96}
    found = {
        "deeplabv3_mobilenet_v3_large": classified(lambda: segmentation.deeplabv3_mobilenet_v3_large(**bare, num_classes=5), 2, 3, 48, 48),
        "lraspp_mobilenet_v3_large": classified(lambda: segmentation.lraspp_mobilenet_v3_large(**bare, num_classes=5), 2, 3, 48, 48),
        "fcn_resnet50": classified(lambda: segmentation.fcn_resnet50(**bare, num_classes=5), 2, 3, 48, 48),
        "deeplabv3_resnet50": classified(lambda: segmentation.deeplabv3_resnet50(**bare, num_classes=3, aux_loss=True), 2, 3, 33, 33),
        "r3d_18": classified(lambda: video.r3d_18(num_classes=4), 2, 3, 4, 24, 24), "mc3_18": classified(lambda: video.mc3_18(num_classes=4), 2, 3, 4, 24, 24),
        "r2plus1d_18": classified(lambda: video.r2plus1d_18(num_classes=4), 2, 3, 4, 24, 24), "s3d": classified(lambda: video.s3d(num_classes=4), 1, 3, 16, 224, 224),
        "mvit_v2_s": classified(lambda: video.mvit_v2_s(num_classes=4), 1, 3, 16, 224, 224), "swin3d_t": classified(lambda: video.swin3d_t(num_classes=4), 1, 3, 4, 36, 40),
        "raft_small": flows(optical_flow.raft_small), "raft_large": flows(optical_flow.raft_large),
        "fcos_resnet50_fpn": detected(lambda: detection.fcos_resnet50_fpn(**small, num_classes=4)),
        "retinanet_resnet50_fpn": detected(lambda: detection.retinanet_resnet50_fpn(**small, num_classes=4)),
        "retinanet_resnet50_fpn_v2": detected(lambda: detection.retinanet_resnet50_fpn_v2(**small, num_classes=4)),
        "fasterrcnn_mobilenet_v3_large_320_fpn": detected(lambda: detection.fasterrcnn_mobilenet_v3_large_320_fpn(**small, num_classes=4)),
        "fasterrcnn_resnet50_fpn_v2": detected(lambda: detection.fasterrcnn_resnet50_fpn_v2(**small, num_classes=4)),
        "maskrcnn_resnet50_fpn": detected(lambda: detection.maskrcnn_resnet50_fpn(**small, num_classes=4), masks=True),
        "keypointrcnn_resnet50_fpn": detected(lambda: detection.keypointrcnn_resnet50_fpn(**small, num_classes=2), labels=(1, 1), keypoints=True),
        "ssd300_vgg16": detected(lambda: detection.ssd300_vgg16(**bare, num_classes=4)),
    }
    for name, size in dict(alexnet=64, convnext_tiny=32, densenet121=32, efficientnet_b0=32, efficientnet_v2_s=32, googlenet=64, inception_v3=80, maxvit_t=224,
                           mnasnet0_5=32, mobilenet_v3_small=32, regnet_x_400mf=32, regnet_y_400mf=32, resnext50_32x4d=32, shufflenet_v2_x0_5=32,
                           squeezenet1_0=32, swin_t=32, swin_v2_t=32, vgg11_bn=32, wide_resnet50_2=32).items():
        plain = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        found[name] = classified(lambda name=name, plain=plain: getattr(images, name)(weights=None, num_classes=4, **plain), 2, 3, size, size)
    return found


def apart(name, run):
    """How far the devices are apart at most, relative to the largest number of each tensor; numbers far below those of the others are
    rounding alone, such as the gradient of a bias in front of a norm."""
    ours, theirs = ([t.detach().cpu().double() for t in run(device) if isinstance(t, torch.Tensor)] for device in ("mps", "cpu"))
    assert len(ours) == len(theirs) and len(ours) > 2, name
    sizes = [t[t.isfinite()].abs().max().item() if t.isfinite().any() else 0.0 for t in theirs]
    least, worst = 1e-4 * max(sizes), 0.0
    for a, b, size in zip(ours, theirs, sizes):
        assert a.shape == b.shape and torch.equal(a.isfinite(), b.isfinite()), (name, a.shape, b.shape)
        if a.numel():
            worst = max(worst, (a - b).nan_to_num().abs().max().item() / max(size, least))
    return worst


def main():
    wanted = re.compile(sys.argv[1] if len(sys.argv) > 1 else ".")
    for name, run in models().items():
        if wanted.search(name):
            start = time.time()
            print(f"{name:40} {apart(name, run):.1e}   {time.time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
