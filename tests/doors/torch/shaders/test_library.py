# SPDX-License-Identifier: Apache-2.0
"""torch.mps.compile_shader: what a library and its kernels offer, how arguments are passed, and what is refused."""

import os
import subprocess
import sys
import threading

import pytest
import torch

from tests.doors.torch.shaders.door import FOLDER, HEAD, library, shaders


@pytest.fixture(scope="module")
def basic():
    return library("""
kernel void full(device float* out, constant float& value, uint at [[thread_position_in_grid]]) { out[at] = value; }
kernel void add_one(device float* data, uint at [[thread_position_in_grid]]) { data[at] += 1.0; }
kernel void long_of(device long* out, constant long& value) { out[0] = value; }
kernel void int_of(device int* out, constant int& value) { out[0] = value; }
kernel void short_of(device int* out, constant short& value) { out[0] = value; }
kernel void char_of(device int* out, constant char& value) { out[0] = value; }
kernel void uchar_of(device int* out, constant uchar& value) { out[0] = value; }
kernel void half_of(device float* out, constant half& value) { out[0] = value; }
kernel void bfloat_of(device float* out, constant bfloat& value) { out[0] = value; }
kernel void triple(device float* out, constant float3& value) { out[0] = value.x; out[1] = value.y; out[2] = value.z; }
kernel void longs(device long* out, constant long* values, uint at [[thread_position_in_grid]]) { out[at] = values[at]; }
kernel void sum_of_list(device float* out, constant array<device float*, 3>& in, uint at [[thread_position_in_grid]]) {
  out[at] = in[0][at] + in[1][at] + in[2][at];
}
kernel void places(device uint* out, uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
  out[at.y * size.x + at.x] = at.x + 100 * at.y;
}
kernel void groups(device ushort4* out, ushort3 at [[thread_position_in_grid]], ushort3 size [[threads_per_grid]],
                   ushort3 local [[thread_position_in_threadgroup]], ushort3 group [[threadgroup_position_in_grid]],
                   uint index [[thread_index_in_threadgroup]], ushort3 threads [[threads_per_threadgroup]]) {
  out[(at.z * size.y + at.y) * size.x + at.x] =
      ushort4(local.x + 10 * local.y + 100 * local.z, group.x + 10 * group.y + 100 * group.z, index,
              threads.x + 10 * threads.y + 100 * threads.z);
}
kernel void lanes(device uint4* out, uint at [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                  uint simdgroup [[simdgroup_index_in_threadgroup]], uint count [[simdgroups_per_threadgroup]],
                  uint width [[threads_per_simdgroup]]) {
  out[at] = uint4(lane, simdgroup, count, width);
}
kernel void buffers(device float* out [[buffer(2)]], device const float* a [[buffer(0)]], constant float& b,
                    uint at [[thread_position_in_grid]]) {
  out[at] = a[at] * b;
}
[[max_total_threads_per_threadgroup(64)]] kernel void small(device float* out, uint at [[thread_position_in_grid]]) {
  out[at] = at;
}
""")


def test_documented_example():
    lib = shaders.compile_shader(
        "kernel void full(device float* out, constant float& val, uint idx [[thread_position_in_grid]]) "
        "{ out[idx] = val; }"
    )
    x = torch.zeros(16)
    lib.full(x, 3.14)
    assert (x == torch.tensor(3.14)).all()


def test_names(basic):
    assert "full" in dir(basic) and "add_one" in basic.function_names
    assert len(dir(basic)) == 17
    with pytest.raises(RuntimeError, match="Failed to create function state object for: nothing"):
        basic.nothing  # noqa: B018


def test_properties(basic):
    assert basic.full.max_threads_per_threadgroup == 1024
    assert basic.full.thread_execution_width == 32
    assert basic.full.static_thread_group_memory_length == 0
    assert basic.small.max_threads_per_threadgroup == 64


@pytest.mark.parametrize(
    "kernel, dtype, value, cast, expected",
    [
        ("long_of", torch.int64, -(1 << 40), None, -(1 << 40)),
        ("long_of", torch.int64, True, None, 1),
        ("int_of", torch.int32, -7, "int32", -7),
        ("int_of", torch.int32, -7, {1: "int32"}, -7),
        ("short_of", torch.int32, -300, "int16", -300),
        ("char_of", torch.int32, -3, "int8", -3),
        ("uchar_of", torch.int32, 200, "uint8", 200),
        ("half_of", torch.float32, 0.1, "fp16", torch.tensor(0.1).half().item()),
        ("bfloat_of", torch.float32, 0.1, "bf16", torch.tensor(0.1).bfloat16().item()),
        ("int_of", torch.int32, 2.9, "int32", 2),
    ],
)
def test_casts(basic, kernel, dtype, value, cast, expected):
    out = torch.zeros(1, dtype=dtype)
    getattr(basic, kernel)(out, value, threads=1, arg_casts=cast)
    assert out.item() == expected


def test_lists(basic):
    out = torch.zeros(3)
    basic.triple(out, (1.5, 2.5, 3.5), threads=1)
    assert out.tolist() == [1.5, 2.5, 3.5]
    numbers = torch.zeros(4, dtype=torch.int64)
    basic.longs(numbers, [5, -6, 7, 1 << 33])
    assert numbers.tolist() == [5, -6, 7, 1 << 33]
    parts = [torch.randn(5) for _ in range(3)]
    out = torch.zeros(5)
    basic.sum_of_list(out, parts)
    torch.testing.assert_close(out, parts[0] + parts[1] + parts[2])


def test_offsets_and_views(basic):
    x = torch.zeros(10)
    basic.add_one(x[4:], threads=3)
    assert x.tolist() == [0] * 4 + [1] * 3 + [0] * 3


def test_two_dimensions(basic):
    out = torch.zeros(5, 7, dtype=torch.int32)
    basic.places(out, threads=(7, 5), group_size=(4, 2))
    assert (out == torch.arange(7) + 100 * torch.arange(5)[:, None]).all()


def test_three_dimensions_with_partial_groups(basic):
    size, group = (5, 4, 3), (2, 3, 2)
    out = torch.zeros(3, 4, 5, 4, dtype=torch.int16)
    basic.groups(out, threads=size, group_size=group)
    for z in range(3):
        for y in range(4):
            for x in range(5):
                at = (x, y, z)
                local = [a % g for a, g in zip(at, group)]
                number = [a // g for a, g in zip(at, group)]
                threads = [min(g, s - n * g) for s, g, n in zip(size, group, number)]
                index = (local[2] * threads[1] + local[1]) * threads[0] + local[0]
                expected = [a[0] + 10 * a[1] + 100 * a[2] for a in (local, number)]
                expected += [index, threads[0] + 10 * threads[1] + 100 * threads[2]]
                assert out[z, y, x].tolist() == expected, at


def test_simdgroup_places(basic):
    out = torch.zeros(100, 4, dtype=torch.int32)
    basic.lanes(out, threads=100, group_size=70)
    at = torch.arange(100)
    local = at % 70
    assert (out[:, 0] == local % 32).all() and (out[:, 1] == local // 32).all()
    assert (out[:, 2] == torch.where(at < 70, 3, 1)).all() and (out[:, 3] == 32).all()


def test_buffer_numbers(basic):
    a, out = torch.randn(6), torch.zeros(6)
    basic.buffers(a, 2.5, out)
    torch.testing.assert_close(out, a * 2.5)


def test_default_threads_are_those_of_the_first_tensor(basic):
    x = torch.zeros(3, 4)
    basic.full(x, 2.0)
    assert (x == 2).all()
    basic.full(torch.zeros(0), 2.0)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda lib, x: lib.full(x, "one"), RuntimeError, "Unsupported argument type"),
        (lambda lib, x: lib.full(x, None), RuntimeError, "Unsupported argument type"),
        (lambda lib, x: lib.full(x, []), RuntimeError, "Empty list/tuple"),
        (lambda lib, x: lib.full(x, ["one"]), RuntimeError, "Unexpected argument types"),
        (lambda lib, x: lib.full(x, 1.0, arg_casts="fp8"), RuntimeError, "Unsupported cast instruction fp8"),
        (lambda lib, x: lib.full(x, 1.0, arg_casts=3), RuntimeError, "Unexpected caster arg type int"),
        (lambda lib, x: lib.full(x, 1.0, threads=(1, 1), group_size=1), RuntimeError, "same number of dimensions"),
        (lambda lib, x: lib.full(x, 1.0, threads=(1, 1, 1, 1)), RuntimeError, "wrong dimension"),
        (lambda lib, x: lib.full(1.0, 1.0), RuntimeError, "Number of threads is undefined"),
        (lambda lib, x: lib.full(x, 1.0, threads=9, group_size=1025), ValueError, "Threadgroup size exceeds 1024"),
        (lambda lib, x: lib.full(x, 1.0, threads=(9, 9), group_size=(64, 32)), ValueError, "exceeds 1024 limit"),
        (lambda lib, x: lib.full(x), RuntimeError, "takes 2 arguments, and 1 were given"),
    ],
)
def test_refusals(basic, call, error, message):
    with pytest.raises(error, match=message):
        call(basic, torch.zeros(4))


def test_other_devices_are_refused():
    lib = library("kernel void f(device float* x) { x[0] = 1; }", device_type="mps")
    with pytest.raises(RuntimeError, match="Passed CPU tensor to MPS op"):
        lib.f(torch.zeros(3))
    with pytest.raises(RuntimeError, match="Passed META tensor"):
        lib.f(torch.zeros(3, device="meta"))


def test_queued_work_is_awaited():
    seen = []
    lib = library("kernel void f(device float* x, device float* y) { x[0] = 1; }", before_launch=seen.append)
    x, y = torch.zeros(3), torch.zeros(2)
    lib.f(x, [y], threads=1)
    assert [t.data_ptr() for t in seen[0]] == [x.data_ptr(), y.data_ptr()]


@pytest.mark.parametrize(
    "source, line, message",
    [
        ("kernel void f(device float* x) {\n  x[0] = y;\n}", 4, "undeclared identifier 'y'"),
        ("kernel void f(device float* x) {\n\n  x[0] = 1\n}", 5, "expected ';'"),
        ("#define BAD(T) T v = nothing;\n\nkernel void f(device float* x) {\n  BAD(float)\n}", 6, "'nothing'"),
        ("kernel void f(device double* x) { x[0] = 1; }", 3, "double_is_not_supported_in_metal"),
        ("kernel void f(constant float* x) { x[0] = 1; }", 3, "read-only|const"),
        ("kernel void f(texture2d<float> t [[texture(0)]]) { }", 3, r"\[\[texture\]\] parameters are not supported"),
        ("kernel void f(device float* x) {\n  threadgroup float s = 1;\n}", 4, "cannot be initialized"),
    ],
)
def test_errors_name_the_users_line(source, line, message):
    with pytest.raises(SyntaxError, match=message) as caught:
        library(source)
    assert f"program_source:{line}:" in str(caught.value)


def test_system_headers_are_not_there():
    with pytest.raises(SyntaxError, match="'?math.h'? file not found|math.h: No such file"):
        shaders.compile_shader("#include <math.h>\n")


def test_threadgroup_arguments_have_no_size():
    lib = library("kernel void f(device float* x, threadgroup float* s [[threadgroup(0)]]) { x[0] = s[0]; }")
    with pytest.raises(RuntimeError, match="whose length nothing sets"):
        lib.f(torch.zeros(3))


def test_threads_of_python(basic):
    tensors = [torch.zeros(100_000) for _ in range(6)]

    def work(x):
        for _ in range(20):
            basic.add_one(x)

    workers = [threading.Thread(target=work, args=(x,)) for x in tensors]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all((x == 20).all() for x in tensors)


def test_forked_child(basic):
    x = torch.zeros(200_000)
    basic.add_one(x)
    child = os.fork()
    if child == 0:
        basic.add_one(x)
        os._exit(0 if (x.numpy() == 2).all() else 1)  # torch itself hangs in a forked child
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    basic.add_one(x)
    assert (x == 2).all()


def run(code, **environment):
    code = f"import sys; sys.path.insert(0, {str(FOLDER.parents[4])!r})\n{code}"
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


FULL = """
import torch
from tests.doors.torch.shaders.door import library
x = torch.zeros(5)
library("kernel void f(device half4* x, device float* y, uint i [[thread_position_in_grid]])"
        "{ y[i] = simd_sum(float(i)); }").f(x, x, threads=5)
print(x.tolist())
"""


def test_compiled_once_for_all_processes(tmp_path):
    for _ in range(2):
        done = run(FULL, ANYMPS_SHADER_CACHE=str(tmp_path / "new"))
        assert done.stdout == "[10.0, 10.0, 10.0, 10.0, 10.0]\n", done.stderr
    files = sorted((tmp_path / "new").iterdir())
    assert len(files) == 2 and (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    before = [file.stat().st_ino for file in files]
    done = run(FULL, ANYMPS_SHADER_CACHE=str(tmp_path / "new"))
    assert [file.stat().st_ino for file in files] == before


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    done = run(FULL, ANYMPS_SHADER_CACHE=str(tmp_path / "open"))
    assert done.stdout.startswith("[10.0"), done.stderr
    assert not list((tmp_path / "open").iterdir())


def test_a_missing_compiler_says_what_to_install(tmp_path):
    done = run(FULL, ANYMPS_CLANG="/nowhere/clang++")
    assert "apt install clang" in done.stderr and "/nowhere/clang++" in done.stderr
    done = run(FULL, PATH=str(tmp_path))
    assert "apt install clang" in done.stderr


def test_gcc_too(tmp_path):
    done = run(FULL, ANYMPS_CLANG="g++", ANYMPS_SHADER_CACHE=str(tmp_path / "gcc"))
    assert done.stdout == "[10.0, 10.0, 10.0, 10.0, 10.0]\n", done.stderr


def test_no_threads_before_the_first_large_launch(tmp_path):
    code = FULL + "import os\nprint(len(os.listdir('/proc/self/task')))\n"
    alone = run("import torch, os\nprint(len(os.listdir('/proc/self/task')))\n")
    assert run(code).stdout.split("\n")[1] == alone.stdout.strip()


def test_head_is_two_lines():
    assert HEAD.count("\n") == 2  # the lines in test_errors_name_the_users_line count on it


def test_constants_are_aligned():
    lib = library("kernel void f(device long* out, constant long4& a, constant long4& b) {"
                  "  out[0] = long(&a) % 32 + long(&b) % 32 + a.w + b.x; }"
                  "kernel void place(device long* out, constant long4* a, constant long4* b) {"
                  "  out[0] = long(a) % 32 + long(b) % 32; }")  # fmt: skip
    out = torch.ones(1, dtype=torch.int64)
    for _ in range(20):
        lib.place(out, [1, 2, 3, 4], [5, 6, 7, 8], threads=1)
        assert out.item() == 0
    lib.f(out, [1, 2, 3, 4], [5, 6, 7, 8], threads=1)
    assert out.item() == 9
