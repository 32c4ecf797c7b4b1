# SPDX-License-Identifier: Apache-2.0
"""Calls of torch's operators, as tables; aten_case.py says how they are written."""
import torch

from aten_case import A, BOOL, CASES, DYNAMIC, F16, F32, I16, I32, I64, I8, INF, NAN, SPECIAL, U8, case, rand, t
from aten_layer_cases import (backward_cases, dynamic_cases, linalg_cases, more_cases, nn_cases, pool_cases, quantized_cases,
                              resize_cases)


def math_cases():
    domains = {"acosh": (1, 9), "log": (0.01, 9), "log10": (0.01, 9), "log2": (0.01, 9), "log1p": (-0.9, 9), "sqrt": (0, 9),
               "rsqrt": (0.01, 9), "acos": (-1, 1), "asin": (-1, 1), "atanh": (-0.95, 0.95), "logit": (0.01, 0.99)}
    unary = ("abs acos acosh asin asinh atan atanh ceil cos cosh erf exp expm1 floor log log10 log1p log2 neg reciprocal round rsqrt "
             "sigmoid sign sin sinh sqrt tan tanh trunc relu isnan isinf logical_not logit").split()
    same = {"abs", "ceil", "floor", "neg", "round", "sign", "trunc", "relu"}
    for name in unary:
        op = getattr(A, name).default
        low, high = domains.get(name, (-3, 3))
        case("unary", name, op, rand(3, 5, low=low, high=high))
        case("unary", name + "_f16", op, rand(7, dtype=F16, low=low, high=high))
        case("unary", name + "_special", op, SPECIAL)
        case("unary", name + "_scalar", op, rand(low=low, high=high))
        case("unary", name + "_empty", op, rand(0, 3))
        if name != "logit":
            case("unary", name + "_i32", op, rand(2, 3, dtype=I32, low=1 if low >= 0 else -1 if high <= 1 else low, high=high))
        if name not in same | {"logit"}:
            case("unary", name + "_bool", op, rand(4, dtype=BOOL))
    case("unary", "logit_eps", lambda x: A.logit.default(x, 0.1), rand(9, low=-0.2, high=1.2))
    case("unary", "bitwise_not", A.bitwise_not.default, rand(5, dtype=I32))
    case("unary", "bitwise_not_bool", A.bitwise_not.default, rand(5, dtype=BOOL))
    case("unary", "bitwise_not_u8", A.bitwise_not.default, rand(5, dtype=U8, low=0, high=255))
    case("unary", "sign_bool", A.sign.default, rand(5, dtype=BOOL))

    for name in "add sub mul div maximum minimum atan2 eq ne lt le gt ge".split():
        packet = getattr(A, name)
        op = packet.Tensor if "Tensor" in packet.overloads() else packet.default
        case("binary", name, op, rand(3, 5), rand(3, 5))
        case("binary", name + "_broadcast", op, rand(2, 1, 5), rand(3, 1))
        case("binary", name + "_i32", op, rand(3, 5, dtype=I32), rand(3, 5, dtype=I32, low=1))
        case("binary", name + "_i64_f32", op, rand(4, dtype=I64), rand(4))
        case("binary", name + "_scalar_tensor", op, rand(4, dtype=F16), rand(dtype=F32))
        case("binary", name + "_int_scalar_tensor", op, rand(4, dtype=I16), rand(dtype=I64, low=1))
        case("binary", name + "_special", op, SPECIAL, SPECIAL.flip(0))
        if name not in ("sub", "div"):
            case("binary", name + "_bool", op, rand(6, dtype=BOOL), rand(6, dtype=BOOL))
    for name in "add sub mul div eq ne lt le gt ge".split():
        op = getattr(A, name).Scalar
        case("scalar", name, lambda x, op=op: op(x, 1.5), rand(3, 5))
        case("scalar", name + "_int", lambda x, op=op: op(x, 2), rand(3, 5, dtype=I32))
        case("scalar", name + "_int_f16", lambda x, op=op: op(x, 2), rand(3, 5, dtype=F16))
        case("scalar", name + "_int_double", lambda x, op=op: op(x, 1.5), rand(5, dtype=I64))
    for name in "add sub".split():
        op = getattr(A, name)
        case("alpha", name, lambda x, y, op=op: op.Tensor(x, y, alpha=2.5), rand(3, 4), rand(4))
        case("alpha", name + "_int", lambda x, y, op=op: op.Tensor(x, y, alpha=3), rand(3, 4, dtype=I32), rand(4, dtype=I32))
        case("alpha", name + "_f16", lambda x, y, op=op: op.Tensor(x, y, alpha=0.3), rand(8, dtype=F16), rand(8, dtype=F16))
        case("alpha", name + "_scalar", lambda x, op=op: op.Scalar(x, 3, 2), rand(5, dtype=I32))
    case("alpha", "rsub", lambda x: A.rsub.Scalar(x, 1.5, 2), rand(5))
    case("alpha", "rsub_int", lambda x: A.rsub.Scalar(x, 4), rand(5, dtype=I32))
    division = t([7.0, -7.0, 1.0, 6.0, -6.0, 0.0, 5.5, 1e10]), t([2.0, 2.0, 0.1, 0.1, 3.0, 2.0, -INF, 0.3])
    for mode in (None, "floor", "trunc"):
        case("division", f"div_{mode}", lambda x, y, m=mode: A.div.Tensor_mode(x, y, rounding_mode=m), *division)
        case("division", f"div_{mode}_int", lambda x, y, m=mode: A.div.Tensor_mode(x, y, rounding_mode=m),
             rand(12, dtype=I32, low=-9, high=9), t([2, -2, 3] * 4, I32))
        case("division", f"div_{mode}_scalar", lambda x, m=mode: A.div.Scalar_mode(x, 0.7, rounding_mode=m), rand(9))
        case("division", f"div_{mode}_int_scalar", lambda x, m=mode: A.div.Scalar_mode(x, -3, rounding_mode=m), rand(9, dtype=I64))
        case("division", f"div_{mode}_f16", lambda x, y, m=mode: A.div.Tensor_mode(x, y, rounding_mode=m), *(x.to(F16) for x in division))
    case("division", "floor_divide", A.floor_divide.default, *division)
    case("division", "floor_divide_int", A.floor_divide.default, rand(9, dtype=I32), t([2, -2, 3] * 3, I32))
    case("division", "floor_by_zero", A.floor_divide.default, t([1.0, -1.0, 0.0]), t([0.0, 0.0, 0.0]))
    for name in ("fmod", "remainder"):
        op = getattr(A, name)
        case("division", name, op.Tensor, *division)
        case("division", name + "_int", op.Tensor, rand(12, dtype=I32, low=-9, high=9), t([2, -2, 3] * 4, I32))
        case("division", name + "_scalar", lambda x, op=op: op.Scalar(x, -0.7), rand(9))
        case("division", name + "_int_scalar", lambda x, op=op: op.Scalar(x, -2), rand(9, dtype=I32))
    case("pow", "pow", A.pow.Tensor_Tensor, rand(9, low=0), rand(9))
    case("pow", "pow_int", A.pow.Tensor_Tensor, rand(9, dtype=I32), rand(9, dtype=I32, low=0))
    case("pow", "pow_negative", A.pow.Tensor_Tensor, t([1, -1, 2, 3, -1], I64), t([-1, -3, -1, -2, -2], I64))
    case("pow", "pow_2", lambda x: A.pow.Tensor_Scalar(x, 2), rand(9))
    case("pow", "pow_half", lambda x: A.pow.Tensor_Scalar(x, 0.5), rand(9, low=0))
    case("pow", "pow_3_int", lambda x: A.pow.Tensor_Scalar(x, 3), rand(9, dtype=I32))
    case("pow", "pow_base", lambda x: A.pow.Scalar(2, x), rand(9))
    case("pow", "pow_base_int", lambda x: A.pow.Scalar(3, x), rand(9, dtype=I32, low=0))
    for name in ("and", "or", "xor"):
        op = getattr(A, "bitwise_" + name)
        case("bits", name, op.Tensor, rand(3, 4, dtype=I32), rand(4, dtype=I32))
        case("bits", name + "_bool", op.Tensor, rand(8, dtype=BOOL), rand(8, dtype=BOOL))
        case("bits", name + "_mixed", op.Tensor, rand(8, dtype=U8), rand(8, dtype=I8))
        case("bits", name + "_scalar", lambda x, op=op: op.Scalar(x, 5), rand(8, dtype=I64))
        logical = getattr(A, "logical_" + name).default
        case("bits", "logical_" + name, logical, rand(8, dtype=I32, low=-1, high=1), rand(8, low=0, high=0.1))
    for name in ("left", "right"):
        op = getattr(A, f"bitwise_{name}_shift")
        case("bits", name + "_shift", op.Tensor, t([1, -5, 100, 7, -8], I32), t([0, 1, 3, 31, 2], I32))
        case("bits", name + "_shift_u8", op.Tensor, t([1, 255, 100], U8), t([7, 1, 3], U8))
        case("bits", name + "_shift_scalar", lambda x, op=op: op.Tensor_Scalar(x, 2), rand(8, dtype=I64))
    for low, high in ((-1, 1), (None, 0.5), (-0.5, None), (2, -2)):
        case("clamp", f"clamp_{low}_{high}", lambda x, a=low, b=high: A.clamp.default(x, a, b), SPECIAL)
        case("clamp", f"clamp_{low}_{high}_i32", lambda x, a=low, b=high: A.clamp.default(x, a, b), rand(9, dtype=I32))
    case("clamp", "clamp_tensor", A.clamp.Tensor, rand(3, 4), rand(4, low=-1, high=0), rand(3, 1, low=0, high=1))
    case("clamp", "clamp_max", lambda x, y: A.clamp.Tensor(x, None, y), rand(3, 4), rand(4))
    case("clamp", "clamp_nan", A.clamp.Tensor, rand(3), t([NAN, -1.0, -1.0]), t([1.0, NAN, 1.0]))
    case("clamp", "hardtanh", lambda x: A.hardtanh.default(x, -0.5, 1.5), SPECIAL)
    case("clamp", "hardtanh_int", lambda x: A.hardtanh.default(x, -1, 2), rand(9, dtype=I32))
    case("where", "where", A.where.self, rand(3, 1, dtype=BOOL), rand(4), rand(3, 4))
    case("where", "where_mixed", A.where.self, rand(3, dtype=BOOL), rand(3, dtype=I32), rand(3))
    case("where", "where_bool", A.where.self, rand(9, dtype=BOOL), rand(9, dtype=BOOL), rand(9, dtype=BOOL))


def activation_cases():
    case("activation", "gelu", A.gelu.default, rand(3, 5, low=-6, high=6))
    case("activation", "gelu_tanh", lambda x: A.gelu.default(x, approximate="tanh"), rand(9))
    case("activation", "gelu_f16", A.gelu.default, rand(9, dtype=F16))
    case("activation", "leaky_relu", lambda x: A.leaky_relu.default(x, 0.3), SPECIAL)
    case("activation", "elu", lambda x: A.elu.default(x, 0.7), rand(9))
    case("activation", "selu", lambda x: A.elu.default(x, 1.6732632, 1.0507009), rand(9))
    case("activation", "elu_scaled", lambda x: A.elu.default(x, 0.7, 1.5, 0.5), rand(9))
    case("activation", "glu", lambda x: A.glu.default(x, 1), rand(3, 6, 2))
    case("activation", "glu_last", A.glu.default, rand(3, 8, dtype=F16))
    for name in ("_softmax", "_log_softmax"):
        op = getattr(A, name).default
        case("activation", name, lambda x, op=op: op(x, -1, False), rand(3, 7))
        case("activation", name + "_first", lambda x, op=op: op(x, 0, False), rand(3, 7, 2))
        case("activation", name + "_f16", lambda x, op=op: op(x, 1, False), rand(2, 5, dtype=F16))
        case("activation", name + "_scalar", lambda x, op=op: op(x, 0, False), rand())
        case("activation", name + "_large", lambda x, op=op: op(x, 0, False), t([1e4, -1e4, 1e4 + 1, -INF]))


def reduce_cases():
    x = rand(2, 3, 5)
    for name in ("sum", "mean"):
        op = getattr(A, name)
        dims = op.dim_IntList if name == "sum" else op.dim
        case("reduce", name, lambda x, d=dims: d(x, [1]), x)
        case("reduce", name + "_keep", lambda x, d=dims: d(x, [-1, 0], True), x)
        case("reduce", name + "_all", lambda x, d=dims: d(x, None), x)
        case("reduce", name + "_no_axes", lambda x, d=dims: d(x, []), x)
        case("reduce", name + "_scalar", lambda x, d=dims: d(x, [0]), rand())
        case("reduce", name + "_f16", lambda x, d=dims: d(x, [1]), rand(4, 9, dtype=F16))
        case("reduce", name + "_empty", lambda x, d=dims: d(x, [0]), rand(0, 3))
        case("reduce", name + "_dtype", lambda x, d=dims: d(x, [0], dtype=F32), rand(4, 3, dtype=I32))
    case("reduce", "sum_int", lambda x: A.sum.dim_IntList(x, [1]), rand(3, 4, dtype=I32))
    case("reduce", "sum_bool", lambda x: A.sum.dim_IntList(x, [0]), rand(5, 4, dtype=BOOL))
    case("reduce", "mean_full", A.mean.default, x)
    case("reduce", "prod", lambda x: A.prod.dim_int(x, 1), x)
    case("reduce", "prod_all", A.prod.default, rand(5))
    case("reduce", "prod_int", lambda x: A.prod.dim_int(x, 0, True), rand(3, 4, dtype=I32))
    ties = t([[1.0, 3.0, 3.0, -1.0], [NAN, 2.0, 5.0, NAN], [-INF, -INF, INF, 0.0]])
    for name in ("amax", "amin"):
        op = getattr(A, name).default
        case("reduce", name, lambda x, op=op: op(x, [1]), ties)
        case("reduce", name + "_keep", lambda x, op=op: op(x, [0, 2], True), x)
        case("reduce", name + "_all", lambda x, op=op: op(x), rand(3, 4, dtype=I32))
        case("reduce", name + "_bool", lambda x, op=op: op(x, [0]), rand(3, 4, dtype=BOOL))
        case("reduce", name + "_scalar", lambda x, op=op: op(x, [0]), rand())
    for name in ("argmax", "argmin"):
        op = getattr(A, name).default
        case("reduce", name, lambda x, op=op: op(x, 1), ties)
        case("reduce", name + "_keep", lambda x, op=op: op(x, -2, True), x)
        case("reduce", name + "_all", lambda x, op=op: op(x), x)
        case("reduce", name + "_int", lambda x, op=op: op(x, 0), rand(5, 3, dtype=I32))
        case("reduce", name + "_scalar", lambda x, op=op: op(x), rand())
    for name in ("max", "min"):
        op = getattr(A, name)
        case("reduce", name + "_dim", lambda x, op=op: op.dim(x, 1), ties)
        case("reduce", name + "_dim_keep", lambda x, op=op: op.dim(x, -1, True), x)
        case("reduce", name + "_dim_int", lambda x, op=op: op.dim(x, 0), rand(5, 3, dtype=I64))
        case("reduce", name + "_all", op.default, x)
    for name in ("any", "all"):
        op = getattr(A, name)
        case("reduce", name, op.default, rand(3, 4, dtype=BOOL))
        case("reduce", name + "_dim", lambda x, op=op: op.dim(x, 1), rand(3, 4, dtype=I32, low=-1, high=1))
        case("reduce", name + "_dims", lambda x, op=op: op.dims(x, [0, -1], True), rand(3, 4, 2, low=-1, high=1))
        case("reduce", name + "_float", lambda x, op=op: op.dim(x, 0, True), t([[0.0, 1.0], [0.0, NAN]]))
    case("reduce", "var", lambda x: A.var.correction(x, [1], correction=1), x)
    case("reduce", "var_default", lambda x: A.var.correction(x, [0, 2], keepdim=True), x)
    case("reduce", "var_0", lambda x: A.var.correction(x, None, correction=0), x)
    case("reduce", "var_biased", lambda x: A.var.dim(x, [1], False, True), x)
    case("reduce", "var_one", lambda x: A.var.correction(x, [0], correction=1), rand(1, 3))
    case("reduce", "var_f16", lambda x: A.var.correction(x, [0], correction=1), rand(7, 3, dtype=F16))
    case("reduce", "var_mean", lambda x: A.var_mean.correction(x, [1], correction=1), x)
    case("reduce", "cumsum", lambda x: A.cumsum.default(x, 1), x)
    case("reduce", "cumsum_int", lambda x: A.cumsum.default(x, -1), rand(3, 4, dtype=I32))
    case("reduce", "cumsum_scalar", lambda x: A.cumsum.default(x, 0), rand())
    distinct = torch.randperm(24).reshape(4, 6).to(F32)
    case("order", "topk", lambda x: A.topk.default(x, 3), distinct)
    case("order", "topk_smallest", lambda x: A.topk.default(x, 2, 0, False), distinct)
    case("order", "topk_nan", lambda x: A.topk.default(x, 2), t([1.0, NAN, 3.0, -INF]))
    case("order", "sort", A.sort.default, distinct)
    case("order", "sort_descending", lambda x: A.sort.default(x, 0, True), distinct)
    case("order", "sort_nan", A.sort.default, t([1.0, NAN, 3.0, -INF, INF]))
    case("order", "sort_int", A.sort.default, torch.randperm(9).to(I32))


def shape_cases():
    x = rand(2, 3, 4)
    add1 = lambda y: A.add.Scalar(y, 1)  # keeps a copy in the program
    case("shape", "view", lambda x: A.view_copy.default(x, [4, -1]), x)
    case("shape", "view_inside", lambda x: add1(A.view_copy.default(add1(x), [6, 4])), x)
    case("shape", "view_scalar", lambda x: A.view_copy.default(x, []), rand(1, 1))
    case("shape", "view_empty", lambda x: A.view_copy.default(x, [0, 5]), rand(5, 0))
    case("shape", "permute", lambda x: A.permute_copy.default(x, [2, 0, -2]), x)
    case("shape", "transpose", lambda x: A.transpose_copy.int(x, 0, -1), x)
    case("shape", "t", A.t_copy.default, rand(3, 5))
    case("shape", "t_vector", A.t_copy.default, rand(3))
    case("shape", "squeeze", lambda x: A.squeeze_copy.dim(x, 1), rand(2, 1, 3))
    case("shape", "squeeze_not", lambda x: A.squeeze_copy.dim(x, 0), rand(2, 1, 3))
    case("shape", "squeeze_dims", lambda x: A.squeeze_copy.dims(x, [0, -1, 1]), rand(1, 2, 1))
    case("shape", "unsqueeze", lambda x: A.unsqueeze_copy.default(x, -2), x)
    case("shape", "unsqueeze_end", lambda x: A.unsqueeze_copy.default(x, 3), x)
    case("shape", "expand", lambda x: A.expand_copy.default(x, [2, -1, 4]), rand(3, 1))
    case("shape", "expand_scalar", lambda x: A.expand_copy.default(x, [2, 3]), rand())
    for start, end, step in ((0, 3, 1), (1, None, 2), (-2, 100, 1), (None, -1, 1), (3, 2, 1)):
        case("shape", f"slice_{start}_{end}_{step}", lambda x, a=start, b=end, s=step: A.slice_copy.Tensor(x, 2, a, b, s), x)
        width = len(range(4)[start:end:step])
        case("shape", f"slice_scatter_{start}_{end}_{step}",
             lambda x, y, a=start, b=end, s=step: A.slice_scatter.default(x, y, 2, a, b, s), x, rand(2, 3, width))
    case("shape", "select", lambda x: A.select_copy.int(x, 1, 2), x)
    case("shape", "select_last", lambda x: A.select_copy.int(x, -1, -1), x)
    case("shape", "select_scatter", lambda x, y: A.select_scatter.default(x, y, 1, -1), x, rand(2, 4))
    case("shape", "narrow", lambda x: A.narrow_copy.default(x, 2, 1, 2), x)
    case("shape", "split", lambda x: A.split_copy.Tensor(x, 2, 1), x)
    case("shape", "split_sizes", lambda x: A.split_with_sizes_copy.default(x, [1, 0, 3], -1), x)
    case("shape", "unbind", lambda x: A.unbind_copy.int(x, 1), x)
    case("shape", "cat", lambda *xs: A.cat.default(xs, 1), x, rand(2, 1, 4), rand(2, 2, 4))
    case("shape", "cat_mixed", lambda *xs: A.cat.default(xs), rand(2, dtype=I32), rand(3))
    case("shape", "cat_nothing", lambda *xs: A.cat.default(xs), rand(2, 3), rand(0), rand(1, 3))
    case("shape", "stack", lambda *xs: A.stack.default(xs, -1), x, x + 1)
    case("shape", "unfold", lambda x: A.unfold_copy.default(x, 1, 2, 1), x)
    case("shape", "unfold_step", lambda x: A.unfold_copy.default(x, -1, 3, 2), rand(2, 8))
    case("shape", "as_strided", lambda x: A.as_strided_copy.default(x, [2, 3], [3, 1], 2), rand(4, 4))
    case("shape", "as_strided_overlap", lambda x: A.as_strided_copy.default(x, [3, 3], [1, 1]), rand(6))
    for offset in (0, 1, -2, 5):
        case("shape", f"diagonal_{offset}", lambda x, o=offset: A.diagonal_copy.default(x, o), rand(3, 5))
    case("shape", "diagonal_axes", lambda x: A.diagonal_copy.default(x, 1, 2, 0), x)
    case("shape", "pixel_shuffle", lambda x: A.pixel_shuffle.default(x, 2), rand(1, 8, 2, 3))
    case("shape", "pixel_shuffle_3d", lambda x: A.pixel_shuffle.default(x, 2), rand(4, 2, 3))
    case("shape", "pixel_unshuffle", lambda x: A.pixel_unshuffle.default(x, 2), rand(2, 1, 4, 6))
    case("copy", "to_f16", lambda x: A._to_copy.default(x, dtype=F16), x)
    case("copy", "to_i32", lambda x: A._to_copy.default(x, dtype=I32), x)
    case("copy", "to_bool", lambda x: A._to_copy.default(x, dtype=BOOL), t([0.0, 0.5, NAN, -1.0]))
    case("copy", "to_f32_from_i64", lambda x: A._to_copy.default(x, dtype=F32), rand(4, dtype=I64))
    case("copy", "to_u8", lambda x: A._to_copy.default(x, dtype=U8), t([0, 255, 256, -1], I32))
    case("copy", "clone", A.clone.default, x)
    case("copy", "channels_last", lambda x: A.add.Scalar(A.clone.default(x, memory_format=torch.channels_last), 1), rand(2, 3, 4, 5))
    case("copy", "copy", A.copy.default, rand(2, 3), rand(3))
    case("copy", "repeat", lambda x: A.repeat.default(x, [2, 1, 3, 1]), x)
    case("copy", "repeat_scalar", lambda x: A.repeat.default(x, [3]), rand())
    case("copy", "repeat_interleave", lambda r: A.repeat_interleave.Tensor(r, output_size=6), t([2, 0, 3, 1], I64))
    case("copy", "flip", lambda x: A.flip.default(x, [0, -1]), x)
    case("copy", "roll", lambda x: A.roll.default(x, [1, -2], [0, 2]), x)
    case("copy", "roll_flat", lambda x: A.roll.default(x, [5]), x)
    case("copy", "tril", lambda x: A.tril.default(x, 1), rand(2, 4, 5))
    case("copy", "tril_below", lambda x: A.tril.default(x, -1), rand(4, 3, dtype=I32))
    case("copy", "pad", lambda x: A.constant_pad_nd.default(x, [1, 2, 0, 3], 1.5), x)
    case("copy", "pad_crop", lambda x: A.constant_pad_nd.default(x, [-1, 2]), x)
    case("copy", "pad_int", lambda x: A.constant_pad_nd.default(x, [1, 1], 7), rand(3, dtype=I64))
    for name in ("reflection", "replication"):
        for rank in (1, 2, 3):
            op = getattr(A, f"{name}_pad{rank}d").default
            case("copy", f"{name}_{rank}", lambda x, op=op, r=rank: op(x, [1, 2] * r), rand(2, *[4, 3, 5][:rank]))


def index_cases():
    x = rand(4, 5, 6)
    i, j = t([0, 3, -1], I64), t([[1], [4]], I64)
    case("index", "one", lambda x, i: A.index.Tensor(x, [i]), x, i)
    case("index", "second", lambda x, i: A.index.Tensor(x, [None, i]), x, i)
    case("index", "two", lambda x, i, j: A.index.Tensor(x, [i, j]), x, i, j)
    case("index", "two_inner", lambda x, i, j: A.index.Tensor(x, [None, i, j]), x, i, j)
    case("index", "apart", lambda x, i, j: A.index.Tensor(x, [i, None, j]), x, i, j)
    case("index", "three", lambda x, i, j: A.index.Tensor(x, [i, j, i]), x, i, j)
    case("index", "i32", lambda x, i: A.index.Tensor(x, [i]), x, i.to(I32))
    case("index", "empty", lambda x, i: A.index.Tensor(x, [i]), x, i[:0])
    for accumulate in (False, True):
        put = lambda x, v, *i, a=accumulate: A.index_put.default(x, list(i), v, a)
        tag = "_add" if accumulate else ""
        case("index", "put" + tag, lambda x, v, i, p=put: p(x, v, i), x, rand(3, 5, 6), i)
        case("index", "put_broadcast" + tag, lambda x, v, i, p=put: p(x, v, None, i), x, rand(1), i)
        case("index", "put_two" + tag, lambda x, v, i, j, p=put: p(x, v, i, j), x, rand(2, 3, 6), i, j)
        case("index", "put_inner" + tag, lambda x, v, i, j, p=put: p(x, v, None, i, j), x, rand(4, 2, 3), i, j)
        case("index", "put_apart" + tag, lambda x, v, i, j, p=put: p(x, v, i, None, j), x, rand(2, 3, 5), i, j)
    case("index", "put_add_twice", lambda x, v, i: A.index_put.default(x, [i], v, True), rand(4), rand(5), t([1, 1, 0, 1, 3], I64))
    case("index", "put_mask", lambda x, v, m: A.index_put.default(x, [m], v), rand(3, 4), rand(1), rand(3, 4, dtype=BOOL))
    case("index", "index_select", lambda x, i: A.index_select.default(x, 1, i), x, t([4, 0, 0], I64))
    case("index", "index_select_i32", lambda x, i: A.index_select.default(x, -1, i), x, t([1], I32))
    case("index", "embedding", A.embedding.default, rand(7, 3), t([[0, 6], [2, 2]], I64))
    case("index", "masked_fill", lambda x, m: A.masked_fill.Scalar(x, m, -INF), rand(2, 3, 4), rand(3, 4, dtype=BOOL))
    case("index", "masked_fill_int", lambda x, m: A.masked_fill.Scalar(x, m, 7), rand(3, dtype=I64), rand(3, dtype=BOOL))
    case("index", "masked_scatter", A.masked_scatter.default, rand(3, 4), rand(3, 4, dtype=BOOL), rand(12))
    case("index", "masked_scatter_broadcast", A.masked_scatter.default, rand(3, 4), rand(4, dtype=BOOL), rand(3, 5))
    case("scatter", "gather", lambda x, i: A.gather.default(x, 1, i), rand(3, 4), t([[0, 3, 1], [2, 2, 0]], I64))
    case("scatter", "gather_first", lambda x, i: A.gather.default(x, 0, i), rand(3, 4), t([[0, 2, 1]], I64))
    places = t([[0, 2, 1], [2, 2, 0]], I64)
    case("scatter", "src", lambda x, i, s: A.scatter.src(x, 0, i, s), rand(3, 5), t([[0, 2, 1], [1, 0, 2]], I64), rand(2, 3))
    case("scatter", "src_larger", lambda x, i, s: A.scatter.src(x, 1, i, s), rand(3, 5), t([[0, 2], [4, 3]], I64), rand(3, 4))
    case("scatter", "value", lambda x, i: A.scatter.value(x, 1, i, 2.5), rand(3, 5), places)
    case("scatter", "add", lambda x, i, s: A.scatter_add.default(x, 1, i, s), rand(3, 5), places, rand(2, 3))
    case("scatter", "add_int", lambda x, i, s: A.scatter_add.default(x, 0, i, s), rand(3, 5, dtype=I32), places, rand(2, 3, dtype=I32))
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include in (True, False):
            for dtype in (F32, I32):
                case("scatter", f"reduce_{reduce}_{include}_{'f' if dtype == F32 else 'i'}",
                     lambda x, i, s, r=reduce, n=include: A.scatter_reduce.two(x, 1, i, s, r, include_self=n),
                     rand(3, 5, dtype=dtype), places, rand(2, 3, dtype=dtype))


def create_cases():
    x = rand(2, 3)
    plus = lambda x, y: A.add.Tensor(A.sum.dim_IntList(x, None), y)
    case("create", "full", lambda x: plus(x, A.full.default([2, 3], 1.5)), x)
    case("create", "full_int", lambda x: plus(x, A.full.default([2], 7)), x)
    case("create", "full_like", lambda x: A.full_like.default(x, 2.5), x)
    case("create", "full_like_dtype", lambda x: A.full_like.default(x, 3, dtype=I64), x)
    case("create", "zeros", lambda x: plus(x, torch.zeros(2, 2)), x)
    case("create", "ones", lambda x: plus(x, torch.ones(2, 2)), x)
    case("create", "fill", lambda x: A.fill.Scalar(x, 3.5), x)
    case("create", "fill_tensor", A.fill.Tensor, x, rand())
    case("create", "arange", lambda x: plus(x, torch.arange(5)), x)
    case("create", "arange_float", lambda x: plus(x, torch.arange(0.0, 1.0, 0.1)), x)
    case("create", "arange_down", lambda x: plus(x, torch.arange(7, -3, -2)), x)
    case("create", "scalar_tensor", lambda x: plus(x, torch.scalar_tensor(2.5)), x)


def build():
    torch.manual_seed(20261)
    for family in (math_cases, activation_cases, reduce_cases, shape_cases, index_cases, create_cases, nn_cases, pool_cases,
                   resize_cases, linalg_cases, more_cases, backward_cases, quantized_cases, dynamic_cases):
        family()
    return CASES
