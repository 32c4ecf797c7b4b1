# SPDX-License-Identifier: Apache-2.0
"""Calls of torch's operators: layers, gradients, quantized operators, and shapes that change."""
import torch

from aten_case import A, F16, F32, F64, I16, I32, I64, I8, INF, NAN, Q, U8, case, dynamic, rand, t


def nn_cases():
    def conv(name, x, w, bias=True, stride=1, padding=0, dilation=1, transposed=False, out_padding=0, groups=1):
        n = x.dim() - 2
        outputs = w.shape[1] * groups if transposed else w.shape[0]
        function = lambda x, w, b=None: A.convolution.default(x, w, b, [stride] * n, [padding] * n, [dilation] * n, transposed,
                                                              [out_padding] * n, groups)
        case("conv", name, function, x, w, *([rand(outputs)] if bias else []))

    conv("conv1d", rand(2, 3, 9), rand(4, 3, 3), stride=2, padding=1)
    conv("conv2d", rand(1, 3, 7, 6), rand(4, 3, 3, 3), padding=1)
    conv("conv2d_plain", rand(2, 2, 5, 5), rand(3, 2, 2, 3), bias=False, stride=2, dilation=2)
    conv("depthwise", rand(1, 4, 6, 6), rand(8, 1, 3, 3), groups=4)
    conv("grouped", rand(1, 4, 6, 6), rand(6, 2, 3, 3), groups=2, padding=1)
    conv("transposed", rand(1, 3, 4, 5), rand(3, 2, 3, 3), stride=2, padding=1, transposed=True, out_padding=1)
    conv("transposed_grouped", rand(1, 4, 4, 3), rand(4, 2, 2, 2), stride=2, transposed=True, groups=2, bias=False)
    conv("transposed1d", rand(1, 3, 5), rand(3, 2, 4), stride=3, transposed=True)
    channels = rand(3, low=0.5, high=2)
    case("norm", "batch", lambda x, w, b, m, v: A._native_batch_norm_legit_no_training.default(x, w, b, m, v, 0.1, 1e-3)[0],
         rand(2, 3, 4, 5), rand(3), rand(3), rand(3), channels)
    case("norm", "batch_plain", lambda x, m, v: A._native_batch_norm_legit_no_training.default(x, None, None, m, v, 0.1, 1e-5)[0],
         rand(2, 3), rand(3), channels)
    case("norm", "batch_no_stats", lambda x, w, b: A._native_batch_norm_legit.no_stats(x, w, b, True, 0.1, 1e-5),
         rand(2, 3, 4), rand(3), rand(3))
    case("norm", "layer", lambda x, w, b: A.native_layer_norm.default(x, [5], w, b, 1e-5), rand(2, 3, 5), rand(5), rand(5))
    case("norm", "layer_2", lambda x, w: A.native_layer_norm.default(x, [3, 5], w, None, 1e-3), rand(2, 3, 5), rand(3, 5))
    case("norm", "layer_f16", lambda x, w, b: A.native_layer_norm.default(x, [8], w, b, 1e-5)[0],
         rand(3, 8, dtype=F16), rand(8, dtype=F16), rand(8, dtype=F16))
    case("norm", "group", lambda x, w, b: A.native_group_norm.default(x, w, b, 2, 4, 6, 2, 1e-5), rand(2, 4, 2, 3), rand(4), rand(4))
    case("norm", "group_plain", lambda x: A.native_group_norm.default(x, None, None, 1, 6, 3, 3, 1e-5), rand(1, 6, 3))


def pool_cases():
    x = rand(2, 3, 7, 9)
    case("pool", "max", lambda x: A.max_pool2d_with_indices.default(x, [3, 2], [2, 2], [1, 0]), x)
    case("pool", "max_ceil", lambda x: A.max_pool2d_with_indices.default(x, [2, 2], [2, 2], [0, 0], [1, 1], True), x)
    case("pool", "max_ceil_padded", lambda x: A.max_pool2d_with_indices.default(x, [3, 3], [2, 2], [1, 1], [1, 1], True), x)
    case("pool", "max_dilated", lambda x: A.max_pool2d_with_indices.default(x, [2, 2], [1, 1], [0, 0], [2, 3]), x)
    case("pool", "max_default", lambda x: A.max_pool2d_with_indices.default(x, [3, 3]), rand(3, 6, 7))
    for ceil in (False, True):
        for include in (False, True):
            case("pool", f"avg_{ceil}_{include}",
                 lambda x, c=ceil, i=include: A.avg_pool2d.default(x, [3, 2], [2, 2], [1, 1], c, i), x)
        case("pool", f"avg_divisor_{ceil}", lambda x, c=ceil: A.avg_pool2d.default(x, [3, 2], [2, 2], [1, 1], c, True, 7), x)
    case("pool", "avg_default", lambda x: A.avg_pool2d.default(x, [2, 3]), rand(3, 6, 7))
    case("pool", "adaptive", lambda x: A._adaptive_avg_pool2d.default(x, [1, 1]), x)
    case("pool", "adaptive_even", lambda x: A._adaptive_avg_pool2d.default(x, [7, 3]), x)
    case("pool", "adaptive_odd", lambda x: A._adaptive_avg_pool2d.default(x, [3, 4]), x)
    case("pool", "adaptive_3d", lambda x: A._adaptive_avg_pool2d.default(x, [2, 1]), rand(3, 7, 9))


def resize_cases():
    x = rand(1, 2, 4, 5)
    for align in (False, True):
        case("resize", f"bilinear_{align}", lambda x, a=align: A.upsample_bilinear2d.vec(x, [7, 3], a, None), x)
        case("resize", f"bilinear_scale_{align}", lambda x, a=align: A.upsample_bilinear2d.vec(x, None, a, [1.7, 2.3]), x)
        for mode in (0, 1, 2):
            for padding in (0, 1, 2):
                case("resize", f"grid_{mode}_{padding}_{align}",
                     lambda x, g, m=mode, p=padding, a=align: A.grid_sampler_2d.default(x, g, m, p, a),
                     x, rand(1, 3, 4, 2, low=-1.4, high=1.4))
    case("resize", "nearest", lambda x: A.upsample_nearest2d.vec(x, [7, 3], None), x)
    case("resize", "nearest_up", lambda x: A.upsample_nearest2d.vec(x, [12, 15], None), x)
    case("resize", "nearest_scale", lambda x: A.upsample_nearest2d.vec(x, None, [1.7, 2.3]), x)
    case("resize", "nearest_twice", lambda x: A.upsample_nearest2d.vec(x, None, [2.0, 2.0]), x)
    case("resize", "antialias", lambda x: A._upsample_bilinear2d_aa.default(x, [3, 2], False), rand(1, 2, 8, 9))
    case("resize", "antialias_up", lambda x: A._upsample_bilinear2d_aa.default(x, [9, 11], False), rand(1, 2, 4, 5))


def linalg_cases():
    case("linalg", "mm", A.mm.default, rand(3, 4), rand(4, 5))
    case("linalg", "mm_int", A.mm.default, rand(3, 4, dtype=I32), rand(4, 5, dtype=I32))
    case("linalg", "mm_f16", A.mm.default, rand(3, 4, dtype=F16), rand(4, 5, dtype=F16))
    case("linalg", "bmm", A.bmm.default, rand(2, 3, 4), rand(2, 4, 5))
    case("linalg", "addmm", A.addmm.default, rand(5), rand(3, 4), rand(4, 5))
    case("linalg", "addmm_scaled", lambda a, b, c: A.addmm.default(a, b, c, beta=0.5, alpha=2), rand(3, 5), rand(3, 4), rand(4, 5))
    case("linalg", "addmm_no_bias", lambda a, b, c: A.addmm.default(a, b, c, beta=0), t([[NAN]]), rand(3, 4), rand(4, 5))
    for p in (0.0, 1.0, 2.0, 3.0, INF):
        case("linalg", f"cdist_{p}", lambda a, b, p=p: A._cdist_forward.default(a, b, p, None), rand(2, 3, 4), rand(2, 5, 4))
        case("linalg", f"pdist_{p}", lambda a, p=p: A._pdist_forward.default(a, p), rand(4, 3))


def more_cases():
    """Operators that are decomposed unless a program asks to keep them."""
    x = rand(2, 3, 4)
    for name in "exp2 hardsigmoid hardswish mish silu isfinite square".split():
        case("more", name, getattr(A, name).default, rand(9))
    case("more", "softplus", lambda x: A.softplus.default(x, 2, 3), rand(9))
    case("more", "threshold", lambda x: A.threshold.default(x, 0.5, 7), rand(9))
    case("more", "addcmul", lambda a, b, c: A.addcmul.default(a, b, c, value=0.5), rand(3, 4), rand(4), rand(3, 1))
    case("more", "addcdiv", lambda a, b, c: A.addcdiv.default(a, b, c, value=2), rand(3, 4), rand(4), rand(3, 1))
    for name in ("clamp_min", "clamp_max"):
        op = getattr(A, name)
        case("more", name, lambda x, op=op: op.default(x, 0.5), rand(9))
        case("more", name + "_tensor", op.Tensor, rand(3, 4), rand(4))
    case("more", "remainder_base", lambda x: A.remainder.Scalar_Tensor(7, x), t([2, -2, 3], I32))
    case("more", "aminmax", lambda x: A.aminmax.default(x, dim=1), x)
    case("more", "aminmax_all", A.aminmax.default, x)
    case("more", "cumprod", lambda x: A.cumprod.default(x, 1), x)
    case("more", "logsumexp", lambda x: A.logsumexp.default(x, [1, -1], True), x)
    for order in (0, 1, 2, 3.5, INF, -INF):
        case("more", f"vector_norm_{order}", lambda x, o=order: A.linalg_vector_norm.default(x, o, [1]), x)
    case("more", "norm", lambda x: A.norm.ScalarOpt_dim(x, 3, [0, 2], True), x)
    case("more", "std", lambda x: A.std.correction(x, [1], correction=1), x)
    case("more", "sum_all", A.sum.default, rand(3, 4, dtype=I32))
    case("more", "sort_stable", lambda x: A.sort.stable(x, stable=True, dim=0), t([3.0, 1.0, 3.0, 1.0, 2.0]))
    case("more", "triu", lambda x: A.triu.default(x, 1), rand(4, 5))
    case("more", "squeeze_all", A.squeeze_copy.default, rand(1, 2, 1))
    case("more", "conj", A._conj_physical.default, rand(3))
    case("more", "baddbmm", lambda a, b, c: A.baddbmm.default(a, b, c, beta=0.5, alpha=2), rand(2, 1, 5), rand(2, 3, 4), rand(2, 4, 5))
    case("more", "linear", A.linear.default, rand(2, 3, 4), rand(5, 4), rand(5))
    case("more", "matmul", A.matmul.default, rand(2, 3, 4), rand(4, 5))
    case("more", "attention", lambda q, k, v: A._scaled_dot_product_flash_attention_for_cpu.default(q, k, v)[0],
         rand(1, 2, 5, 4), rand(1, 2, 5, 4), rand(1, 2, 5, 4))
    case("more", "attention_causal", lambda q, k, v: A._scaled_dot_product_flash_attention_for_cpu.default(q, k, v, 0.0, True)[0],
         rand(1, 2, 5, 4), rand(1, 2, 5, 4), rand(1, 2, 5, 4))
    case("more", "avg_pool1d", lambda x: A.avg_pool1d.default(x, [3], [2], [1]), rand(2, 3, 9))
    case("more", "avg_pool3d", lambda x: A.avg_pool3d.default(x, [2, 3, 2], [2, 1, 2], [1, 1, 0], True, False), rand(2, 3, 5, 6, 4))
    case("more", "max_pool3d", lambda x: A.max_pool3d_with_indices.default(x, [2, 3, 2], [1, 2, 1], [1, 1, 0]), rand(2, 3, 5, 6, 4))
    case("more", "adaptive_1d", lambda x: A.adaptive_avg_pool1d.default(x, [4]), rand(2, 3, 9))
    case("more", "adaptive_3d", lambda x: A._adaptive_avg_pool3d.default(x, [2, 3, 2]), rand(2, 3, 5, 6, 4))
    for align in (False, True):
        case("more", f"bilinear_{align}", lambda x, a=align: A.upsample_bilinear2d.default(x, [7, 3], a), rand(1, 2, 4, 5))
        case("more", f"bicubic_{align}", lambda x, a=align: A.upsample_bicubic2d.default(x, [7, 9], a), rand(1, 2, 4, 5))
        case("more", f"linear_{align}", lambda x, a=align: A.upsample_linear1d.default(x, [9], a), rand(1, 2, 5))
    case("more", "nearest1d", lambda x: A.upsample_nearest1d.default(x, [9]), rand(1, 2, 4))
    case("more", "nearest2d", lambda x: A.upsample_nearest2d.default(x, [9, 4], 2.3, 0.9), rand(1, 2, 4, 5))
    case("more", "nearest3d", lambda x: A.upsample_nearest3d.default(x, [3, 4, 7]), rand(1, 2, 4, 5, 3))
    case("more", "col2im", lambda x: A.col2im.default(x, [4, 5], [2, 3], [1, 1], [1, 0], [2, 1]), rand(2, 12, 9))
    case("more", "im2col", lambda x: A.im2col.default(x, [2, 3], [1, 2], [1, 0], [2, 1]), rand(2, 2, 4, 7))
    case("more", "rfft", lambda x: A.view_as_real_copy.default(A._fft_r2c.default(x, [1], 0, True)), rand(3, 8))
    case("more", "rfft_full", lambda x: A.view_as_real_copy.default(A._fft_r2c.default(x, [0, 1], 1, False)), rand(3, 5))
    case("more", "irfft", lambda x: A._fft_c2r.default(A._fft_r2c.default(x, [1], 0, True), [1], 2, 8), rand(3, 8))
    case("more", "irfft_odd", lambda x: A._fft_c2r.default(A._fft_r2c.default(x, [1], 0, True), [1], 2, 7), rand(3, 7))
    case("more", "fft", lambda x: A.view_as_real_copy.default(
        A._fft_c2c.default(A._fft_r2c.default(x, [1], 0, True), [0], 2, False)), rand(3, 8))
    weights, bag = rand(6, 3), t([1, 2, 4, 5, 4, 3, 0], I64)
    for mode in (0, 1):
        case("more", f"embedding_bag_{mode}", lambda w, i, o, m=mode: A._embedding_bag.default(w, i, o, False, m)[0],
             weights, bag, t([0, 3, 3, 5], I64))
    case("more", "embedding_bag_weights",
         lambda w, i, o, s: A._embedding_bag.default(w, i, o, False, 0, False, s, True)[0], weights, bag, t([0, 4, 7], I64), rand(7))
    case("more", "dropout_off", lambda x: A.native_dropout.default(x, 0.5, False), x)


def backward_cases():
    x, w, gradient = rand(2, 4, 6, 5), rand(6, 2, 3, 3), rand(2, 6, 6, 5)
    mask = [True, True, True]
    conv = lambda g, x, w: A.convolution_backward.default(g, x, w, [6], [1, 1], [1, 1], [1, 1], False, [0, 0], 2, mask)
    case("backward", "conv", conv, gradient, x, w)
    case("backward", "conv_transposed",
         lambda g, x, w: A.convolution_backward.default(g, x, w, [4], [2, 2], [1, 1], [1, 1], True, [0, 0], 1, mask),
         rand(1, 4, 7, 5), rand(1, 3, 4, 3), rand(3, 4, 3, 3))
    case("backward", "layer_norm",
         lambda g, x, w, b: A.native_layer_norm_backward.default(g, x, [4], *A.native_layer_norm.default(x, [4], w, b, 1e-5)[1:], w, b, mask),
         rand(2, 3, 4), rand(2, 3, 4), rand(4), rand(4))
    case("backward", "group_norm",
         lambda g, x, w, b: A.native_group_norm_backward.default(
             g, x, *A.native_group_norm.default(x, w, b, 2, 4, 6, 2, 1e-5)[1:], w, 2, 4, 6, 2, mask),
         rand(2, 4, 2, 3), rand(2, 4, 2, 3), rand(4), rand(4))
    case("backward", "max_pool",
         lambda g, x: A.max_pool2d_with_indices_backward.default(
             g, x, [3, 3], [2, 2], [1, 1], [1, 1], False, A.max_pool2d_with_indices.default(x, [3, 3], [2, 2], [1, 1])[1]),
         rand(2, 3, 3, 4), rand(2, 3, 6, 7))
    case("backward", "avg_pool", lambda g, x: A.avg_pool2d_backward.default(g, x, [3, 2], [2, 2], [1, 1], False, False, None),
         rand(2, 3, 3, 4), rand(2, 3, 6, 7))
    case("backward", "adaptive", A._adaptive_avg_pool2d_backward.default, rand(2, 3, 3, 2), rand(2, 3, 6, 4))
    case("backward", "embedding", lambda g, i: A.embedding_dense_backward.default(g, i, 5, -1, False), rand(2, 3, 4), t([[0, 4, 0], [1, 2, 0]], I64))
    case("backward", "embedding_padding", lambda g, i: A.embedding_dense_backward.default(g, i, 5, 0, False), rand(3, 4), t([0, 4, 0], I64))


def quantized_cases():
    x = rand(4, 6)
    q8 = rand(4, 6, dtype=I8, low=-128, high=127)
    q, d = Q.quantize_per_tensor, Q.dequantize_per_tensor
    case("quantized", "quantize", lambda x: q.default(x, 0.037, 3, -128, 127, I8), x)
    case("quantized", "quantize_narrow", lambda x: q.default(x, 0.5, 8, 0, 15, U8), x)
    case("quantized", "quantize_i16", lambda x: q.default(x, 1e-3, 0, -32768, 32767, I16), x)
    case("quantized", "dequantize", lambda x: d.default(x, 0.037, 3, -128, 127, I8), q8)
    case("quantized", "quantize_tensor", lambda x, s, z: q.tensor(x, s, z, -128, 127, I8), x, t(0.037, F64), t(3, I64))
    case("quantized", "dequantize_tensor", lambda x, s, z: d.tensor(x, s, z, -128, 127, I8), q8, t(0.037, F64), t(3, I64))
    scales, zeros = rand(6, low=0.01, high=0.1), rand(6, dtype=I64)
    case("quantized", "per_channel", lambda x, s, z: Q.quantize_per_channel.default(x, s, z, 1, -128, 127, I8), x, scales, zeros)
    case("quantized", "from_channel", lambda x, s, z: Q.dequantize_per_channel.default(x, s, z, 1, -128, 127, I8), q8, scales, zeros)
    case("quantized", "from_channel_0", lambda x, s: Q.dequantize_per_channel.default(x, s, None, 0, -128, 127, I8), q8, scales[:4])
    case("quantized", "choose", lambda x: Q.choose_qparams.tensor(x, -128, 127, 1e-5, I8), x)
    case("quantized", "per_token", lambda x: Q.choose_qparams_per_token_asymmetric.default(x, I8), x)
    tokens, offsets = rand(4, 1, low=0.01, high=0.1, dtype=F64), rand(4, 1, dtype=I64)
    case("quantized", "to_token", lambda x, s, z: Q.quantize_per_token.default(x, s, z, -128, 127, I8), x, tokens, offsets)
    case("quantized", "from_token", lambda x, s, z: Q.dequantize_per_token.default(x, s, z, -128, 127, I8, F32), q8, tokens, offsets)
    indices = t([[3, 0], [1, 1]], I64)
    rows, groups, ints = rand(4, low=0.01, high=0.1), rand(4, 2, low=0.01, high=0.1), rand(4, 2, dtype=I32).to(F32)
    case("quantized", "embedding_byte", lambda w, s, i: Q.embedding_byte.default(w, s, None, -128, 127, i), q8, rows, indices)
    case("quantized", "embedding_byte_groups", lambda w, s, z, i: Q.embedding_byte.default(w, s, z, -128, 127, i), q8, groups, ints, indices)
    bytes_ = rand(4, 4, dtype=U8, low=0, high=255)
    case("quantized", "embedding_4bit", lambda w, s, z, i: Q.embedding_4bit.default(w, s, z, -8, 7, i), bytes_, groups, ints, indices)
    case("quantized", "embedding_2bit", lambda w, s, i: Q.embedding_2bit.default(w, s, None, -2, 1, i), bytes_, groups, indices)


def dynamic_cases():
    """Shapes that are known only when the program runs: sizes are computed by instructions."""
    n, m = torch.export.Dim("n", min=4, max=16), torch.export.Dim("m", min=2, max=16)
    one = lambda name, f, *inputs, run: dynamic(name, f, inputs, tuple({0: n} for _ in inputs), run)
    one("add", lambda x, y: x + y * 2, rand(4, 3), rand(4, 3), run=(rand(7, 3), rand(7, 3)))
    one("view", lambda x: x.view(x.shape[0], -1) + 1, rand(4, 3, 2), run=(rand(5, 3, 2),))
    one("flatten", lambda x: (x + 1).reshape(-1) * 2, rand(4, 3), run=(rand(9, 3),))
    one("merge", lambda x: (x + 1).view(x.shape[0] * 3, 2), rand(4, 3, 2), run=(rand(6, 3, 2),))
    one("slice", lambda x: x[1:] * 2, rand(4, 3), run=(rand(8, 3),))
    one("expand", lambda x: x.sum(0, keepdim=True).expand(x.shape[0], 3) + x, rand(4, 3), run=(rand(5, 3),))
    one("zeros", lambda x: torch.zeros(x.shape[0], 2) + x, rand(4, 2), run=(rand(6, 2),))
    one("arange", lambda x: torch.arange(x.shape[0]) + x.sum(), rand(4), run=(rand(7),))
    one("cat", lambda x, y: torch.cat([x, y]), rand(4, 3), rand(4, 3), run=(rand(5, 3), rand(5, 3)))
    one("mean", lambda x: x.mean(0), rand(4, 3), run=(rand(11, 3),))
    one("var", lambda x: x.var(0), rand(4, 3), run=(rand(11, 3),))
    one("softmax", lambda x: torch.softmax(x, 0), rand(4, 3), run=(rand(6, 3),))
    one("scaled", lambda x: x * x.shape[0], rand(4, 3), run=(rand(6, 3),))
    one("layer_norm", lambda x: torch.nn.functional.layer_norm(x, [3]), rand(4, 3), run=(rand(6, 3),))
    one("linear", lambda x: torch.nn.functional.linear(x, torch.ones(2, 3)), rand(4, 3), run=(rand(9, 3),))
    one("conv", lambda x: torch.nn.functional.conv2d(x, torch.ones(2, 3, 3, 3), padding=1), rand(4, 3, 5, 5), run=(rand(5, 3, 5, 5),))
    one("index", lambda x: x[torch.tensor([1, 0, 1])], rand(4, 3), run=(rand(5, 3),))
    one("attention", lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v),
        rand(4, 2, 5, 4), rand(4, 2, 5, 4), rand(4, 2, 5, 4), run=(rand(5, 2, 5, 4), rand(5, 2, 5, 4), rand(5, 2, 5, 4)))
    dynamic("two", lambda x, y: x @ y, (rand(4, 5), rand(5, 3)), ({0: n, 1: m}, {0: m}), (rand(7, 2), rand(2, 3)))
    dynamic("sizes", lambda x: x.view(x.shape[1], x.shape[0]) + x.shape[0] * x.shape[1], (rand(4, 5),), ({0: n, 1: m},), (rand(6, 7),))
