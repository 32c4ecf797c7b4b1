#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports the models of bench/executorch into .models/executorch_bench: each once to MPSBackend and once to XNNPACK, both f32.

Runs in the environment `executorch`. What is there already is kept; remove the folder to export again. The modules and
their weights are those of anymps_executorch.models, so both programs are of the same module.
"""
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "doors" / "executorch"))
OUT = ROOT / ".models" / "executorch_bench"
NAMES = {"mobilenet_v2": "mv2", "mobilenet_v3": "mv3", "resnet18": "resnet18", "resnet50": "resnet50",
         "mobilebert": "mobilebert", "vit": "vit"}
SEQUENCE = 128


def inputs_of(name, example):
    import torch

    if name != "mobilebert":
        return example.inputs
    return (torch.randint(0, 4096, (1, SEQUENCE), generator=torch.Generator().manual_seed(0)),)


def to_xnnpack(module, inputs):
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    with torch.no_grad():
        exported = torch.export.export(module, inputs)
        return bytes(to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()]).to_executorch().buffer)


def export(name):
    import numpy as np
    from anymps_executorch import lowering, models

    example = models.example(NAMES[name])
    inputs = inputs_of(name, example)
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    lowered = lowering.lower(lowering.Method(example.module, inputs), fp16=False)
    (folder / "mps.pte").write_bytes(lowered.buffer())
    (folder / "mps_bundled.pte").write_bytes(lowered.bundle())
    (folder / "xnnpack.pte").write_bytes(to_xnnpack(example.module, inputs))
    for i, value in enumerate(inputs):
        np.save(folder / f"input{i}.npy", value.contiguous().numpy())
    (folder / "about.json").write_text(json.dumps({"example": NAMES[name], "notes": example.notes}, indent=1) + "\n")


def main():
    for name in NAMES:
        if (OUT / name / "about.json").exists():
            print(f"{name}: there already")
            continue
        print(f"{name}: exporting", flush=True)
        export(name)


if __name__ == "__main__":
    main()
