// SPDX-License-Identifier: Apache-2.0
#include "lowering/definitions.h"

#include <sstream>
#include <stdexcept>
#include <unordered_map>

namespace anymps::lowering {

namespace {

// clang-format off
constexpr DefinitionText kDefinitions[] = {
    // Optional tensors, types and formats.
    {"scaled", "x factor", "if(is_one(factor), x, x * factor)"},
    {"like_if", "a x", "if(has(a), like(a, x), none)"},
    {"shaped", "a shape", "if(has(a), reshaped(a, shape), none)"},
    {"wide_type", "t", "if(or(same_type(t, f16), same_type(t, bf16)), f32, t)"},
    {"scalar", "x", "reshaped(x, [])"},
    {"channel_axis", "x format", "if(same(layout(format), 'channels_last'), rank(x) - 1, min(1, rank(x) - 1))"},
    {"first_format", "x format", "if(same(layout(format), 'channels_last'), transposed(x, join(0, rank(x) - 1, range_of(1, rank(x) - 1))), x)"},
    {"back_format", "x format", "if(same(layout(format), 'channels_last'), transposed(x, join(0, range_of(2, rank(x)), 1)), x)"},
    {"sampling", "mode", "if(same(mode, 'nearest'), 'nearest', 'linear')"},
    {"outside", "mode", "if(same(mode, 'zeros'), 'constant', mode)"},
    {"border", "mode", "if(same(mode, 'replicate'), 'edge', if(same(mode, 'circular'), 'wrap', mode))"},
    {"reduction", "name", "if(same(name, 'assign'), 'set', if(same(name, 'multiply'), 'mul', if(same(name, 'amin'), 'min', if(same(name, 'amax'), 'max', name))))"},
    {"reduced", "x how", "if(same(how, 'mean'), reduce_mean(x, keep_dims=false), if(same(how, 'sum'), reduce_sum(x, keep_dims=false), if(same(how, 'batchmean'), reduce_sum(x, keep_dims=false) / dim(x, 0), x)))"},
    {"conjugated", "x", "if(is_complex(x), conjugate(x), x)"},
    // Complex numbers.
    {"real_of", "x", "if(is_complex(x), real_part(x), x)"},
    {"direction", "x", "r = complex_abs(x); x / like(where(r == 0, 1, r), x)"},
    {"angle_gradient", "x dout", "a = real_part(x); b = imaginary_part(x); r = a * a + b * b; g = where(r == 0, 0, like(dout, r) / where(r == 0, 1, r)); make_complex(neg(b) * g, a * g)"},
    {"complex_near", "x y rtol atol equal_nan", "d = complex_abs(x - y); close = logical_or(x == y, d <= complex_abs(y) * rtol + atol); n = logical_and(is_nan(complex_abs(x)), is_nan(complex_abs(y))); if(equal_nan, logical_or(close, n), close)"},
    // Matrices: the last two axes.
    {"adjoint", "x", "transposed(conjugated(x), swapped_last(rank(x)))"},
    {"inner", "x dx", "reduce_sum(x * like(dx, x), keep_dims=false)"},
    {"as_row", "x", "reshaped(x, join(part(dims(x), 0, -1), 1, dim(x, -1)))"},
    {"as_column", "x", "reshaped(x, join(dims(x), 1))"},
    {"stacked_at", "x i", "slice(x, starts=[i], ends=[i + 1], axes=[0])"},
    {"diagonal_of", "x", "eye_like(filled([dim(x, -1), dim(x, -1)], 0.0, f32), dtype=bool)"},
    {"sum_of_given", "a b", "if(has(a), if(has(b), a + b, a), b)"},
    {"skewed", "x", "x - adjoint(x)"},
    {"columns_up_to", "x n", "if(has(x), if(dim(x, -1) == n, x, slice(x, starts=[0], ends=[n], axes=[-1])), none)"},
    {"rows_up_to", "x n", "if(has(x), if(dim(x, -2) == n, x, slice(x, starts=[0], ends=[n], axes=[-2])), none)"},
    {"svd_gradient", "u v s du dv ds", "t = like(s, u); d = diagonal_of(s); e = where(d, 1, as_row(t * t) - as_column(t * t)); a = if(has(du), skewed(matmul(adjoint(u), du)), none); b = if(has(dv), skewed(matmul(v, adjoint(dv))), none); m = sum_of_given(sum_of_given(if(has(du), a / e * as_row(t), none), if(has(dv), as_column(t) * (b / e), none)), if(has(ds), where(d, like(as_row(ds), u), 0), none)); n = if(and(is_complex(u), and(has(du), has(dv))), m + where(d, a / (as_row(t) * 2), 0), m); g = matmul(matmul(u, n), v); h = if(and(has(du), dim(u, -2) > dim(u, -1)), g + matmul((du - matmul(u, matmul(adjoint(u), du))) / as_row(t), v), g); if(and(has(dv), dim(v, -1) > dim(v, -2)), h + matmul(u, (dv - matmul(matmul(dv, adjoint(v)), v)) / as_column(t)), h)"},
    {"eig_gradient_of", "w v dw dv", "h = adjoint(v); d = diagonal_of(v); m = if(has(dv), matmul(h, dv), none); r = if(has(dv), (m - matmul(h, v) * like(as_row(diagonal(real_part(m), axis1=-2, axis2=-1)), v)) / where(d, 1, conjugate(as_row(w) - as_column(w))), none); matmul(inverse(h), matmul(sum_of_given(r, if(has(dw), where(d, as_row(dw), 0), none)), h))"},
    {"lu_solve_gradients", "lu pivots y dy adjoint", "db = lu_solve(lu, pivots, dy, adjoint=not(adjoint)); p, l, u = lu_unpack(lu, pivots); t = matmul(p, if(adjoint, matmul(y, db, transpose_b=true), matmul(db, y, transpose_b=true)), transpose_a=true); db, neg(trilu(matmul(t, u, transpose_b=true), k=-1, upper=false) + trilu(matmul(l, t, transpose_a=true), upper=true))"},
    {"spectrum", "x hermitian", "if(hermitian, eigenvalue_sizes(x), svd_values(x))"},
    {"eigenvalue_sizes", "x", "w, v = eigh(x); abs(w)"},
    {"largest_of", "s", "reduce_max(s, axes=[-1], keep_dims=true)"},
    {"rank_precision", "x", "if(or(same_type(dtype(x), f64), same_type(dtype(x), c128)), 2.220446049250313e-16, 1.1920928955078125e-7) * max(dim(x, -1), dim(x, -2))"},
    {"rank_above", "s least", "reduce_sum(to(s > least, i64), axes=[-1], keep_dims=false)"},
    // Fourier transforms, as NumPy names their scalings.
    {"fft_scaled", "norm forward", "if(same(norm, 'ortho'), 'unitary', if(same(norm, if(forward, 'forward', 'backward')), 'size', 'none'))"},
    {"fft_whole", "x axes norm forward", "fft(x, axes=axes, inverse=not(forward), scaling=fft_scaled(norm, forward))"},
    {"fft_halved", "x axes norm forward", "real_to_hermitean_fft(x, axes=axes, inverse=not(forward), scaling=fft_scaled(norm, forward))"},
    {"fft_real", "x axes norm forward n", "hermitean_to_real_fft(if(dim(x, at(axes, -1)) == n / 2 + 1, x, slice(x, starts=[0], ends=[n / 2 + 1], axes=[at(axes, -1)])), axes=axes, inverse=not(forward), scaling=fft_scaled(norm, forward), round_to_odd=not(n / 2 * 2 == n))"},
    {"fft_half_gradient", "x dout axes norm forward", "a = at(axes, -1); z = fft_whole(x, axes, norm, forward); real_part(fft(vjp(slice(z, starts=[0], ends=[dim(dout, a)], axes=[a]), dout, z), axes=axes, inverse=forward, scaling=fft_scaled(norm, forward)))"},
    {"fft_real_gradient", "dout axes norm forward", "a = at(axes, -1); g = real_to_hermitean_fft(dout, axes=axes, inverse=forward, scaling=fft_scaled(norm, forward)); c = coordinate_along_axis(shape=dims(g), axis=a, dtype=i64); where(logical_and(c >= 1, c <= dim(dout, a) - dim(g, a)), g + g, g)"},
    // Products.
    {"product_of", "x y tx ty", "a = if(rank(x) == 1, reshaped(x, [1, dim(x, 0)]), x); b = if(rank(y) == 1, reshaped(y, [dim(y, 0), 1]), y); p = matmul(a, b, transpose_a=and(tx, rank(x) > 1), transpose_b=and(ty, rank(y) > 1)); q = if(rank(x) == 1, squeeze(p, axes=[-2]), p); if(rank(y) == 1, squeeze(q, axes=[-1]), q)"},
    {"product_gradients", "x y dout tx ty", "vjp(product_of(x, y, tx, ty), dout, x, y)"},
    {"kron", "x y", "reshaped(reshaped(x, alternating(dims(x), 0)) * reshaped(y, alternating(dims(y), 1)), times(dims(x), dims(y)))"},
    // Elements at places that element_places has counted.
    {"put_elements_at", "x indices value extents strides index_dims index_strides offset", "if(same_type(dtype(at(indices, 0)), bool), put_flagged(x, at(indices, 0), value, strides, index_dims, index_strides, offset), put_elements(x, element_places(x, indices, extents, strides, index_dims, index_strides, offset, extents), value))"},
    {"put_flagged", "x flags value strides index_dims index_strides offset", "if(same_dims(flags, x), where(flags, value, x), put_flagged_part(x, flags, value, element_places(x, list(), dims(flags), strides, index_dims, index_strides, offset, dims(flags))))"},
    {"put_flagged_part", "x flags value places", "put_elements(x, places, where(flags, value, gather(reshaped(x, [numel(x)]), places, axis=0)))"},
    {"put_elements", "x places value", "reshaped(scatter(reshaped(expand(value, shape=dims(places)), [numel(places)]), reshaped(places, [numel(places)]), reshaped(x, [numel(x)]), axis=0, mode='set'), dims(x))"},
    // Convolutions.
    {"window_dilations", "dilations algorithm", "if(same(algorithm, 'SAME'), repeated(1, len(dilations)), dilations)"},
    {"conv_of", "x w strides paddings algorithm dilations groups format", "conv(x, w, strides=strides, pads=window_pads(paddings, algorithm, x, w, strides, format), dilations=window_dilations(dilations, algorithm), groups=groups, layout=layout(format))"},
    {"conv_gradients", "x w dout strides paddings algorithm dilations groups format", "p = window_pads(paddings, algorithm, x, w, strides, format); d = window_dilations(dilations, algorithm); conv_data_gradient(dout, w, shape=dims(x), strides=strides, pads=p, dilations=d, groups=groups, layout=layout(format)), conv_weights_gradient(dout, x, shape=dims(w), strides=strides, pads=p, dilations=d, groups=groups, layout=layout(format))"},
    {"conv_transpose_of", "x w strides paddings output_padding output_size algorithm groups dilations format", "p = window_pads(paddings, algorithm, x, w, strides, format); d = window_dilations(dilations, algorithm); conv_transpose(x, w, strides=strides, pads=p, dilations=d, output_padding=transposed_padding(x, w, strides, p, d, output_padding, output_size, format), groups=groups, layout=layout(format))"},
    // Gradients of gradients.
    {"plus_or_nothing", "a b like", "if(or(has(a), has(b)), sum_of_given(a, b), like * 0)"},
    {"product_if", "a b", "if(and(has(a), has(b)), a * b, none)"},
    {"third_gradients", "first second a b x p q", "vjp(sum_of_given(if(has(a), inner(first, a), none), if(has(b), inner(second, b), none)), tensor(1.0, dtype(x)), x, p, q)"},
    {"conv_double_gradients", "x w dout ddx ddw strides paddings algorithm dilations groups format", "p = window_pads(paddings, algorithm, x, w, strides, format); d = window_dilations(dilations, algorithm); if(has(ddw), conv_data_gradient(dout, ddw, shape=dims(x), strides=strides, pads=p, dilations=d, groups=groups, layout=layout(format)), x * 0), if(has(ddx), conv_weights_gradient(dout, ddx, shape=dims(w), strides=strides, pads=p, dilations=d, groups=groups, layout=layout(format)), w * 0), plus_or_nothing(if(has(ddx), conv_of(ddx, w, strides, paddings, algorithm, dilations, groups, format), none), if(has(ddw), conv_of(x, ddw, strides, paddings, algorithm, dilations, groups, format), none), dout)"},
    {"along_channel", "a x c", "reshaped(a, join(repeated(1, c), dim(x, c), repeated(1, rank(x) - c - 1)))"},
    {"normed", "x mean variance scale epsilon axes c", "d = x - if(has(mean), along_channel(mean, x, c), reduce_mean(x, axes=axes, keep_dims=true)); n = d * rsqrt(if(has(variance), along_channel(variance, x, c), reduce_mean(d * d, axes=axes, keep_dims=true)) + epsilon); if(has(scale), n * along_channel(scale, x, c), n)"},
    {"normed_double_gradients", "x mean variance scale dy ddx dscale dbias epsilon axes c", "y = normed(x, mean, variance, scale, epsilon, axes, c); b = if(has(dbias), inner(dy, along_channel(dbias, x, c)), none); if(has(scale), scaled_double_gradients(y, x, scale, dy, ddx, dscale, b), plain_double_gradients(y, x, dy, ddx, b, c))"},
    {"scaled_double_gradients", "y x scale dy ddx dscale b", "g, h = vjp(y, dy, x, scale); l = sum_of_given(sum_of_given(if(has(ddx), inner(g, ddx), none), if(has(dscale), inner(h, dscale), none)), b); vjp(l, tensor(1.0, dtype(x)), x, scale, dy)"},
    {"plain_double_gradients", "y x dy ddx b c", "p, q = vjp(sum_of_given(inner(vjp(y, dy, x), ddx), b), tensor(1.0, dtype(x)), x, dy); p, filled([dim(x, c)], 0.0, dtype(x)), q"},
    {"lp_pooled", "x kernel strides paddings ceil_mode format global adaptive algorithm power", "p = pads(paddings, 2); q = if(ceil_mode, [at(p, 0), at(p, 2) + at(strides, 0) - 1, at(p, 1), at(p, 3) + at(strides, 1) - 1], paddings); n = if(power == inf, 0, if(global, if(same(layout(format), 'channels_last'), dim(x, 1) * dim(x, 2), dim(x, 2) * dim(x, 3)), product(kernel))); if(power == inf, pool(x, kernel, strides, paddings, ceil_mode, true, format, 'max', global, adaptive, algorithm), pow(pool(pow(x, power), kernel, strides, q, false, false, format, 'avg', global, adaptive, algorithm) * n, 1.0 / power))"},
    // Norms.
    {"batch_fixed", "x mean variance scale bias epsilon format", "batch_norm(wide(x), mean, variance, like_if(scale, mean), like_if(bias, mean), axis=channel_axis(x, format), epsilon=epsilon), identity(mean), identity(variance), identity(mean), rsqrt(variance + epsilon), filled([0], 0, u8)"},
    {"batch_trained", "x mean variance scale bias momentum epsilon format", "y, m, i, rm, rv = batch_norm_training(x, like_if(scale, mean), like_if(bias, mean), mean, variance, momentum=1 - momentum, epsilon=epsilon, unbiased=false, layout=layout(format)); y, rm, rv, m, i, filled([0], 0, u8)"},
    {"normalized_batch", "x mean variance scale bias is_test momentum epsilon format global trainable", "if(or(global, and(is_test, not(trainable))), batch_fixed(x, mean, variance, scale, bias, epsilon, format), batch_trained(x, mean, variance, scale, bias, momentum, epsilon, format))"},
    {"slope_of", "a x mode format", "if(same(mode, 'all'), reshaped(a, []), if(same(mode, 'element'), reshaped(a, join(1, part(dims(x), 1))), if(same(layout(format), 'channels_last'), reshaped(a, join(repeated(1, rank(x) - 1), numel(a))), reshaped(a, join(1, numel(a), repeated(1, max(rank(x) - 2, 0)))))))"},
    {"swiglu_halves", "x", "a, b = split(x, axis=-1, sizes=[dim(x, -1) / 2, dim(x, -1) / 2]); silu(a) * b"},
    {"swiglu_gradients", "x y dout", "if(has(y), vjp(silu(x) * y, dout, x, y), vjp(swiglu_halves(x), dout, x))"},
    {"shared_among_equals", "x out dout axes", "h = like(x == broadcast_back(out, x, axes), x); h * broadcast_back(dout, x, axes) / reduce_sum(h, axes=axes, keep_dims=true)"},
    {"to_first_of_groups", "x dout groups axis", "s = join(part(dims(x), 0, axis), dim(x, axis) / groups, groups, part(dims(x), axis + 1)); reshaped(where(coordinate_along_axis(shape=s, axis=axis + 1, dtype=i64) == arg_max(reshaped(x, s), axis=axis + 1), reshaped(dout, kept(s, [axis + 1])), 0), dims(x))"},
    {"max_of_groups", "x groups axis", "reduce_max(reshaped(x, join(part(dims(x), 0, axis), dim(x, axis) / groups, groups, part(dims(x), axis + 1))), axes=[axis + 1], keep_dims=false)"},
    {"shuffled", "x groups format", "c = channel_axis(x, format); n = dim(x, c); s = join(part(dims(x), 0, c), groups, n / groups, part(dims(x), c + 1)); reshaped(transposed(reshaped(x, s), join(range_of(0, c), c + 1, c, range_of(c + 2, rank(x) + 1))), dims(x))"},
    // Lines: some axes behind the others, as one.
    {"lines_over", "x axes", "n = extent(x, axes); reshaped(transposed(x, axes_last(axes, rank(x))), [numel(x) / n, n])"},
    {"from_lines", "l x axes", "o = axes_last(axes, rank(x)); transposed(reshaped(l, reordered(dims(x), o)), inverse_order(o))"},
    {"middle_of", "x axes mode skip", "l = lines_over(x, axes); n = dim(l, 1); s, i = sort_with_indices(l, axis=1); f = if(is_float(x), reduce_sum(to(logical_not(is_nan(l)), i64), axes=[1]), filled([dim(l, 0), 1], n, i64)); c = if(skip, f, filled([dim(l, 0), 1], n, i64)); a = max(div(c - 1, like(2, c), rounding='floor'), 0); p = if(same(mode, 'avg'), concat(list(a, min(div(c, like(2, c), rounding='floor'), n - 1)), axis=1), a); q = if(skip, p, where(f < n, f, p)); reduce_mean(gather_along_axis(s, q, axis=1), axes=[1]), gather_along_axis(i, q, axis=1)"},
    {"middle_gradient", "x indices dout axes mode", "l = lines_over(x, axes); i = reshaped(indices, [dim(l, 0), if(same(mode, 'avg'), 2, 1)]); g = expand(reshaped(dout, [dim(l, 0), 1]), shape=dims(i)); from_lines(scatter_along_axis(if(same(mode, 'avg'), g / 2, g), i, shape=dims(l), axis=1, mode='add'), x, axes)"},
    {"stride_sum", "extents", "if(len(extents) == 0, 0, product(part(extents, 1)) + stride_sum(part(extents, 1)))"},
    {"places_in", "shape", "reshaped(coordinate_along_axis(shape=[product(shape)], axis=0, dtype=i64), shape)"},
    {"on_diagonal", "x offset wrap", "n = dim(x, 1); i = places_in(dims(x)) - offset; c = floor_mod(i, like(n, i)) + offset; logical_and(logical_and(logical_and(i >= 0, i < if(wrap, numel(x), min(numel(x), n * n))), floor_mod(i, like(stride_sum(dims(x)), i)) == 0), logical_and(c >= 0, c < n))"},
    // The best path of tags: lengths are a column, and `stop` what ending in a tag adds.
    {"best_paths", "a p x pairs stop lengths t", "if(t == dim(x, 1), list(a, p), best_paths_by(a, p, x, pairs, stop, lengths, t))"},
    {"best_paths_by", "a p x pairs stop lengths t", "s = as_column(a) + pairs; l = lengths > t; m = where(l, reduce_max(s, axes=[1], keep_dims=false) + reshaped(slice(x, starts=[t], ends=[t + 1], axes=[1]), dims(a)), a); q = reshaped(where(l, arg_max(s, axis=1, keep_dims=false), coordinate_along_axis(shape=dims(a), axis=1, dtype=i64)), [dim(a, 0), 1, dim(a, 1)]); best_paths(if(has(stop), m + where(lengths == t + 1, stop, 0), m), if(has(p), concat(list(p, q), axis=1), q), x, pairs, stop, lengths, t + 1)"},
    {"path_to", "tag p t", "if(t == 0, tag, concat(list(path_to(gather_along_axis(reshaped(slice(p, starts=[t - 1], ends=[t], axes=[1]), [dim(p, 0), dim(p, 2)]), tag, axis=1), p, t - 1), tag), axis=1))"},
    {"tagged", "x pairs lengths bounded", "n = dim(x, 2); c = reshaped(to(lengths, i64), [dim(x, 0), 1]); f = reshaped(slice(x, starts=[0], ends=[1], axes=[1]), [dim(x, 0), n]); stop = if(bounded, slice(pairs, starts=[n - 2], ends=[n - 1], axes=[0]), none); a = if(bounded, f + slice(pairs, starts=[n - 1], ends=[n], axes=[0]) + where(c == 1, stop, 0), f); b = best_paths(a, none, x, pairs, stop, c, 1); e = at(b, 0); w = path_to(arg_max(e, axis=1, keep_dims=true), at(b, 1), dim(x, 1) - 1); reduce_max(e, axes=[1], keep_dims=false), gather(where(coordinate_along_axis(shape=dims(w), axis=1, dtype=i64) < c, w, 0), range(tensor(0, i64), reduce_max(to(lengths, i64), keep_dims=false), tensor(1, i64)), axis=1)"},
    // Signals.
    {"framed", "x size step axis", "if(axis == 0, transposed(sliding_window(x, axis=0, size=size, step=step), join(0, rank(x), range_of(1, rank(x)))), transposed(sliding_window(x, axis=rank(x) - 1, size=size, step=step), swapped_last(rank(x) + 1)))"},
    {"overlapped", "x step axis shape", "z = filled(shape, 0.0, dtype(x)); vjp(framed(z, if(axis == 0, dim(x, 1), dim(x, -2)), step, axis), x, z)"},
    {"bits_in", "x", "t = dtype(x); if(or(same_type(t, i8), same_type(t, u8)), 8, if(same_type(t, i16), 16, if(same_type(t, i32), 32, 64)))"},
    // Messages along the edges of graphs.
    {"message_of", "how a b", "if(same(how, 'ADD'), a + b, if(same(how, 'SUB'), a - b, if(same(how, 'MUL'), a * b, a / b)))"},
    {"edge_counts", "to n type", "scatter(filled([numel(to)], 1.0, type), to, shape=[n], axis=0, mode='add')"},
    {"behind_rows", "a x", "reshaped(a, join(numel(a), repeated(1, rank(x) - 1)))"},
    {"collected", "m to how n", "s = join(n, part(dims(m), 1)); if(or(same(how, 'SUM'), same(how, 'MEAN')), collected_sum(m, to, how, n, s), scatter(m, to, filled(s, 0, dtype(m)), axis=0, mode=if(same(how, 'MAX'), 'max', 'min'), include_self=false))"},
    {"collected_sum", "m to how n shape", "y = scatter(m, to, shape=shape, axis=0, mode='add'); if(same(how, 'MEAN'), y / behind_rows(max(edge_counts(to, n, dtype(m)), 1), y), y)"},
    {"collected_gradient", "m to how out dout", "if(same(how, 'SUM'), gather(dout, to, axis=0), if(same(how, 'MEAN'), gather(dout / behind_rows(max(edge_counts(to, dim(dout, 0), dtype(dout)), 1), dout), to, axis=0), where(m == gather(out, to, axis=0), gather(dout, to, axis=0), 0)))"},
    {"pooled_segments", "x counts how", "y = segment_reduce(x, counts, mode=if(same(how, 'SUM'), 'sum', if(same(how, 'MEAN'), 'mean', if(same(how, 'MAX'), 'max', 'min')))); where(reshape(counts, shape=join(-1, repeated(1, rank(x) - 1))) == 0, 0, y)"},
    {"segments_gradient", "x ids out dout how", "if(same(how, 'SUM'), gather(dout, ids, axis=0), if(same(how, 'MEAN'), gather(dout / behind_rows(max(edge_counts(ids, dim(dout, 0), dtype(dout)), 1), dout), ids, axis=0), where(x == gather(out, ids, axis=0), gather(dout, ids, axis=0), 0)))"},
    {"traced_back", "ids parents t place", "i = slice(ids, starts=[t], ends=[t + 1], axes=[0]); p = slice(parents, starts=[t], ends=[t + 1], axes=[0]); r = gather_along_axis(i, place, axis=2); if(t == 0, r, concat(list(traced_back(ids, parents, t - 1, gather_along_axis(p, place, axis=2)), r), axis=0))"},
    // Quantization as training simulates it.
    {"levels", "bits", "pow(2, bits - 1) - 1"},
    {"over_scale", "s bits", "where(s <= 1e-30, reciprocal(s + 1e-6), reciprocal(s)) * levels(bits)"},
    {"leveled", "x s bits kind", "i = over_scale(s, bits); if(kind == 0, min(max(rint(x * i), -levels(bits) - 1), levels(bits)), round(min(max(x, neg(s)), s) * i))"},
    {"releveled", "x s bits kind", "leveled(x, s, bits, kind) * s / levels(bits)"},
    {"largest_size", "x", "reshaped(reduce_max(abs(x), keep_dims=false), [1])"},
    {"channel_sizes", "x axis", "reduce_max(abs(x), axes=join(range_of(0, axis), range_of(axis + 1, rank(x))), keep_dims=false)"},
    {"frames_moved", "x frames ratio way", "g = reshaped(x, [dim(x, 0) / frames, frames, dim(x, 1), product(part(dims(x), 2))]); k = coordinate_along_axis(shape=[1, 1, dim(x, 1), 1], axis=2, dtype=f32) + 1; reshaped(where(k <= dim(x, 1) * ratio, frames_by(g, frames, way), where(k <= dim(x, 1) * 2 * ratio, frames_by(g, frames, -way), g)), dims(x))"},
    {"frames_by", "g frames way", "slice(pad(g, pads=[0, 1, 0, 0, 0, 1, 0, 0]), starts=[1 - way], ends=[1 - way + frames], axes=[1])"},
    // Spectral norms, by the power method.
    {"rows_by_axis", "x axis", "join(axis, range_of(0, axis), range_of(axis + 1, rank(x)))"},
    {"unit", "x epsilon", "x / (reduce_l2(x, keep_dims=false) + epsilon)"},
    {"spectral_vectors", "w u v steps epsilon", "if(steps == 0, list(u, v), spectral_step(w, u, steps, epsilon))"},
    {"spectral_step", "w u steps epsilon", "a = unit(matmul(w, u, transpose_a=true), epsilon); spectral_vectors(w, unit(matmul(w, a), epsilon), a, steps - 1, epsilon)"},
    {"spectral_of", "x u v axis steps epsilon", "w = reshaped(transposed(x, rows_by_axis(x, axis)), [numel(u), numel(v)]); p = spectral_vectors(w, reshaped(u, [numel(u), 1]), reshaped(v, [numel(v), 1]), steps, epsilon); list(w, at(p, 0), at(p, 1), reduce_sum(at(p, 0) * matmul(w, at(p, 1)), keep_dims=false))"},
    // Random numbers: a seed that is given wins over the generator.
    {"seeded", "state seed", "if(seed == 0, state, philox_state(key=seed))"},
    {"normal_numbers", "shape mean deviation type state", "y, n = random(state, shape=shape, distribution='normal', dtype=wide_type(type), mean=mean, deviation=deviation); y"},
    {"uniform_numbers", "shape low high type state", "y, n = random(state, shape=shape, distribution='uniform', dtype=wide_type(type), low=low, high=high); y"},
    {"dropped_scaled", "x p state", "y, m = dropout(x, state, rate=p); y, to(m, u8)"},
    {"dropped_masked", "x p up state axes", "m = uniform_numbers(if(len(axes) == 0, dims(x), only(dims(x), axes)), 0.0, 1.0, f32, state) >= p; y = where(expand(m, shape=dims(x)), x, 0); if(and(up, p < 1), y / (1 - p), y), to(expand(m, shape=dims(x)), u8)"},
    {"kept_all", "x p up", "if(up, identity(x), x * (1 - p)), none"},
    {"dropped", "x p is_test mode state axes", "up = same(mode, 'upscale_in_train'); if(is_test, kept_all(x, p, up), if(and(up, and(not(has(axes)), p < 1)), dropped_scaled(x, p, state), dropped_masked(x, p, up, state, if(has(axes), axes, []))))"},
    {"dropped_gradient", "mask dout p is_test up", "if(is_test, if(up, identity(dout), dout * (1 - p)), if(up, if(p == 1.0, dout * 0, dout * like(mask, dout) / (1 - p)), dout * like(mask, dout)))"},
    // Losses.
    {"hard_entropy", "l label ignored axis", "t = reshaped(to(label, i64), kept(dims(l), [axis])); bad = t == ignored; where(bad, 0, neg(gather_along_axis(l, where(bad, 0, t), axis=axis)))"},
    {"entropy", "x label soft use_softmax ignored axis", "l = if(use_softmax, log_softmax(x, axis=axis), log(x)); if(use_softmax, exp(l), identity(x)), if(soft, neg(reduce_sum(like(label, x) * l, axes=[axis], keep_dims=true)), hard_entropy(l, label, ignored, axis))"},
    {"hard_entropy_gradient", "label p dout use_softmax ignored axis", "k = kept(dims(p), [axis]); t = reshaped(to(label, i64), k); bad = t == ignored; s = where(bad, 0, t); g = where(bad, 0, reshaped(dout, k)); if(use_softmax, scatter_along_axis(neg(g), s, p * g, axis=axis, mode='add'), scatter_along_axis(neg(g / gather_along_axis(p, s, axis=axis)), s, shape=dims(p), axis=axis))"},
    {"entropy_gradient", "label p dout soft use_softmax ignored axis", "if(soft, if(use_softmax, dout * (p - like(label, p)), neg(dout * like(label, p) / p)), hard_entropy_gradient(label, p, dout, use_softmax, ignored, axis))"},
    {"logit_loss", "x label weight normalize ignored", "s = log1p(exp(-abs(x))) + max(-x, 0); l = (1 - label) * x + if(has(weight), ((weight - 1) * label + 1) * s, s); keep = label != ignored; m = where(keep, l, 0); if(normalize, m / max(reduce_sum(like(keep, x), keep_dims=false), 1), m)"},
    {"bits_of", "n", "if(n == 0, 0, bits_of(n / 2) + 1)"},
    {"steps_down", "labels classes", "coordinate_along_axis(shape=[1, bits_of(classes - 1)], axis=1, dtype=i64) + reshaped(labels, [numel(labels), 1]) * 0"},
    {"tree_nodes", "labels path classes", "if(has(path), to(path, i64), right_shift(reshaped(to(labels, i64), [numel(labels), 1]) + classes, steps_down(to(labels, i64), classes) + 1) - 1)"},
    {"tree_turns", "labels code classes", "if(has(code), to(code, i64), floor_mod(right_shift(reshaped(to(labels, i64), [numel(labels), 1]) + classes, steps_down(to(labels, i64), classes)), 2))"},
    {"tree_logits", "x w bias nodes", "i = max(nodes, 0); p = matmul(gather(w, i, axis=0), as_column(x)); y = reshaped(p, dims(nodes)); b = if(has(bias), y + reshaped(gather(reshaped(bias, [numel(bias)]), i, axis=0), dims(nodes)), y); where(nodes < 0, 0, min(max(b, -40), 40))"},
    {"tree_gradient", "nodes turns losses dout", "where(nodes < 0, 0, 1 - exp(-losses) - like(turns, losses)) * reshaped(dout, [dim(losses, 0), 1])"},
    {"summed_at", "values nodes shape", "scatter(reshaped(values, join(numel(nodes), part(shape, 1))), reshaped(max(nodes, 0), [numel(nodes)]), shape=shape, axis=0, mode='add')"},
    // Optimizers.
    {"unless", "skip old new", "if(has(skip), where(scalar(skip), old, new), new)"},
    {"spread_rows", "values rows param", "scatter(values, rows, shape=dims(param), axis=0, mode='add')"},
    {"rows_left_out", "rows param", "reshaped(scatter(filled([numel(rows)], 1.0, f32), rows, shape=[dim(param, 0)], axis=0, mode='add') == 0, join(dim(param, 0), repeated(1, rank(param) - 1)))"},
    {"lazy_adam", "param rows values rate m1 m2 m2max p1 p2 master skip beta1 beta2 epsilon global amsgrad", "n, m, v, w, b1, b2, f = adam_of(param, spread_rows(values, rows, param), rate, m1, m2, m2max, p1, p2, master, skip, beta1, beta2, epsilon, 1.0, 0.0, global, amsgrad); left = rows_left_out(rows, param); where(left, param, n), where(left, m1, m), where(left, m2, v), if(amsgrad, where(left, m2max, w), w), b1, b2, where(left, full_precision(param, master), f)"},
    {"full_precision", "param master", "if(has(master), master, wide(param))"},
    {"sgd_of", "param rate grad master", "if(has(master), sgd_master(param, rate, grad, master), sgd_step(param, grad, scalar(rate)))"},
    {"sgd_master", "param rate grad master", "n = master - like(scalar(rate), master) * like(grad, master); n, n"},
    {"momentum_of", "param grad velocity rate master mu nesterov decay rescale", "sgd_step(param, if(rescale == 1, grad, grad * rescale), scalar(rate), velocity, master, momentum=mu, nesterov=nesterov, weight_decay=decay)"},
    {"adam_of", "param grad rate m1 m2 m2max p1 p2 master skip beta1 beta2 epsilon ratio decay global amsgrad", "p = full_precision(param, master); g = like(grad, p); r = like(scalar(rate), p) * ratio; q1 = like(scalar(p1), p); q2 = like(scalar(p2), p); o1 = like(m1, p); o2 = like(m2, p); m = o1 * beta1 + g * (1 - beta1); v = o2 * beta2 + g * g * (1 - beta2); w = if(amsgrad, max(like(m2max, p), v), v); n = p * (1 - r * decay) - r * sqrt(1 - q2) / (1 - q1) * (m / (sqrt(w) + epsilon * sqrt(1 - q2))); unless(skip, p, n), unless(skip, o1, m), unless(skip, o2, v), if(amsgrad, unless(skip, like(m2max, p), w), w), if(global, p1, unless(skip, p1, p1 * beta1)), if(global, p2, unless(skip, p2, p2 * beta2)), unless(skip, p, n)"},
    {"asgd_of", "param grad rate d y n master", "p = full_precision(param, master); g = like(grad, p); s = d - y + like(g, d); m = p - like(scalar(rate), p) / like(scalar(n), p) * like(s, p); m, s, like(g, y), m"},
    {"rprop_of", "param grad prev rate master range etas", "p = full_precision(param, master); g = like(grad, p); b = like(range, rate); e = like(etas, rate); q = g * like(prev, p); f = where(q < 0, 0, g); r = min(max(rate * where(like(q, rate) > 0, element(e, 1), where(like(q, rate) < 0, element(e, 0), 1)), element(b, 0)), element(b, 1)); m = p - sign(f) * like(r, p); m, f, r, m"},
    {"element", "x i", "scalar(slice(reshaped(x, [numel(x)]), starts=[i], ends=[i + 1], axes=[0]))"},
    {"nadam_of", "param grad rate decays p2 product m1 m2 master beta1 beta2 epsilon power", "p = full_precision(param, master); g = like(grad, p); e = decays * 0.96; b = p2 * beta2; u = like((1 - pow(e, power) * 0.5) * beta1, p); w = like((1 - pow(e, power) * (0.5 * pow(0.96, power))) * beta1, p); o = product * like(u, product); q = like(o, p); m = like(m1, p) * beta1 + g * (1 - beta1); v = like(m2, p) * beta2 + g * g * (1 - beta2); n = p - like(scalar(rate), p) * (w * m / (1 - q * w) + (1 - u) * g / (1 - q)) / (sqrt(v / (1 - like(b, p))) + epsilon); n, e, b, o, m, v, n"},
    {"radam_of", "param grad rate p1 p2 rho m1 m2 master beta1 beta2 epsilon", "p = full_precision(param, master); g = like(grad, p); a = p1 * beta1; b = p2 * beta2; r = (rho * (beta2 - b) + b) / (1 - b); m = like(m1, p) * beta1 + g * (1 - beta1); v = like(m2, p) * beta2 + g * g * (1 - beta2); top = 2 / (1 - beta2) - 1; t = like(top - r * 2, p); s = sqrt(max((t - 4) * (t - 2) * (top / ((top - 4) * (top - 2))) / t, 0)) * sqrt(1 - like(b, p)) / (sqrt(v) + epsilon); n = p - like(scalar(rate), p) * (m / (1 - like(a, p))) * where(t > 5, s, 1); n, a, b, r, m, v, n"},
    {"averaged_sums", "param sum1 sum2 sum3 count old updates window most least", "m = scalar(floor_mod(updates, like(16384, updates)) == 0); f = scalar(logical_and(count >= least, to(count, f64) >= min(floor(to(updates, f64) * window), most))); a = sum1 + param; b = where(m, sum2 + a, sum2); c = where(m, 0, a); where(f, 0, c), where(f, 0, b), where(f, b + c, sum3), where(f, 0, count), where(f, count, old), updates"},
    {"lamb_of", "param grad rate m1 m2 p1 p2 master decay beta1 beta2 epsilon always", "p = full_precision(param, master); m = m1 * beta1 + grad * (1 - beta1); v = m2 * beta2 + grad * grad * (1 - beta2); d = m / (1 - scalar(p1)) / (sqrt(v / (1 - scalar(p2))) + epsilon) + p * decay; a = reduce_l2(p, keep_dims=false); b = reduce_l2(d, keep_dims=false); t = where(logical_and(a > 0, b > 0), a / b, 1); n = p - scalar(rate) * t * d; n, m, v, p1 * beta1, p2 * beta2, n"},
    {"scale_now", "found scale good bad grow_after shrink_after grow shrink", "g = where(found, 0, good + 1); b = where(found, bad + 1, 0); small = max(scale * shrink, 1); large = scale * grow; full = g == grow_after; low = b == shrink_after; where(low, small, where(logical_and(full, is_finite(large)), large, scale)), where(full, 0, g), where(low, 0, b)"},
    // Boxes.
    {"column", "x i", "slice(x, starts=[i], ends=[i + 1], axes=[-1])"},
    {"columns", "x from to", "slice(x, starts=[from], ends=[to], axes=[-1])"},
    {"lines_meet", "a m b n", "min(a + m / 2, b + n / 2) - max(a - m / 2, b - n / 2)"},
    {"centered_overlap", "a b", "w = lines_meet(column(a, 0), column(a, 2), column(b, 0), column(b, 2)); h = lines_meet(column(a, 1), column(a, 3), column(b, 1), column(b, 3)); s = where(logical_or(w < 0, h < 0), 0, w * h); s / (column(a, 2) * column(a, 3) + column(b, 2) * column(b, 3) - s)"},
    // Proposals of regions, one image after the other, and which level of a pyramid each belongs to.
    {"image_of", "x i", "slice(x, starts=[i], ends=[i + 1], axes=[0])"},
    {"by_place", "x n", "reshaped(transposed(reshaped(x, [dim(x, 1) / n, n, dim(x, 2), dim(x, 3)]), [2, 3, 0, 1]), [numel(x) / n, n])"},
    {"decoded_sizes", "d v size", "exp(min(d * v, 4.135166556742356)) * size"},
    {"decoded_lines", "center size from to edge", "concat(list(max(min(center - size / 2, edge), 0), max(min(center + size / 2 - to, edge), 0)), axis=1)"},
    {"decoded_proposals", "a d v size one", "w = column(a, 2) - column(a, 0) + one; h = column(a, 3) - column(a, 1) + one; x = decoded_lines(column(d, 0) * column(v, 0) * w + column(a, 0) + w / 2, decoded_sizes(column(d, 2), column(v, 2), w), 0, one, element(size, 1) - one); y = decoded_lines(column(d, 1) * column(v, 1) * h + column(a, 1) + h / 2, decoded_sizes(column(d, 3), column(v, 3), h), 0, one, element(size, 0) - one); concat(list(column(x, 0), column(y, 0), column(x, 1), column(y, 1)), axis=1)"},
    {"large_enough", "b size least one", "w = column(b, 2) - column(b, 0) + one; h = column(b, 3) - column(b, 1) + one; k = logical_and(w >= max(least, 1.0), h >= max(least, 1.0)); reshaped(if(one == 0.0, k, logical_and(k, logical_and(column(b, 0) + w / 2 <= element(size, 1), column(b, 1) + h / 2 <= element(size, 0)))), [dim(b, 0)])"},
    {"proposals_in", "s d a v size before after overlap least one", "t, p = top_k(s, k=if(before > 0, min(before, numel(s)), numel(s)), axis=0); b = decoded_proposals(gather(a, p, axis=0), gather(d, p, axis=0), gather(v, p, axis=0), size, one); k = large_enough(b, size, least, one); any = reduce_or(k, axes=[0]); m = logical_or(k, logical_and(logical_not(any), coordinate_along_axis(shape=dims(p), axis=0, dtype=i64) == 0)); r = compress(where(any, b, 0), m, axes=[0]); q = compress(where(any, t, 0), m, axes=[0]); if(overlap <= 0, list(r, reshape(q, shape=[-1, 1])), proposals_left(r, q, after, overlap, one))"},
    {"proposals_left", "r q after overlap one", "e = r + numbers_tensor([0.0, 0.0, one, one], [1, 4], dtype(r)); k = non_max_suppression(reshape(to(e, f32), shape=[1, -1, 4]), reshape(to(q, f32), shape=[1, 1, -1]), tensor(if(after > 0, after, 2147483647), i64), tensor(overlap, f32)); i = reshape(slice(k, starts=[2], ends=[3], axes=[1]), shape=[-1]); list(gather(r, i, axis=0), reshape(gather(q, i, axis=0), shape=[-1, 1]))"},
    {"proposals_of", "scores deltas sizes anchors variances before after overlap least one i", "n = dim(scores, 0); h = proposals_in(reshaped(by_place(image_of(scores, i), 1), [numel(scores) / n]), by_place(image_of(deltas, i), 4), reshaped(anchors, [numel(anchors) / 4, 4]), reshaped(variances, [numel(variances) / 4, 4]), image_of(sizes, i), before, after, overlap, least, one); c = to(reduce_sum(column(at(h, 1), 0) * 0 + 1, axes=[0, 1], keep_dims=false), i32); if(i + 1 == n, list(at(h, 0), at(h, 1), reshaped(c, [1])), with_proposals(h, reshaped(c, [1]), proposals_of(scores, deltas, sizes, anchors, variances, before, after, overlap, least, one, i + 1)))"},
    {"with_proposals", "h c rest", "list(concat(list(at(h, 0), at(rest, 0)), axis=0), concat(list(at(h, 1), at(rest, 1)), axis=0), concat(list(c, at(rest, 2)), axis=0))"},
    {"pyramid_levels", "b least most level scale one", "w = column(b, 2) - column(b, 0); h = column(b, 3) - column(b, 1); a = where(logical_or(w < 0, h < 0), 0, (w + one) * (h + one)); reshaped(min(max(floor(log(sqrt(a) / scale + 1e-6) / 0.6931471805599453 + level), least), most), [dim(b, 0)])"},
    {"rois_by_level", "b levels l most", "r = compress(b, levels == l, axes=[0]); if(l == most, list(r), list(r, rois_by_level(b, levels, l + 1, most)))"},
    {"counts_by_level", "images levels n l most", "c = reduce_sum(to(logical_and(reshaped(levels == l, [1, numel(levels)]), reshaped(images, [1, numel(levels)]) == coordinate_along_axis(shape=[n, 1], axis=0, dtype=i64)), i32), axes=[1], keep_dims=false); if(l == most, list(own(c)), list(own(c), counts_by_level(images, levels, n, l + 1, most)))"},
    {"restored_places", "levels", "s, p = sort_with_indices(levels, axis=0); t, q = sort_with_indices(p, axis=0); own(to(reshaped(q, [numel(levels), 1]), i32))"},
    // The loss of a YOLO head: cells are [images, anchors of the head times places, 5 + classes].
    {"logit_entropy", "x t", "max(x, 0) - x * t + log1p(exp(-abs(x)))"},
    {"anchor_sizes", "anchors x", "numbers_tensor(anchors, [len(anchors) / 2, 2], dtype(x))"},
    {"head_cells", "x m", "n = dim(x, 1) / m; reshaped(transposed(reshaped(x, [dim(x, 0), m, n, dim(x, 2) * dim(x, 3)]), [0, 1, 3, 2]), [dim(x, 0), m * dim(x, 2) * dim(x, 3), n])"},
    {"head_places", "x m axis", "reshaped(coordinate_along_axis(shape=[m, dim(x, 2), dim(x, 3)], axis=axis, dtype=dtype(x)), [1, m * dim(x, 2) * dim(x, 3), 1])"},
    {"head_boxes", "x cells anchors mask ratio scale", "m = len(mask); g = dim(x, 2); s = ratio * g; b = (scale - 1) * -0.5; z = gather(anchor_sizes(anchors, x), numbers_tensor(mask, [m], i64), axis=0); a = reshaped(expand(reshaped(z, [m, 1, 2]), shape=[m, g * dim(x, 3), 2]), [1, m * g * dim(x, 3), 2]); concat(list((head_places(x, m, 2) + sigmoid(column(cells, 0)) * scale + b) / g, (head_places(x, m, 1) + sigmoid(column(cells, 1)) * scale + b) / g, exp(columns(cells, 2, 4)) * a / s), axis=2)"},
    {"is_box", "boxes", "reshaped(logical_not(logical_or(column(boxes, 2) < 1e-6, column(boxes, 3) < 1e-6)), part(dims(boxes), 0, 2))"},
    {"best_anchors", "boxes anchors size", "a = anchor_sizes(anchors, boxes); k = dim(a, 0); p = concat(list(filled([k, 2], 0.0, dtype(boxes)), a / size), axis=1); reshaped(arg_max(centered_overlap(reshaped(p, [1, 1, k, 4]), reshaped(boxes * numbers_tensor([0, 0, 1, 1], [4], dtype(boxes)), [dim(boxes, 0), dim(boxes, 1), 1, 4])), axis=2), part(dims(boxes), 0, 2))"},
    {"heads_of", "boxes best mask", "e = reshaped(best, [dim(best, 0), dim(best, 1), 1]) == numbers_tensor(mask, [1, 1, len(mask)], i64); where(logical_and(is_box(boxes), reduce_or(e, axes=[2], keep_dims=false)), arg_max(to(e, i32), axis=2, keep_dims=false), -1)"},
    {"grid_place", "boxes i n", "to(reshaped(column(boxes, i), part(dims(boxes), 0, 2)) * n, i64)"},
    {"cell_places", "x boxes heads count", "p = (heads * dim(x, 2) + grid_place(boxes, 1, dim(x, 2))) * dim(x, 3) + grid_place(boxes, 0, dim(x, 3)); where(heads < 0, count, min(max(p, 0), count - 1))"},
    {"by_box", "x last", "reshaped(x, join(dims(x), 1))"},
    {"cells_at", "cells places", "gather_along_axis(cells, expand(by_box(min(places, dim(cells, 1) - 1)), shape=join(dims(places), dim(cells, 2))), axis=1)"},
    {"objectness", "x cells boxes places scores anchors mask least ratio scale", "n = dim(x, 0); p = dim(cells, 1); o = centered_overlap(reshaped(head_boxes(x, cells, anchors, mask, ratio, scale), [n, p, 1, 4]), reshaped(boxes, [n, 1, dim(boxes, 1), 4])); t = reduce_max(where(reshaped(is_box(boxes), [n, 1, dim(boxes, 1), 1]), o, 0), axes=[2, 3], keep_dims=false); g = concat(list(like(where(t > least, -1, filled([n, p], 0.0, dtype(x))), x), filled([n, 1], 0.0, dtype(x))), axis=1); slice(scatter_along_axis(scores, places, g, axis=1), starts=[0], ends=[p], axes=[1])"},
    {"box_targets", "x boxes anchors heads mask size", "a = cells_anchor(anchors, heads, mask, boxes); concat(list(columns(boxes, 0, 2) * dim(x, 2) - like(concat(list(by_box(grid_place(boxes, 0, dim(x, 3))), by_box(grid_place(boxes, 1, dim(x, 2)))), axis=2), boxes), log(max(columns(boxes, 2, 4), 1e-6) * size / a)), axis=2)"},
    {"cells_anchor", "anchors heads mask boxes", "gather(gather(anchor_sizes(anchors, boxes), numbers_tensor(mask, [len(mask)], i64), axis=0), max(heads, 0), axis=0)"},
    {"box_weights", "boxes scores", "(2 - column(boxes, 2) * column(boxes, 3)) * by_box(scores)"},
    {"class_targets", "labels classes smooth x", "w = if(smooth, min(1.0 / classes, 0.025), 0.0); like(where(coordinate_along_axis(shape=[1, 1, classes], axis=2, dtype=i64) == by_box(to(labels, i64)), filled([1], 1.0 - w, dtype(x)), w), x)"},
    {"objectness_loss", "x o", "where(o > 1e-5, logit_entropy(x, 1) * o, where(o > -0.5, logit_entropy(x, 0), 0))"},
    {"yolo_losses", "x boxes labels scores anchors mask classes least ratio smooth scale", "c = head_cells(x, len(mask)); n = dim(c, 1); h = heads_of(boxes, best_anchors(boxes, anchors, ratio * dim(x, 2)), mask); p = cell_places(x, boxes, h, n); o = objectness(x, c, boxes, p, scores, anchors, mask, least, ratio, scale); r = cells_at(c, p); t = box_targets(x, boxes, anchors, h, mask, ratio * dim(x, 2)); f = concat(list(logit_entropy(columns(r, 0, 2), columns(t, 0, 2)) * box_weights(boxes, scores), abs(columns(t, 2, 4) - columns(r, 2, 4)) * box_weights(boxes, scores), logit_entropy(columns(r, 5, 5 + classes), class_targets(labels, classes, smooth, x)) * by_box(scores)), axis=2); reduce_sum(where(by_box(h) < 0, 0, f), axes=[1, 2], keep_dims=false) + reduce_sum(objectness_loss(reshaped(column(c, 4), [dim(x, 0), n]), o), axes=[1], keep_dims=false), reshaped(o, [dim(x, 0), len(mask), dim(x, 2), dim(x, 3)]), h"},
    {"yolo_gradient", "x boxes labels scores o heads dout anchors mask classes ratio smooth", "c = head_cells(x, len(mask)); n = dim(c, 1); p = cell_places(x, boxes, heads, n); r = cells_at(c, p); t = box_targets(x, boxes, anchors, heads, mask, ratio * dim(x, 2)); w = box_weights(boxes, scores); g = concat(list((sigmoid(columns(r, 0, 2)) - columns(t, 0, 2)) * w, where(columns(r, 2, 4) > columns(t, 2, 4), w, neg(w)), column(r, 4) * 0, (sigmoid(columns(r, 5, 5 + classes)) - class_targets(labels, classes, smooth, x)) * by_box(scores)), axis=2); s = slice(scatter_along_axis(g, expand(by_box(p), shape=dims(g)), shape=[dim(x, 0), n + 1, 5 + classes], axis=1), starts=[0], ends=[n], axes=[1]); a = reshaped(o, [dim(x, 0), n, 1]); y = sigmoid(column(c, 4)); b = where(a > 1e-5, (y - 1) * a, where(a > -0.5, y, 0)); z = concat(list(columns(s, 0, 4), b, columns(s, 5, 5 + classes)), axis=2) * reshaped(dout, [dim(x, 0), 1, 1]); reshaped(transposed(reshaped(z, [dim(x, 0), len(mask), dim(x, 2) * dim(x, 3), 5 + classes]), [0, 1, 3, 2]), dims(x))"},
    {"boxes_with_images", "boxes counts x", "concat(list(reshaped(like(box_images(boxes, counts), x), [dim(boxes, 0), 1]), like(boxes, x)), axis=1)"},
    {"box_images", "boxes counts", "r = coordinate_along_axis(shape=[dim(boxes, 0), 1], axis=0, dtype=i64); if(has(counts), reduce_sum(to(r >= reshaped(cumsum(to(counts, i64), axis=0), [1, numel(counts)]), i64), axes=[1], keep_dims=false), filled([dim(boxes, 0)], 0, i64))"},
};
// clang-format on

using All = std::unordered_map<std::string, Definition>;

void add(All& all, std::span<const DefinitionText> texts) {
  for (const DefinitionText& text : texts) {
    Definition definition{{}, parse(text.body)};
    std::istringstream words(text.parameters);
    for (std::string word; words >> word;) definition.parameters.push_back(word);
    if (!all.emplace(text.name, std::move(definition)).second)
      throw std::logic_error(std::string("defined twice: ") + text.name);
  }
}

All& all() {
  static All& made = *[] {
    auto* filled = new All;
    add(*filled, kDefinitions);
    return filled;
  }();
  return made;
}

}  // namespace

void define(std::span<const DefinitionText> texts) { add(all(), texts); }

const Definition* find_definition(const std::string& name) {
  const auto found = all().find(name);
  return found == all().end() ? nullptr : &found->second;
}

}  // namespace anymps::lowering
