# SPDX-License-Identifier: Apache-2.0
"""Runs a delegate's payload with torch: what the written nodes mean, one line a kind.

The exporter checks itself with it: bytes that were written are read again and computed, and compared with the module.
It follows the schema and not the exporter, so that a field that was written wrongly makes a wrong number here.
"""

import functools

import torch

from .report import payload_graph
from .serialization import TORCH_DTYPES, schema

F = torch.nn.functional
KINDS = {}


def kind(*names):
    def register(function):
        for name in names:
            KINDS[name] = function
        return function

    return register


def dtype_of(name):
    return TORCH_DTYPES.get(schema.MPSDataType[name])


class Values(dict):
    """Values by id; -1 is no value."""

    def __getitem__(self, id):
        return None if id == -1 else super().__getitem__(id)


UNARY = """Exp Exp2 Reciprocal Sqrt Neg Log Log10 Log2 Erf Floor Ceil Rsqrt Sigmoid Sin Sign Cos Tan Abs Asin Acos Atan
Sinh Cosh Tanh Asinh Acosh Atanh Isnan Isinf Round""".split()
for name in UNARY:
    KINDS["MPS" + name] = lambda v, n, f=getattr(torch, name.lower()): f(v[n["input1_id"]])
KINDS["MPSBitwiseNot"] = lambda v, n: torch.bitwise_not(v[n["input1_id"]])
KINDS["MPSLogicalNot"] = lambda v, n: torch.logical_not(v[n["input1_id"]])
KINDS["MPSReLU"] = lambda v, n: torch.relu(v[n["input1_id"]])

BINARY = {
    "Mul": torch.mul,
    "Fmod": torch.fmod,
    "Remainder": torch.remainder,
    "Min": torch.minimum,
    "Minimum": torch.minimum,
    "Max": torch.maximum,
    "Pow": torch.pow,
    "Atan2": torch.atan2,
    "BitwiseAnd": torch.bitwise_and,
    "BitwiseOr": torch.bitwise_or,
    "BitwiseXor": torch.bitwise_xor,
    "Eq": torch.eq,
    "Ne": torch.ne,
    "Ge": torch.ge,
    "Gt": torch.gt,
    "Le": torch.le,
    "Lt": torch.lt,
    "MatMul": torch.matmul,
}
for name, function in BINARY.items():
    KINDS["MPS" + name] = lambda v, n, f=function: f(v[n["input1_id"]], v[n["input2_id"]])


@kind("MPSAdd")
def add(v, n):
    return v[n["input1_id"]] + scaled(v[n["input2_id"]], n["alpha"])


@kind("MPSSub")
def sub(v, n):
    return v[n["input1_id"]] - scaled(v[n["input2_id"]], n["alpha"])


def scaled(x, alpha):
    return x if alpha == 1 else x * (alpha if x.dtype.is_floating_point else int(alpha))


@kind("MPSDiv")
def div(v, n):
    return torch.div(v[n["input1_id"]], v[n["input2_id"]], rounding_mode=n.get("rounding_mode"))


@kind("MPSHardTanh")
def hardtanh(v, n):
    return F.hardtanh(v[n["input1_id"]], n["min_value"], n["max_value"])


@kind("MPSGELU")
def gelu(v, n):
    return F.gelu(v[n["input1_id"]], approximate=n["approximate"])


@kind("MPSLeakyReLU")
def leaky_relu(v, n):
    return F.leaky_relu(v[n["input1_id"]], n["negative_slope"])


@kind("MPSSoftmax")
def softmax(v, n):
    return torch.softmax(v[n["input1_id"]], n["dim"])


@kind("MPSLogSoftmax")
def log_softmax(v, n):
    return torch.log_softmax(v[n["input1_id"]], n["dim"])


@kind("MPSAddmm")
def addmm(v, n):
    a, b, c = (v[n[f"input{i}_id"]] for i in (2, 3, 1))
    return n["alpha"] * (a @ b) + n["beta"] * c


@kind("MPSFull")
def full(v, n):
    return torch.full(n.get("shape", []), n["fill_value"]).to(dtype_of(n["dtype"]))


@kind("MPSFullLike")
def full_like(v, n):
    return torch.full(v[n["input1_id"]].shape, n["fill_value"]).to(dtype_of(n["dtype"]))


@kind("MPSClamp")
def clamp(v, n):
    x, low, high = v[n["input1_id"]], n["min_max"]["min_value"], n["min_max"]["max_value"]
    low, high = (None if abs(b) == float("inf") else b for b in (low, high))
    return x if low is None and high is None else torch.clamp(x, low, high).to(x.dtype)


@kind("MPSWhere")
def where(v, n):
    return torch.where(v[n["input1_id"]], v[n["input2_id"]], v[n["input3_id"]])


@kind("MPSIndexSelect")
def index_select(v, n):
    return torch.index_select(v[n["input1_id"]], n["dim"], v[n["index_id"]])


@kind("MPSEmbedding")
def embedding(v, n):
    return v[n["input1_id"]][v[n["input2_id"]].long()]


def indices(v, n):
    return tuple(slice(None) if i == -1 else v[i].long() for i in n["indices_id"])


@kind("MPSIndexTensor")
def index(v, n):
    return v[n["input1_id"]][indices(v, n)]


@kind("MPSIndexPut")
def index_put(v, n):
    x, values = v[n["input1_id"]].clone(), v[n["values_id"]]
    x[indices(v, n)] = values.expand(n["values_shape"]) if n.get("values_shape") else values
    return x


@kind("MPSScatter")
def scatter(v, n):
    return torch.scatter(v[n["input1_id"]], n["dim"], v[n["idx_id"]], v[n["src_id"]])


@kind("MPSMean")
def mean(v, n):
    return v[n["input1_id"]].mean(n["dims"], keepdim=n["keep_dims"])


@kind("MPSPermute")
def permute(v, n):
    return v[n["input1_id"]].permute(n["perm"])


@kind("MPSView")
def view(v, n):
    return v[n["input1_id"]].reshape(n.get("shape", []))


@kind("MPSExpand")
def expand(v, n):
    return v[n["input1_id"]].expand(n.get("shape", []))


@kind("MPSCat")
def cat(v, n):
    return torch.cat([v[i] for i in n["input_ids"]], n["dim"])


@kind("MPSSqueeze")
def squeeze(v, n):
    return v[n["input1_id"]].squeeze(tuple(n.get("dims", [])))


@kind("MPSUnsqueeze")
def unsqueeze(v, n):
    return v[n["input1_id"]].unsqueeze(n["dim"])


@kind("MPSSelect")
def select(v, n):
    return v[n["input1_id"]].select(n["dim"], n["index"])


@kind("MPSSlice")
def slice_(v, n):
    x = v[n["input1_id"]]
    return x[(slice(None),) * (n["dim"] % x.dim()) + (slice(n["start"], n["end"], n["step"]),)]


@kind("MPSPixelShuffle")
def pixel_shuffle(v, n):
    return F.pixel_shuffle(v[n["input1_id"]], n["upscale_factor"])


@kind("MPSSplitWithSizes")
def split(v, n):
    return torch.split(v[n["input1_id"]], n["split_sizes"], n["dim"])


@kind("MPSCast")
def cast(v, n):
    return v[n["input1_id"]].to(dtype_of(n["dtype"]))


@kind("MPSConv2D", "MPSDepthwiseConv2D")
def convolution(v, n):
    x, weight, bias = (v[n[f"input{i}_id"]] for i in (1, 2, 3))
    flat = x.dim() == 3
    if flat:
        x, weight = x.unsqueeze(2), weight.unsqueeze(2)
    x = F.pad(x, (n["padding_left"], n["padding_right"], n["padding_top"], n["padding_bottom"]))
    dilation = (n["dilation_y"], n["dilation_x"])
    y = F.conv2d(x, weight, bias, (n["stride_y"], n["stride_x"]), 0, dilation, n["groups"])
    return y.squeeze(2) if flat else y


@kind("MPSBatchNorm")
def batch_norm(v, n):
    x, *parameters = (v[n[k]] for k in ("input_id", "mean_id", "var_id", "weight_id", "bias_id"))
    return F.batch_norm(x, *parameters, eps=n["epsilon"]), None, None


@kind("MPSLayerNorm")
def layer_norm(v, n):
    x, weight, bias = (v[n[k]] for k in ("input1_id", "weight_id", "bias_id"))
    return torch.native_layer_norm(x, n["normalized_shape"], weight, bias, n["eps"])


def window(n):
    return (
        (n["kernel_height"], n["kernel_width"]),
        (n["stride_height"], n["stride_width"]),
        (n["padding_top"], n["padding_left"]),
    )


@kind("MPSMaxPool2DWithIndices")
def max_pool(v, n):
    dilation = (n["dilation_height"], n["dilation_width"])
    return F.max_pool2d(v[n["input1_id"]], *window(n), dilation, n["ceil_mode"], return_indices=True)


@kind("MPSAvgPool2D")
def avg_pool(v, n):
    options = (n["ceil_mode"], n["count_include_pad"], n["divisor_override"] or None)
    return F.avg_pool2d(v[n["input1_id"]], *window(n), *options)


@kind("MPSConstantPadND")
def pad(v, n):
    return F.pad(v[n["input1_id"]], n["pad"], value=n["value"])


@kind("MPSArange")
def arange(v, n):
    dtype = dtype_of(n["dtype"])
    ends = (n[k] if dtype.is_floating_point else int(n[k]) for k in ("start", "end", "step"))
    return torch.arange(*ends, dtype=dtype)


@kind("MPSDequantizePerChannelGroup")
def dequantize(v, n):
    weights, scales = v[n["input1_id"]], v[n["scales_id"]]
    groups = weights.reshape(weights.shape[0], -1, n["group_size"])
    return (groups * scales.reshape(weights.shape[0], -1, 1)).reshape(weights.shape).to(dtype_of(n["output_dtype"]))


def constant(tensor, segment):
    data = segment[tensor["segment_offset"] : tensor["segment_offset"] + tensor["constant_buffer_size"]]
    dims = tensor.get("dims", [])
    if tensor["datatype"] == "mps_data_type_int4":
        packed = torch.frombuffer(bytearray(data), dtype=torch.uint8).to(torch.int8)
        nibbles = torch.stack([packed & 0xF, (packed >> 4) & 0xF], -1)
        return torch.where(nibbles > 7, nibbles - 16, nibbles).reshape(dims)
    dtype = dtype_of(tensor["datatype"])
    if not data:
        return torch.empty(dims, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(dims)


def results(node):
    """The ids that a node writes, in the order of its function's results."""
    if "output_ids" in node:
        return node["output_ids"]
    if "output1_id" in node:
        return [node[k] for k in ("output1_id", "output2_id", "output3_id") if k in node]
    return [node["output_id"]]


@functools.lru_cache(maxsize=4)
def decoded(payload):
    graph = payload_graph(payload)
    start = int.from_bytes(payload[8:16], "little")
    segment = payload[start:]
    constants = {id: constant(graph["mps_values"][id], segment) for id in graph.get("constant_ids", [])}
    return graph, constants


def run(payload, inputs):
    """The outputs of a delegate for its inputs, as tensors of the declared dtypes."""
    graph, constants = decoded(bytes(payload))
    values = Values(constants)
    values.update(zip(graph.get("input_ids", []), inputs, strict=True))
    for entry in graph.get("mps_nodes", []):
        name, node = entry["mpsnode_union_type"], entry["mpsnode_union"]
        if "min_max" in entry:
            node = {**node, "min_max": entry["min_max"]}
        made = KINDS[name](values, node)
        for id, value in zip(results(node), made if isinstance(made, (tuple, list)) else (made,)):
            values[id] = value
    outputs = []
    for id in graph["output_ids"]:
        value, declared = values[id], graph["mps_values"][id]
        dtype = dtype_of(declared["datatype"])
        outputs.append(value if dtype is None else value.to(dtype))
    return outputs
