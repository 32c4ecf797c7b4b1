# SPDX-License-Identifier: Apache-2.0
"""Makes the model repository that the tests, the soak run and test_client.py serve: small ONNX models whose answers are
known, one for each thing that the protocol can ask.

    python -m tests.doors.server.make_repository FOLDER
"""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BACKEND = "metal_mps"
# Triton's name of each data type, ONNX's number, the name in a config.
DTYPES = {"BOOL": TensorProto.BOOL, "UINT8": TensorProto.UINT8, "UINT16": TensorProto.UINT16, "UINT32": TensorProto.UINT32,
          "UINT64": TensorProto.UINT64, "INT8": TensorProto.INT8, "INT16": TensorProto.INT16, "INT32": TensorProto.INT32,
          "INT64": TensorProto.INT64, "FP16": TensorProto.FLOAT16, "FP32": TensorProto.FLOAT, "FP64": TensorProto.DOUBLE,
          "BF16": TensorProto.BFLOAT16, "BYTES": TensorProto.STRING}
MLP_SIZES = (16, 32, 4)
MLP_LABELS = ["ant", "bee", "cat", "dog"]
SLOW_SIZE = 512


def config_type(datatype):
    return "TYPE_" + {"BYTES": "STRING"}.get(datatype, datatype)


def tensor(name, datatype, dims):
    return helper.make_tensor_value_info(name, DTYPES[datatype], dims)


def text(value):
    """A value of a config in protobuf's text form; dicts are messages, lists repeat their field."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        plain = value.isupper() and value.replace("_", "").isalnum()  # an enum's name
        return value if plain else '"' + value.replace('"', '\\"') + '"'
    return str(value)


def pbtxt(fields, indent=""):
    lines = []
    for key, values in fields.items():
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, dict):
                lines += [f"{indent}{key} {{", *pbtxt(value, indent + "  "), f"{indent}}}"]
            else:
                lines.append(f"{indent}{key}: {text(value)}")
    return lines


def io(name, datatype, dims, **more):
    return {"name": f"{name}", "data_type": config_type(datatype), "dims": list(dims), **more}


class Quoted(str):
    """Names in capitals, which are not an enum's."""

    def isupper(self):
        return False


class Repository:
    def __init__(self, folder):
        self.folder = Path(folder)

    def model(self, name, nodes, inputs, outputs, config, weights=(), versions=(1,), opset=17):
        graph = helper.make_graph(nodes, name, inputs, outputs, [numpy_helper.from_array(a, n) for n, a in dict(weights).items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
        onnx.checker.check_model(model)
        for version in versions:
            self.file(f"{name}/{version}/model.onnx", model.SerializeToString())
        if config is not None:
            self.config(name, config)
        return model

    def config(self, name, config):
        full = {"name": Quoted(name), "backend": Quoted(BACKEND), **config}
        if "platform" in full:
            del full["backend"]
        self.file(f"{name}/config.pbtxt", ("\n".join(pbtxt(full)) + "\n").encode())

    def file(self, path, data):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def quoted(entries):
    return [{**e, "name": Quoted(e["name"])} for e in entries]


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs, outputs, **attributes)


def cpu(count=1):
    return {"instance_group": {"count": count, "kind": "KIND_CPU"}}


def base(max_batch_size, inputs, outputs, **more):
    return {"max_batch_size": max_batch_size, "input": quoted(inputs), "output": quoted(outputs), **cpu(), **more}


def add_sub(repository, name="add_sub", datatype="INT32", **more):
    """OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1."""
    dims = ["N", 16]
    repository.model(name, [node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]), node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"])],
                     [tensor("INPUT0", datatype, dims), tensor("INPUT1", datatype, dims)],
                     [tensor("OUTPUT0", datatype, dims), tensor("OUTPUT1", datatype, dims)],
                     base(8, [io("INPUT0", datatype, [16]), io("INPUT1", datatype, [16])],
                          [io("OUTPUT0", datatype, [16], label_filename=Quoted("labels.txt")), io("OUTPUT1", datatype, [16])], **more))
    repository.file(f"{name}/labels.txt", "".join(f"label_{i}\n" for i in range(16)).encode())


def identities(repository):
    for datatype in DTYPES:
        name = f"identity_{datatype.lower()}"
        repository.model(name, [node("Identity", ["INPUT0"], ["OUTPUT0"])], [tensor("INPUT0", datatype, ["N", "M"])],
                         [tensor("OUTPUT0", datatype, ["N", "M"])],
                         base(8, [io("INPUT0", datatype, [-1])], [io("OUTPUT0", datatype, [-1])]))
    # Without a batch axis, of any shape with two axes.
    repository.model("identity_2d", [node("Identity", ["INPUT0"], ["OUTPUT0"])], [tensor("INPUT0", "FP32", ["N", "M"])],
                     [tensor("OUTPUT0", "FP32", ["N", "M"])],
                     base(0, [io("INPUT0", "FP32", [-1, -1])], [io("OUTPUT0", "FP32", [-1, -1])]))


def mlp_weights(seed=3):
    rng = np.random.default_rng(seed)
    n, hidden, classes = MLP_SIZES
    return {"w0": rng.standard_normal((n, hidden)).astype(np.float32), "b0": rng.standard_normal(hidden).astype(np.float32),
            "w1": rng.standard_normal((hidden, classes)).astype(np.float32), "b1": rng.standard_normal(classes).astype(np.float32)}


def mlp_answer(x, seed=3):
    w = mlp_weights(seed)
    logits = np.maximum(np.asarray(x, np.float32) @ w["w0"] + w["b0"], 0) @ w["w1"] + w["b1"]
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def mlp(repository, name="mlp", seed=3, **more):
    nodes = [node("MatMul", ["x", "w0"], ["h0"]), node("Add", ["h0", "b0"], ["h1"]), node("Relu", ["h1"], ["h2"]),
             node("MatMul", ["h2", "w1"], ["h3"]), node("Add", ["h3", "b1"], ["h4"]), node("Softmax", ["h4"], ["y"], axis=-1)]
    more = {"dynamic_batching": {"max_queue_delay_microseconds": 100}, **more}
    repository.model(name, nodes, [tensor("x", "FP32", ["N", MLP_SIZES[0]])], [tensor("y", "FP32", ["N", MLP_SIZES[-1]])],
                     base(32, [io("x", "FP32", [MLP_SIZES[0]])],
                          [io("y", "FP32", [MLP_SIZES[-1]], label_filename=Quoted("labels.txt"))], **more), mlp_weights(seed))
    repository.file(f"{name}/labels.txt", ("\n".join(MLP_LABELS) + "\n").encode())


def versions(repository):
    """y = x + version; all versions are served."""
    for version in (1, 2, 10):
        repository.model("versions", [node("Add", ["x", "v"], ["y"])], [tensor("x", "FP32", ["N", 2])], [tensor("y", "FP32", ["N", 2])],
                         base(4, [io("x", "FP32", [2])], [io("y", "FP32", [2])], version_policy={"all": {}}),
                         {"v": np.float32([version])}, versions=[version])


def scalar(repository):
    """One number a row: dims [1] outside, none for the model."""
    shape = {"reshape": {"shape": []}}
    repository.model("scalar", [node("Mul", ["x", "two"], ["y"])], [tensor("x", "FP32", ["N"])], [tensor("y", "FP32", ["N"])],
                     base(4, [io("x", "FP32", [1], **shape)], [io("y", "FP32", [1], **shape)]), {"two": np.float32(2)})


def strings(repository):
    """What the strings are, joined with a dash, and whether both are equal."""
    repository.model("strings", [node("StringConcat", ["a", "dash"], ["t"]), node("StringConcat", ["t", "b"], ["joined"]),
                                 node("Equal", ["a", "b"], ["same"])],
                     [tensor("a", "BYTES", ["N", "M"]), tensor("b", "BYTES", ["N", "M"])],
                     [tensor("joined", "BYTES", ["N", "M"]), tensor("same", "BOOL", ["N", "M"])],
                     base(4, [io("a", "BYTES", [-1]), io("b", "BYTES", [-1])], [io("joined", "BYTES", [-1]), io("same", "BOOL", [-1])]),
                     {"dash": np.array(["-"], dtype=object)}, opset=20)


def ragged(repository):
    """Requests of any length are laid end to end; the sum of each one comes out."""
    nodes = [node("Cast", ["INDEX"], ["ends"], to=TensorProto.INT64), node("Sub", ["ends", "one"], ["last"]),
             node("CumSum", ["INPUT", "zero"], ["sums"]), node("Gather", ["sums", "last"], ["upto"], axis=0),
             node("Concat", ["nothing", "upto"], ["from"], axis=0), node("Slice", ["from", "zero1", "minus1", "zero1"], ["before"]),
             node("Sub", ["upto", "before"], ["flat"]), node("Unsqueeze", ["flat", "one"], ["SUM"])]
    config = base(8, [io("INPUT", "FP32", [-1], allow_ragged_batch=True)], [io("SUM", "FP32", [1])],
                  batch_input={"kind": "BATCH_ACCUMULATED_ELEMENT_COUNT", "target_name": Quoted("INDEX"), "data_type": "TYPE_FP32",
                               "source_input": Quoted("INPUT")},
                  dynamic_batching={"max_queue_delay_microseconds": 50000})
    repository.model("ragged", nodes, [tensor("INPUT", "FP32", ["L"]), tensor("INDEX", "FP32", ["B"])], [tensor("SUM", "FP32", ["B", 1])],
                     config, {"one": np.int64([1]), "zero": np.int64(0), "zero1": np.int64([0]), "minus1": np.int64([-1]),
                              "nothing": np.float32([0])})


def control(name, kind, datatype="FP32"):
    switch = {"data_type": config_type(datatype)} if kind == "CORRID" else {"fp32_false_true": [0, 1]}
    return {"name": Quoted(name), "control": {"kind": f"CONTROL_SEQUENCE_{kind}", **switch}}


def sequences(repository):
    """y = x + 100 START + 1000 END + 10000 CORRID: what the batcher tells the model of each request."""
    controls = [control("START", "START"), control("END", "END"), control("READY", "READY"), control("CORRID", "CORRID", "UINT64")]
    nodes = [node("Mul", ["START", "c100"], ["s"]), node("Mul", ["END", "c1000"], ["e"]), node("Cast", ["CORRID"], ["c"], to=1),
             node("Mul", ["c", "c10000"], ["d"]), node("Sum", ["x", "s", "e", "d"], ["t"]), node("Mul", ["t", "READY"], ["y"])]
    names = [("x", "FP32"), ("START", "FP32"), ("END", "FP32"), ("READY", "FP32"), ("CORRID", "UINT64")]
    weights = {"c100": np.float32([100]), "c1000": np.float32([1000]), "c10000": np.float32([10000])}
    for name, strategy in (("sequence", {"direct": {}}), ("sequence_oldest", {"oldest": {"max_candidate_sequences": 4}})):
        repository.model(name, nodes, [tensor(n, t, ["N", 1]) for n, t in names], [tensor("y", "FP32", ["N", 1])],
                         base(4, [io("x", "FP32", [1])], [io("y", "FP32", [1])],
                              sequence_batching={"max_sequence_idle_microseconds": 60000000, **strategy, "control_input": controls}),
                         weights)
    # The sum of what came so far, kept by the server between the requests. Where a sequence starts Triton leaves
    # the state uninitialized, so it is left out there: a product with zero would let NaN through.
    nodes = [node("Cast", ["START"], ["starts"], to=9), node("Where", ["starts", "zero", "STATE_IN"], ["kept"]),
             node("Add", ["x", "kept"], ["y"]), node("Identity", ["y"], ["STATE_OUT"])]
    repository.model("accumulate", nodes, [tensor(n, "FP32", ["N", 1]) for n in ("x", "START", "STATE_IN")],
                     [tensor(n, "FP32", ["N", 1]) for n in ("y", "STATE_OUT")],
                     base(4, [io("x", "FP32", [1])], [io("y", "FP32", [1])],
                          sequence_batching={"max_sequence_idle_microseconds": 60000000, "control_input": controls[:1],
                                             "state": {"input_name": Quoted("STATE_IN"), "output_name": Quoted("STATE_OUT"),
                                                       "data_type": "TYPE_FP32", "dims": [1]}}),
                     {"zero": np.float32([0])})


def ensembles(repository):
    """pipeline: scaled = 2 x, then the MLP; scaled comes out too."""
    repository.model("scale", [node("Mul", ["x", "two"], ["y"])], [tensor("x", "FP32", ["N", 16])], [tensor("y", "FP32", ["N", 16])],
                     base(32, [io("x", "FP32", [16])], [io("y", "FP32", [16])]), {"two": np.float32([2])})
    steps = [("scale", {"x": "raw"}, {"y": "scaled"}), ("mlp", {"x": "scaled"}, {"y": "probabilities"})]

    def maps(pairs):
        return [{"key": Quoted(k), "value": Quoted(v)} for k, v in pairs.items()]
    config = {"platform": Quoted("ensemble"), "max_batch_size": 32, "input": quoted([io("raw", "FP32", [16])]),
              "output": quoted([io("probabilities", "FP32", [4]), io("scaled", "FP32", [16])]),
              "ensemble_scheduling": {"step": [{"model_name": Quoted(m), "model_version": -1, "input_map": maps(i), "output_map": maps(o)}
                                               for m, i, o in steps]}}
    repository.config("pipeline", config)
    (repository.folder / "pipeline" / "1").mkdir(parents=True, exist_ok=True)


def slow_model(repository, name, products, **more):
    """`products` matrix products one after the other; y = x."""
    eye = np.eye(SLOW_SIZE, dtype=np.float32)
    nodes = [node("Expand", ["x", "size"], ["m0"])]
    nodes += [node("MatMul", [f"m{i}", f"w{i % 2}"], [f"m{i + 1}"]) for i in range(products)]
    nodes += [node("Slice", [f"m{products}", "zero", "one", "axis"], ["row"]), node("Slice", ["row", "zero", "one", "two"], ["y3"]),
              node("Squeeze", ["y3", "two"], ["y"])]
    repository.model(name, nodes, [tensor("x", "FP32", ["N", 1, 1])], [tensor("y", "FP32", ["N", 1])],
                     base(1, [io("x", "FP32", [1, 1])], [io("y", "FP32", [1])], **more),
                     {"size": np.int64([1, SLOW_SIZE, SLOW_SIZE]), "w0": eye, "w1": eye, "zero": np.int64([0]), "one": np.int64([1]),
                      "axis": np.int64([1]), "two": np.int64([2])})


def queues(repository):
    policy = {"timeout_action": "REJECT", "default_timeout_microseconds": 60000000, "allow_timeout_override": True, "max_queue_size": 4}
    batching = {"priority_levels": 2, "default_priority_level": 2, "default_queue_policy": policy}
    slow_model(repository, "slow", 80, dynamic_batching=batching)
    slow_model(repository, "slower", 400, dynamic_batching=batching)
    add_sub(repository, "cached", response_cache={"enable": True})
    mlp(repository, "warm", model_warmup={"name": Quoted("zeros"), "batch_size": 4, "inputs": {
        "key": Quoted("x"), "value": {"data_type": "TYPE_FP32", "dims": [16], "zero_data": True}}})


def completed(repository):
    """Models that leave their config to the server: nothing but the backend; and some fields."""
    mlp(repository, "auto")
    repository.config("auto", {})
    add_sub(repository, "auto_batch")
    repository.config("auto_batch", {"max_batch_size": 4, "dynamic_batching": {"preferred_batch_size": [2, 4]}})


def broken(repository):
    """Models that cannot be loaded: no ONNX file, no version, a config that says otherwise than the file."""
    repository.file("broken/1/model.onnx", b"this is not a model")
    repository.config("broken", base(0, [io("x", "FP32", [1])], [io("y", "FP32", [1])]))
    repository.config("no_version", base(0, [io("x", "FP32", [1])], [io("y", "FP32", [1])]))
    mlp(repository, "wrong_type")
    repository.config("wrong_type", base(8, [io("x", "INT32", [16])], [io("y", "FP32", [4])]))


def make(folder, with_broken=True):
    repository = Repository(folder)
    add_sub(repository, dynamic_batching={})
    add_sub(repository, "add_sub_fp32", "FP32", dynamic_batching={})
    for part in (identities, mlp, versions, scalar, strings, ragged, sequences, ensembles, queues, completed):
        part(repository)
    if with_broken:
        broken(repository)
    return repository


if __name__ == "__main__":
    make(sys.argv[1])
    print(f"made {sum(1 for p in Path(sys.argv[1]).iterdir())} models in {sys.argv[1]}")
