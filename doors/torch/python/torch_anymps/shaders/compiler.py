# SPDX-License-Identifier: Apache-2.0
"""The compiler that makes shaders, the flags it is given, and the folder where its results are kept."""

import functools
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

_HERE = Path(__file__).parent
INCLUDE = _HERE / "include"
RUNTIME = _HERE / "runtime"

# Newest first; g++ also understands everything that the headers need, and vectorises less.
_NAMES = ["clang++", *(f"clang++-{version}" for version in range(24, 13, -1)), "g++"]
_MISSING = (
    "torch.mps.compile_shader needs a C++ compiler on this machine: clang 14 or newer (Debian, Ubuntu: "
    "apt install clang; Fedora: dnf install clang), or g++ 12 or newer. ANYMPS_CLANG names one that is not on PATH."
)
_MOST_BYTES = 256 << 20
_MOST_FILES = 1024

_COMMON = ["-x", "c++", "-nostdinc", f"-I{INCLUDE}", "-D__METAL__=1", "-D__METAL_MACOS__=1", "-D__METAL_VERSION__=320"]
# Numbers are those that the shader's expressions say: no fast-math and no contraction, unless PYTORCH_MPS_FAST_MATH=1.
# Integers wrap and any pointer may point anywhere, as on a GPU.
_CODE = [
    *("-std=gnu++17", "-O3", "-fPIC", "-shared", "-w", "-pipe", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti"),
    *("-fno-math-errno", "-ffp-contract=off", "-fsigned-char", "-fno-strict-aliasing", "-fwrapv"),
    *("-fno-threadsafe-statics", "-fno-stack-protector", "-fno-asynchronous-unwind-tables"),
]
_LINK = ["-Wl,--as-needed", "-Wl,-z,now", "-Wl,-z,defs"]


class Compiler:
    """A C++ compiler: `name` as it was found, and what it says of itself."""

    def __init__(self, name):
        self.path = shutil.which(name)
        if self.path is None:
            raise RuntimeError(f"ANYMPS_CLANG names {name!r}, which is no program here. {_MISSING}")
        self.version = _output([self.path, "--version"])
        self.machine = "-march=native" if platform.machine() in ("x86_64", "AMD64") else "-mcpu=native"
        self.macros = _output([self.path, "-x", "c++", self.machine, "-dM", "-E", os.devnull])
        self.is_clang = "__clang__" in self.macros

    @functools.cached_property
    def flags(self):
        flags = [*_CODE, self.machine]
        if os.environ.get("PYTORCH_MPS_FAST_MATH") == "1":
            flags += ["-ffast-math", "-ffp-contract=fast"]
        if self.is_clang:
            flags += ["-fno-color-diagnostics"]
            if "__FLT16_MAX__" not in self.macros:  # half arithmetic that rounds each operation
                flags += ["-Xclang", "-fnative-half-type", "-Xclang", "-fallow-half-arguments-and-returns"]
            elif self.accepts("-ffloat16-excess-precision=none"):
                flags += ["-ffloat16-excess-precision=none"]
            if self.machine == "-march=native" and self.accepts("-fveclib=libmvec", "-shared", "-lmvec"):
                flags += ["-fveclib=libmvec"]
        else:
            flags += ["-fdiagnostics-color=never", "-fpermissive"]
        return flags

    @functools.cached_property
    def libraries(self):
        return ["-lmvec", "-lm"] if "-fveclib=libmvec" in self.flags else ["-lm"]

    def accepts(self, *flags):
        command = [self.path, "-x", "c++", *flags, "-fPIC", "-o", os.devnull, "-"]
        command[3:3] = [] if "-shared" in flags else ["-c"]
        return subprocess.run(command, input=b"", capture_output=True, check=False).returncode == 0

    @functools.cached_property
    def identity(self):
        """All that decides what it makes of a source."""
        parts = [self.version, self.macros, *self.flags, platform.machine()]
        for path in sorted(p for folder in (INCLUDE, RUNTIME) for p in folder.rglob("*") if p.is_file()):
            parts += [str(path.relative_to(_HERE)), path.read_text()]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def preprocess(self, source):
        """The source with its macros expanded; those of the library are left for later."""
        text = f'#line 1 "program_source"\n{source}\n'
        return self._run([*_COMMON, "-E", "-DANYMPS_PREPROCESSING", "-w", "-"], text)

    def library(self, text, output):
        self._run([*_COMMON, *self.flags, "-", "-o", str(output), *_LINK, *self.libraries], text)

    def runtime(self, output):
        flags = ["-std=c++17", "-O2", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-w"]
        self._run([*flags, str(RUNTIME / "runtime.cc"), "-o", str(output)], "")

    def _run(self, arguments, text):
        command = [self.path, *arguments]
        done = subprocess.run(command, input=text, text=True, capture_output=True, check=False, errors="replace")
        if done.returncode != 0:
            raise SyntaxError(done.stderr.strip() or f"{self.path} ended with {done.returncode}")
        return done.stdout


def _output(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    return done.stdout


@functools.cache
def compiler():
    named = os.environ.get("ANYMPS_CLANG")
    if named:
        return Compiler(named)
    for name in _NAMES:
        if shutil.which(name):
            return Compiler(name)
    raise RuntimeError(_MISSING)


@functools.cache
def cache_folder():
    """The user's own folder; where there is none that only the user can write to, one for this process."""
    base = os.environ.get("ANYMPS_SHADER_CACHE")
    if not base:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        base = os.path.join(home, "anymps", "shaders")
    try:
        os.makedirs(base, mode=0o700, exist_ok=True)
        found = os.stat(base)
        if found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            if os.access(base, os.W_OK | os.X_OK):
                return Path(base)
    except OSError:
        pass
    temporary = tempfile.TemporaryDirectory(prefix="anymps-shaders-")
    cache_folder.kept = temporary  # removed when the process ends
    return Path(temporary.name)


def cached(key, make):
    """The file that `make` writes for a key: made once, moved into place whole, and kept while there is room."""
    path = cache_folder() / f"{key}.so"
    try:
        os.utime(path)
        return path
    except OSError:
        pass
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    os.close(handle)
    try:
        make(temporary)
        os.chmod(temporary, 0o700)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    _make_room(path)
    return path


def _make_room(newest):
    entries = []
    for path in newest.parent.iterdir():
        try:
            found = path.stat()
        except OSError:
            continue
        entries.append((found.st_mtime, found.st_size, path))
    entries.sort(reverse=True)
    total = 0
    for count, (_, size, path) in enumerate(entries):
        total += size
        if (total > _MOST_BYTES or count >= _MOST_FILES) and path != newest:
            path.unlink(missing_ok=True)
