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
    // Norms.
    {"batch_fixed", "x mean variance scale bias epsilon format", "batch_norm(wide(x), mean, variance, like_if(scale, mean), like_if(bias, mean), axis=channel_axis(x, format), epsilon=epsilon), identity(mean), identity(variance), identity(mean), rsqrt(variance + epsilon), filled([0], 0, u8)"},
    {"batch_trained", "x mean variance scale bias momentum epsilon format", "y, m, i, rm, rv = batch_norm_training(x, like_if(scale, mean), like_if(bias, mean), mean, variance, momentum=1 - momentum, epsilon=epsilon, unbiased=false, layout=layout(format)); y, rm, rv, m, i, filled([0], 0, u8)"},
    {"normalized_batch", "x mean variance scale bias is_test momentum epsilon format global trainable", "if(or(global, and(is_test, not(trainable))), batch_fixed(x, mean, variance, scale, bias, epsilon, format), batch_trained(x, mean, variance, scale, bias, momentum, epsilon, format))"},
    {"slope_of", "a x mode format", "if(same(mode, 'all'), reshaped(a, []), if(same(mode, 'element'), reshaped(a, join(1, part(dims(x), 1))), if(same(layout(format), 'channels_last'), reshaped(a, join(repeated(1, rank(x) - 1), numel(a))), reshaped(a, join(1, numel(a), repeated(1, max(rank(x) - 2, 0)))))))"},
    {"swiglu_halves", "x", "a, b = split(x, axis=-1, sizes=[dim(x, -1) / 2, dim(x, -1) / 2]); silu(a) * b"},
    {"swiglu_gradients", "x y dout", "if(has(y), vjp(silu(x) * y, dout, x, y), vjp(swiglu_halves(x), dout, x))"},
    {"max_of_groups", "x groups axis", "reduce_max(reshaped(x, join(part(dims(x), 0, axis), dim(x, axis) / groups, groups, part(dims(x), axis + 1))), axes=[axis + 1], keep_dims=false)"},
    {"shuffled", "x groups format", "c = channel_axis(x, format); n = dim(x, c); s = join(part(dims(x), 0, c), groups, n / groups, part(dims(x), c + 1)); reshaped(transposed(reshaped(x, s), join(range_of(0, c), c + 1, c, range_of(c + 2, rank(x) + 1))), dims(x))"},
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
    {"lamb_of", "param grad rate m1 m2 p1 p2 master decay beta1 beta2 epsilon always", "p = full_precision(param, master); m = m1 * beta1 + grad * (1 - beta1); v = m2 * beta2 + grad * grad * (1 - beta2); d = m / (1 - scalar(p1)) / (sqrt(v / (1 - scalar(p2))) + epsilon) + p * decay; a = reduce_l2(p, keep_dims=false); b = reduce_l2(d, keep_dims=false); t = where(logical_and(a > 0, b > 0), a / b, 1); n = p - scalar(rate) * t * d; n, m, v, p1 * beta1, p2 * beta2, n"},
    {"scale_now", "found scale good bad grow_after shrink_after grow shrink", "g = where(found, 0, good + 1); b = where(found, bad + 1, 0); small = max(scale * shrink, 1); large = scale * grow; full = g == grow_after; low = b == shrink_after; where(low, small, where(logical_and(full, is_finite(large)), large, scale)), where(full, 0, g), where(low, 0, b)"},
    // Boxes.
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
