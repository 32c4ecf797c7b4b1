# SPDX-License-Identifier: Apache-2.0
"""The library itself: what it exports, and how it finds its server."""
import ctypes
import subprocess
import sys

import pytest

from tests.doors.server.servers import backend_library

ENTRIES = {f"TRITONBACKEND_{name}" for name in ("Initialize", "Finalize", "GetBackendAttribute", "ModelInitialize", "ModelFinalize",
                                               "ModelInstanceInitialize", "ModelInstanceFinalize", "ModelInstanceExecute", "ModelInstanceReady")}
# A server of an older age, as a library.
OLD_SERVER = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
static char text[1000];
void* TRITONSERVER_ErrorNew(int code, const char* message) { strncpy(text, message, 999); return text; }
void TRITONSERVER_ErrorDelete(void* error) {}
void* TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor) { *major = 1; *minor = MINOR; return 0; }
"""


def test_exports_nothing_but_the_interface():
    lines = subprocess.run(["nm", "-D", "--defined-only", backend_library()], check=True, capture_output=True, text=True).stdout.splitlines()
    assert {line.split()[-1].split("@")[0] for line in lines} == ENTRIES


@pytest.mark.parametrize("minor, says", [(3, "the server's backend API is version 1.3, but metal_mps needs version 1.4"),
                                         (19, "the server lacks functions that metal_mps needs: TRITONSERVER_ErrorCode")])
def test_an_older_server_is_refused(tmp_path, minor, says):
    (tmp_path / "old.c").write_text(OLD_SERVER.replace("MINOR", str(minor)))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libold.so", tmp_path / "old.c"], check=True)
    # Loaded as Python loads libraries: not in the global scope.
    script = ("import ctypes, sys; old = ctypes.CDLL(sys.argv[1]); backend = ctypes.CDLL(sys.argv[2]).TRITONBACKEND_Initialize; "
              "backend.restype = ctypes.c_char_p; print(backend(None).decode())")
    answer = subprocess.run([sys.executable, "-c", script, tmp_path / "libold.so", backend_library()], capture_output=True, text=True, check=True)
    assert says in answer.stdout


def test_without_a_server():
    script = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).TRITONBACKEND_Initialize(None))"
    answer = subprocess.run([sys.executable, "-c", script, backend_library()], capture_output=True, text=True, check=True)
    assert "backend API is version 0.0" in answer.stderr and ctypes
