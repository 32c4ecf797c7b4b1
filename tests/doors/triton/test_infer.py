# SPDX-License-Identifier: Apache-2.0
"""Answers: every data type, shapes, strings, ragged batches, optional inputs, memory of the client."""
import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
import tritonclient.utils.shared_memory as shared_memory
from tritonclient.utils import InferenceServerException

from tests.doors.server import make_repository as made
from tests.doors.server.protocol.cases.steps import NUMPY
from tests.doors.server.protocol.cases.tensors import VALUES
from tests.doors.server.make_repository import Quoted, base, io, node, tensor
from .calls import PROTOCOLS, client, floats, infer, together, unregister


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    from tests.doors.server.servers import start
    folder = tmp_path_factory.mktemp("infer")
    repository = made.Repository(folder / "models")
    for part in (made.identities, made.scalar, made.strings, made.ragged):
        part(repository)
    made.add_sub(repository, dynamic_batching={})
    repository.model("matmul", [node("MatMul", ["a", "b"], ["c"])], [tensor("a", "FP32", ["N", "M", "K"]), tensor("b", "FP32", ["N", "K", "L"])],
                     [tensor("c", "FP32", ["N", "M", "L"])],
                     base(4, [io("a", "FP32", [-1, -1]), io("b", "FP32", [-1, -1])], [io("c", "FP32", [-1, -1])]))
    repository.model("nonzero", [node("NonZero", ["x"], ["i"])], [tensor("x", "FP32", ["N"])], [tensor("i", "INT64", [1, "K"])],
                     base(0, [io("x", "FP32", [-1])], [io("i", "INT64", [1, -1])]))
    reshape = {"reshape": {"shape": [-1, 2, 2]}}
    repository.model("reshaped", [node("Neg", ["x"], ["y"])], [tensor("x", "FP32", ["N", "M", 2, 2])], [tensor("y", "FP32", ["N", "M", 2, 2])],
                     base(4, [io("x", "FP32", [-1, 4], **reshape)], [io("y", "FP32", [1, -1, 4], **reshape)]))
    repository.model("scaled", [node("Mul", ["x", "w"], ["t"]), node("Add", ["t", "v"], ["y"])],
                     [tensor("x", "FP32", ["N", 2]), tensor("w", "FP32", ["N", 1]), tensor("v", "FP32", ["N", 1])],
                     [tensor("y", "FP32", ["N", 2])],
                     base(4, [io("x", "FP32", [2]), io("w", "FP32", [1], optional=True), io("v", "FP32", [1], optional=True)],
                          [io("y", "FP32", [2])], dynamic_batching={"max_queue_delay_microseconds": 50000}),
                     {"w": np.float32([[3]]), "v": np.float32([[0]])})
    with start("triton", repository.folder, folder / "log", wait="/v2/health/ready") as running:
        yield running


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("datatype", made.DTYPES)
def test_every_data_type(server, protocol, datatype):
    x = np.array(VALUES[datatype], dtype=NUMPY[datatype])
    for array in (x, np.concatenate([x] * 3), np.zeros((1, 0), x.dtype)):
        y = infer(server, f"identity_{datatype.lower()}", protocol, INPUT0=array, datatypes={"INPUT0": datatype})["OUTPUT0"]
        assert y.shape == array.shape
        assert y.tolist() == array.tolist()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_dynamic_shapes(server, protocol):
    for n, m, k, q in ((1, 1, 1, 1), (2, 3, 5, 4), (4, 2, 1, 7), (1, 5, 0, 2)):
        a, b = floats(n, m, k), floats(n, k, q)
        np.testing.assert_allclose(infer(server, "matmul", protocol, a=a, b=b)["c"], a @ b)
    assert infer(server, "nonzero", protocol, x=np.float32([0, 4, 0, 5]))["i"].tolist() == [[1, 3]]
    assert infer(server, "nonzero", protocol, x=np.zeros(3, np.float32))["i"].shape == (1, 0)


def test_shapes_that_do_not_fit_together(server):
    """The core does not know that the two must agree: the engine says so."""
    with pytest.raises(InferenceServerException, match=r"cannot multiply a \[1, 2, 3\] by b \[1, 4, 2\].*\(node \"c\"\)"):
        infer(server, "matmul", a=floats(1, 2, 3), b=floats(1, 4, 2))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reshape(server, protocol):
    assert infer(server, "scalar", protocol, x=np.float32([[1], [2]]))["y"].tolist() == [[2], [4]]
    x = floats(2, 3, 4)
    y = infer(server, "reshaped", protocol, x=x)["y"]
    assert y.shape == (2, 1, 3, 4)
    np.testing.assert_array_equal(y, -x.reshape(2, 1, 3, 4))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_strings(server, protocol):
    a = np.array([["one", ""], ["\u65e5\u672c", "x" * 5000]], dtype=object)
    b = np.array([["one", "2"], ["", "y"]], dtype=object)
    answer = infer(server, "strings", protocol, a=a, b=b)
    assert answer["joined"].tolist() == [[f"{p}-{q}".encode() for p, q in zip(r, s)] for r, s in zip(a, b)]
    assert answer["same"].tolist() == [[True, False], [False, False]]


def test_ragged_batch(server):
    """Requests of different lengths run together; each gets the sum of its own elements."""
    rows = [floats(1, n) for n in (3, 1, 6, 2, 9)]
    for answer, row in zip(together(5, lambda i: infer(server, "ragged", PROTOCOLS[i % 2], INPUT=rows[i])["SUM"]), rows):
        assert answer.tolist() == [[row.sum()]]


def test_optional_inputs(server):
    x = np.float32([[1, 2]])
    given = [{}, {"w": np.float32([[5]])}, {"v": np.float32([[1]])}, {"w": np.float32([[5]]), "v": np.float32([[1]])}]
    expected = [[[3, 6]], [[5, 10]], [[4, 7]], [[6, 11]]]
    for answer, want in zip(together(8, lambda i: infer(server, "scaled", x=x, **given[i % 4])["y"]), expected * 2):
        assert answer.tolist() == want


def test_only_the_outputs_that_are_asked_for(server):
    a = np.arange(16, dtype=np.int32).reshape(1, 16)
    answer = infer(server, "add_sub", "grpc", outputs=["OUTPUT1"], INPUT0=a, INPUT1=a)
    assert list(answer) == ["OUTPUT1"] and not answer["OUTPUT1"].any()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_shared_memory(server, protocol):
    """Read and written where it lies; also when the output lies over the input, or crooked."""
    using = client(server, protocol)
    module = http_client if protocol == "http" else grpc_client
    x = floats(2, 50)
    for name, offset, output in (("apart", 0, 1024), ("same", 0, 0), ("over", 0, 200), ("crooked", 1, 1027)):
        region = shared_memory.create_shared_memory_region(name, f"/anymps_{name}_{protocol}", 4096)
        try:
            shared_memory.set_shared_memory_region(region, [x], offset=offset)
            using.register_system_shared_memory(name, f"/anymps_{name}_{protocol}", 4096)
            read = module.InferInput("INPUT0", [2, 50], "FP32")
            read.set_shared_memory(name, x.nbytes, offset)
            written = module.InferRequestedOutput("OUTPUT0")
            written.set_shared_memory(name, x.nbytes, output)
            using.infer("identity_fp32", [read], outputs=[written])
            np.testing.assert_array_equal(shared_memory.get_contents_as_numpy(region, np.float32, [2, 50], output), x, err_msg=name)
        finally:
            unregister(using, name)
            shared_memory.destroy_shared_memory_region(region)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_errors_of_requests(server, protocol):
    a = np.arange(16, dtype=np.int32).reshape(1, 16)
    for says, arrays in (("expected 2 inputs but got 1", {"INPUT0": a}), ("unexpected inference input|expected 2 inputs", {"INPUT0": a, "z": a}),
                         ("data-type", {"INPUT0": a.astype(np.float32), "INPUT1": a}), ("unexpected shape", {"INPUT0": a[:, :3], "INPUT1": a[:, :3]}),
                         ("batch-size must be <= 8", {"INPUT0": np.repeat(a, 9, 0), "INPUT1": np.repeat(a, 9, 0)})):
        with pytest.raises(InferenceServerException, match=says):
            infer(server, "add_sub", protocol, **arrays)
    assert infer(server, "add_sub", protocol, INPUT0=a, INPUT1=a)["OUTPUT0"].tolist() == (2 * a).tolist()


def test_nothing_of_all_this_is_an_error_of_the_server(server):
    assert Quoted("x") == "x" and "E1" not in "".join(line[:2] for line in server.log.read_text().splitlines() if "metal_mps" in line)
