# SPDX-License-Identifier: Apache-2.0
"""Takes `scripts/bench threads` to a machine that has neither this repository nor the network.

    scripts/bench threads pack FILE.tar.xz [--python 3.12]     here: the command with what it links, the bench, OpenVINO's CPU part
    python3 bench/threads/run_threads.py run FOLDER [options]   there, in FOLDER, where the file was unpacked; options as those of
                                                                scripts/bench threads. Needs numpy, onnx and onnxruntime.

The pack is laid out as the repository is, so that the bench finds its files: the command with its libraries in build/, and
OpenVINO, of the version that .venvs/peers has but for that machine's Python, in openvino/.
"""
import argparse
import importlib.metadata
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from report import git_commit
from worker import BUILDS, ROOT

FILES = ["models/make_models.py", "bench/threads/pack.py", "bench/threads/run_threads.py",
         *(f"bench/models/{name}.py" for name in ("chart", "measure", "options", "peer_worker", "quiet", "report", "worker"))]
# The machine's own: the C library and what belongs to it.
SYSTEM = re.compile(r"(ld-linux|linux-vdso|lib(c|m|dl|rt|pthread)\.so)")
# Of OpenVINO: Python files, the CPU plug-in, the ONNX frontend and what these link; not the other plug-ins, frontends, tools and headers.
OPENVINO = re.compile(r"openvino/((?!include/|tools/|torch/|cmake/|frontend/(jax|paddle|pytorch|tensorflow)/|libs/).*\.(py|so)"
                      r"|libs/lib(openvino|openvino_intel_cpu_plugin|openvino_onnx_frontend|tbb\w*|hwloc)\.so[.\d]*)"
                      r"|openvino-[^/]*\.dist-info/METADATA")
WRAPPER = """#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH=$here/../lib exec "$here/anymps.bin" "$@"
"""
ORIGIN = ROOT / "build" / "origin.json"


def origin():
    """What the pack says of itself: the commit. Nothing in the repository."""
    return json.loads(ORIGIN.read_text()) if ORIGIN.exists() else {}


def libraries(command):
    """{name: path} of what the command links, without the system's."""
    listing = subprocess.run(["ldd", command], capture_output=True, text=True, check=True).stdout
    found = dict(re.findall(r"^\s*(\S+) => (/\S+)", listing, re.M))
    return {name: path for name, path in found.items() if not SYSTEM.match(name)}


def add_text(tar, name, text, mode=0o644):
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(text.encode()), mode
    tar.addfile(info, io.BytesIO(text.encode()))


def add_openvino(tar, python):
    version = importlib.metadata.version("openvino")
    with tempfile.TemporaryDirectory(prefix="anymps-pack-") as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--python-version", python,
                        "--platform", "manylinux_2_28_x86_64", "--dest", folder, f"openvino=={version}"], check=True)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            for name in filter(OPENVINO.fullmatch, wheel.namelist()):
                info = tarfile.TarInfo(f"openvino/{name}")
                info.size, info.mode = wheel.getinfo(name).file_size, 0o755
                tar.addfile(info, wheel.open(name))


def pack(out, python):
    command = BUILDS["anymps"] / "bin" / "anymps"
    with tarfile.open(out, "w:xz", dereference=True) as tar:
        for name in FILES:
            tar.add(ROOT / name, name)
        tar.add(command, "build/bin/anymps.bin")
        add_text(tar, "build/bin/anymps", WRAPPER, 0o755)
        for name, path in libraries(command).items():
            tar.add(path, f"build/lib/{name}")
        add_text(tar, "build/origin.json", json.dumps({"commit": git_commit(ROOT)}))
        add_openvino(tar, python)
    print(f"wrote {out}, {out.stat().st_size / 1e6:.1f} MB")


def run(folder, options):
    """Makes what scripts/bench would: the models, and .venvs/peers, here this Python with OpenVINO beside it."""
    folder = folder.resolve()
    python = folder / ".venvs" / "peers" / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text(f"#!/bin/sh\nPYTHONPATH={folder}/openvino exec {sys.executable} \"$@\"\n")
    python.chmod(0o755)
    subprocess.run([sys.executable, folder / "models" / "make_models.py", "--out", folder / ".models"], check=True)
    script = folder / "bench" / "threads" / "run_threads.py"
    command = [str(python), str(script), "--out", str(folder / "results"), *options]
    os.execve(command[0], command, {**os.environ, "ANYMPS_VENV_DIR": str(folder / ".venvs")})


def main(words):
    parser = argparse.ArgumentParser(prog="scripts/bench threads", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack", help="write one file with all that the bench needs")
    packing.add_argument("out", type=Path)
    packing.add_argument("--python", default="3.12", help="version of that machine's Python (default 3.12)")
    running = commands.add_parser("run", help="run the bench out of an unpacked file")
    running.add_argument("folder", type=Path)
    args, options = parser.parse_known_args(words)
    if args.command == "run":
        return run(args.folder, options)
    if options:
        parser.error(f"unknown options: {' '.join(options)}")
    return pack(args.out, args.python)
