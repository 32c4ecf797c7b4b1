# SPDX-License-Identifier: Apache-2.0
"""The backend is a guest in the server's process: it leaves alone what belongs to all of it. A library that is loaded before
everything else notes each call of the backend, the engine and oneDNN that would change such a thing."""
import re
import subprocess
from pathlib import Path

import pytest

from tests.doors.server import make_repository as made
from tests.doors.server.make_repository import Quoted, Repository, base, io, node, tensor
from tests.doors.server.servers import command, free_ports, spawn
from .calls import PROTOCOLS, client, floats, infer, why_not

SPY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void note(const char* what, const char* who) {
  static FILE* file;
  if (!file) file = fopen(getenv("SPY_FILE"), "ae");
  fprintf(file, "%s by %s\n", what, who);
  fflush(file);
}
// The name of the library that called, if it is one of ours.
static const char* ours(void* caller) {
  Dl_info info;
  if (!dladdr(caller, &info) || !info.dli_fname) return NULL;
  return strstr(info.dli_fname, "metal_mps") || strstr(info.dli_fname, "anymps") || strstr(info.dli_fname, "dnnl") ? info.dli_fname : NULL;
}
// Passes a call on with its arguments, which are words.
#define WATCH(name)                                                       \
  long spy_##name(long a, long b, long c, long d, long e) __asm__(#name); \
  long spy_##name(long a, long b, long c, long d, long e) {               \
    static long (*real)(long, long, long, long, long);                    \
    if (!real) real = dlsym(RTLD_NEXT, #name);                            \
    const char* who = ours(__builtin_return_address(0));                  \
    if (who) note(#name, who);                                            \
    return real ? real(a, b, c, d, e) : 0;                                \
  }
WATCHED(WATCH)

__attribute__((destructor)) static void report(void) {
  note("the end", "the server");
}
"""
WATCHED = ["setenv", "unsetenv", "putenv", "clearenv",  # others read it meanwhile
           "signal", "sigaction", "sigprocmask", "pthread_sigmask", "setitimer", "alarm",
           "setlocale", "uselocale", "chdir", "fchdir", "umask", "setrlimit", "prctl", "sched_setaffinity", "pthread_setaffinity_np", "setpriority", "mallopt",
           "fesetround", "feenableexcept", "exit", "_exit", "quick_exit", "abort", "fork",
           # OpenMP's threads are those of other backends.
           "omp_set_num_threads", "omp_set_dynamic", "omp_set_nested", "omp_set_max_active_levels", "omp_set_schedule", "GOMP_parallel", "GOMP_parallel_start"]


@pytest.fixture(scope="module")
def noted(tmp_path_factory):
    """Loads, runs, refuses and unloads models; gives what the spy saw, what came out of stdout and stderr, what was in memory,
    and the names of the threads."""
    folder = tmp_path_factory.mktemp("guest")
    source = "#define WATCHED(W) " + " ".join(f"W({name})" for name in WATCHED) + SPY
    (folder / "spy.c").write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", "-fno-builtin", "-w", "-o", folder / "spy.so", folder / "spy.c", "-ldl"], check=True)
    repository = Repository(folder / "models")
    one = {"parameters": [{"key": Quoted(k), "value": {"string_value": Quoted(v)}} for k, v in (("threads", "1"), ("profile", "true"))]}
    made.mlp(repository, "one_thread", **one)
    made.mlp(repository, "all_threads")
    made.strings(repository)
    # Enough for the engine's threads to be started.
    repository.model("large", [node("MatMul", ["x", "w"], ["y"])], [tensor("x", "FP32", ["N", 512])], [tensor("y", "FP32", ["N", 512])],
                     base(64, [io("x", "FP32", [512])], [io("y", "FP32", [512])]), {"w": floats(512, 512)})
    repository.model("interpreted", [node("NonZero", ["x"], ["i"])], [tensor("x", "FP32", ["N"])], [tensor("i", "INT64", [1, "K"])],
                     base(0, [io("x", "FP32", [-1])], [io("i", "INT64", [1, -1])], **one))
    repository.file("junk/1/model.onnx", b"this is no model")
    repository.config("junk", {})
    ports = free_ports(3)
    flags = [f"--model-repository={repository.folder}", "--model-control-mode=explicit", "--load-model=*", "--exit-on-error=false",
             *(f"--{n}-{what}" for n, port in zip(("http", "grpc", "metrics"), ports) for what in (f"port={port}", "address=127.0.0.1"))]
    environment = {"LD_PRELOAD": str(folder / "spy.so"), "SPY_FILE": str(folder / "noted"), "TRITON_MPS_VERBOSE": "1", "ANYMPS_VERBOSE": "dispatch,cache",
                   "ANYMPS_NUM_THREADS": "3"}
    stdout = folder / "stdout"
    words = ["sh", "-c", 'exec "$@" 2>"$0" ', folder / "stderr", *command("triton"), *flags]
    server = spawn("triton", words, ports, stdout, environment)
    try:
        for protocol in PROTOCOLS:
            for model in ("one_thread", "all_threads"):
                infer(server, model, protocol, x=floats(8, 16))
            infer(server, "interpreted", protocol, x=floats(9))
            infer(server, "large", protocol, x=floats(64, 512))
        assert "junk" in why_not(server, "junk")
        client(server).unload_model("one_thread")
        process = Path(f"/proc/{server.process.pid}")
        maps = (process / "maps").read_text()
        threads = [path.read_text().strip() for path in process.glob("task/*/comm")]
    finally:
        server.stop()
    return (folder / "noted").read_text().splitlines(), stdout.read_text(), (folder / "stderr").read_text(), maps, threads


def test_it_changes_nothing_of_its_host(noted):
    lines = noted[0]
    assert lines[-1:] == ["the end by the server"], "the spy was not there"
    assert lines[:-1] == []


def test_it_brings_no_openmp(noted):
    """Its threads are the engine's, as many as it may have, and oneDNN computes on them too."""
    *_, maps, threads = noted
    assert sorted(name for name in threads if name.startswith("anymps-")) == ["anymps-1", "anymps-2"]
    libraries = {Path(line.split()[-1]).name for line in maps.splitlines() if ".so" in line}
    assert {"libtriton_metal_mps.so", "libanymps_dnnl.so.3", "libanymps_gomp.so.1"} <= libraries
    assert not [name for name in libraries if re.match(r"lib(gomp|omp|iomp5)\b", name)]


def test_it_prints_nothing_by_itself(noted):
    """Its lines are in the server's log, with the server's heads; what the engine is asked to tell goes to stderr."""
    _, stdout, stderr, *_ = noted
    assert stdout.replace("Signal (15) received.\n", "") == ""  # the server itself
    assert "metal_mps: model 'one_thread'" in stderr
