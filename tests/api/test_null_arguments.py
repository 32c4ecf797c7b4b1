# SPDX-License-Identifier: Apache-2.0
"""Every function of the C interface that returns a status is called with NULL for its pointers, then with good handles
and NULL arrays that are said to have two elements, then with memory full of zeros: none may end the process.

The calls are made from the header, so a new function is in the test from its first day."""
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ANYMPS_BUILD_DIR", ROOT / "build"))
HANDLES = {"amps_device": "device", "amps_graph": "graph", "amps_executable": "executable", "amps_tensor": "tensor", "amps_value": "value",
           "amps_op": "op", "amps_stream": "stream", "amps_event": "event", "amps_profiler": "profiler",
           "amps_call": "call", "amps_fixed_call": "fixed", "amps_buffer": "buffer"}
NUMBERS = {"size_t": "2", "int64_t": "3", "int": "1"}
SET_UP = """
  const int64_t dims[] = {2, 2};
  const float numbers[] = {1, 2, 3, 4};
  const amps_view view = {NULL, dims, NULL, AMPS_F32, 2};
  amps_value* made = NULL;
  if (amps_device_get("cpu", &device) || amps_graph_create("graph", &graph) ||
      amps_graph_input(graph, "x", AMPS_F32, 2, dims, NULL, &value) || !(op = amps_op_find("relu")) ||
      amps_graph_op(graph, op, &value, 1, NULL, 0, NULL, &made, 1) || amps_graph_set_outputs(graph, &made, 1) ||
      amps_compile(device, graph, NULL, &executable) || amps_stream_create(device, &stream) ||
      amps_tensor_from_host(device, AMPS_F32, 2, dims, NULL, numbers, &tensor) || amps_profiler_create(&profiler) ||
      amps_stream_record(stream, &event) || amps_call_create(device, op, NULL, 0, NULL, 0, &call) ||
      amps_call_fix(call, &view, 1, &view, 1, &fixed) || !fixed || amps_buffer_create(device, 16, &buffer)) return 2;
"""
# Each call in a process of its own: what one does to the handles, or a crash, is nobody else's.
ATTEMPT = """
static void attempt(const char* name, int (*call)(void)) {
  int status;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(call());
  }
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) printf("%s: signal %d\\n", name, WTERMSIG(status));
}
"""


def functions():
    """(name, parameters) of each function that returns a status."""
    header = re.sub(r"/\*.*?\*/", "", (ROOT / "include" / "anymps" / "anymps.h").read_text(), flags=re.S)
    for name, text in re.findall(r"AMPS_API\s+amps_status\s+(\w+)\s*\(([^;]*)\)\s*;", header):
        text = re.sub(r"\(\*\w+\)\([^)]*\)", "*callback", text)
        yield name, [] if text.strip() == "void" else [part.strip() for part in text.split(",")]


def argument(parameter, way):
    base = re.sub(r"\b(const|struct)\b", "", parameter).split()[0].rstrip("*")
    stars = parameter.count("*")
    if way == "nothing" or "callback" in parameter:
        return "0"
    if stars == 0:
        return NUMBERS.get(base, "0")
    if stars == 1 and base in HANDLES:
        return HANDLES[base]
    if way == "arrays" or base == "amps_program":
        return "0"
    return '"x"' if base == "char" and stars == 1 else "(void*)zeros"


@pytest.mark.parametrize("way", ["nothing", "arrays", "zeros"])
def test_no_call_ends_the_process(way, tmp_path):
    calls = [(name, ", ".join(argument(p, way) for p in parameters)) for name, parameters in functions()]
    assert len(calls) > 70
    lines = ["#include <stdio.h>", "#include <sys/wait.h>", "#include <unistd.h>", '#include "anymps/anymps.h"', "static char zeros[65536];",
             *(f"static {'const ' * (name == 'amps_op')}{name}* {variable};" for name, variable in HANDLES.items()), ATTEMPT,
             *(f"static int call_{name}(void) {{ return {name}({arguments}); }}" for name, arguments in calls),
             "int main(void) {", SET_UP, *(f'  attempt("{name}", call_{name});' for name, _ in calls), "  return 0;", "}"]
    (tmp_path / "calls.c").write_text("\n".join(lines))
    subprocess.run(["gcc", "-w", f"-I{ROOT / 'include'}", tmp_path / "calls.c", "-o", tmp_path / "calls", f"-L{BUILD / 'lib'}", "-lanymps",
                    f"-Wl,-rpath,{BUILD / 'lib'}", "-Wl,--unresolved-symbols=ignore-in-shared-libs"], check=True)
    done = subprocess.run([tmp_path / "calls"], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0 and done.stdout == "", done.stdout + done.stderr
