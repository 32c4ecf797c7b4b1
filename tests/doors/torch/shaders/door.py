# SPDX-License-Identifier: Apache-2.0
"""The shaders' part of the door, without the rest of it: kernels take CPU tensors as they take mps tensors."""

import importlib.util
import os
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[4] / "doors" / "torch" / "python" / "torch_anymps" / "shaders"

if "ANYMPS_SHADER_CACHE" not in os.environ:
    _cache = tempfile.TemporaryDirectory(prefix="anymps-test-shaders-")
    os.environ["ANYMPS_SHADER_CACHE"] = _cache.name

_spec = importlib.util.spec_from_file_location(
    "anymps_shaders", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
)
shaders = sys.modules[_spec.name] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(shaders)

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


def library(source, **options):
    return shaders.compile_shader(HEAD + source, **options)
