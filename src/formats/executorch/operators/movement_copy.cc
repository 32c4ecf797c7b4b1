// SPDX-License-Identifier: Apache-2.0
// Operators of torch that copy a tensor: as it is, in another dtype, or repeated. Tensors of the
// engine have no memory format, so the order of axes in memory plays no role.
#include "formats/executorch/operators/aten.h"

namespace anymps::executorch {

namespace {

Values same(KernelArguments& c) { return {c.tensor(0)}; }

// Any dtype may become any other.
Values to_copy(KernelArguments& c) {
  Value* x = c.tensor(0);
  if (x->dtype() == DType::kC64 && c.out() != DType::kC64) x = c.add("real_part", {x});
  return {c.cast(x, c.out())};
}

// The elements of the second tensor, in the first one's shape and dtype.
Values copy(KernelArguments& c) {
  Value* to = c.tensor(0);
  return {expand_like(c, c.cast(c.tensor(1), to->dtype()), to)};
}

Values expand(KernelArguments& c) {
  Value* x = c.tensor(0);
  if (c.is_known(1) && !c.ints(1).empty()) return {c.add("expand", {x}, {{"shape", c.ints(1)}})};
  return {c.add("expand", {x, c.shape(1)})};
}

Values repeat(KernelArguments& c) {
  Value *x = c.tensor(0), *repeats = c.shape(1);
  const int64_t count = known_extent(c, repeats, 0), more = count - c.rank(x);
  c.check(more >= 0, "{} repeats for rank {}", count, c.rank(x));
  x = unsqueeze(c, x, iota(0, more));
  if (count == 0) return {x};
  if (!c.is_known(1)) return {c.add("tile", {x, repeats})};
  return {c.add("tile", {x}, {{"repeats", c.ints(1)}})};
}

// Place i as often as repeats[i] says: the first place at which the running sum is above.
Values repeat_interleave(KernelArguments& c) {
  Value* repeats = c.cast(c.tensor(0), DType::kI64);
  c.check(c.rank(repeats) == 1, "repeats must be a vector, they have rank {}", c.rank(repeats));
  Value* ends = c.add("cumsum", {repeats}, {{"axis", 0}});
  Value* total = c.add("reduce_sum", {repeats}, {{"keep_dims", false}});
  if (!c.is_none(1)) total = c.number(1, DType::kI64);
  Value* places = unsqueeze(c, numbers_to(c, total), {1});
  Value* past = c.cast(c.add("less_equal", {unsqueeze(c, ends, {0}), places}), DType::kI64);
  return {c.add("reduce_sum", {past}, {{"axes", Ints{1}}, {"keep_dims", false}})};
}

Values flip(KernelArguments& c) {
  Value* x = c.tensor(0);
  const Ints axes = c.axes(1, x);
  if (axes.empty() || c.rank(x) == 0) return {x};
  return {c.add("reverse", {x}, {{"axes", axes}})};
}

Value* rolled(KernelArguments& c, Value* x, int64_t axis, int64_t shift) {
  const int64_t extent = known_extent(c, x, axis);
  if (extent == 0) return x;
  const int64_t start = (extent - shift % extent) % extent;
  if (start == 0) return x;
  return c.add("concat", {slice(c, x, axis, start, extent), slice(c, x, axis, 0, start)},
               {{"axis", axis}});
}

// Without axes the tensor is rolled as if it were flat.
Values roll(KernelArguments& c) {
  Value* x = c.tensor(0);
  const Ints shifts = c.ints(1), axes = c.axes(2, x);
  if (c.rank(x) == 0) return {x};
  if (axes.empty()) {
    c.check(shifts.size() == 1, "{} shifts without axes", shifts.size());
    Value* flat = rolled(c, reshape(c, x, {-1}), 0, shifts[0]);
    return {c.add("reshape", {flat, c.add("shape", {x})}, {{"allow_zero", true}})};
  }
  c.check(shifts.size() == axes.size(), "{} shifts for {} axes", shifts.size(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i) x = rolled(c, x, axes[i], shifts[i]);
  return {x};
}

// torch lists pads from the last axis on, before and after.
Ints engine_pads(KernelArguments& c, const Ints& pairs, int64_t rank) {
  c.check(pairs.size() % 2 == 0 && std::ssize(pairs) <= 2 * rank, "{} pads for rank {}",
          pairs.size(), rank);
  Ints pads(place(2 * rank), 0);
  for (size_t i = 0; i < pairs.size() / 2; ++i) {
    const size_t axis = place(rank) - 1 - i;
    pads[axis] = pairs[2 * i];
    pads[axis + place(rank)] = pairs[2 * i + 1];
  }
  return pads;
}

Values constant_pad_nd(KernelArguments& c) {
  Value* x = c.tensor(0);
  const Ints pads = engine_pads(c, c.ints(1), c.rank(x));
  if (c.rank(x) == 0) return {x};
  return {c.add("pad", {x, nullptr, c.number(2, x->dtype())}, {{"pads", pads}})};
}

Values pad(KernelArguments& c) {
  Value* x = c.tensor(0);
  const Ints pads = engine_pads(c, c.ints(1), c.rank(x));
  return {c.add("pad", {x}, {{"pads", pads}, {"mode", c.engine_op}})};
}

Values tril(KernelArguments& c) {
  return {c.add("trilu", {c.tensor(0)}, {{"k", c.i(1)}, {"upper", false}})};
}
Values triu(KernelArguments& c) {
  return {c.add("trilu", {c.tensor(0)}, {{"k", c.i(1)}, {"upper", true}})};
}

Values conj_physical(KernelArguments& c) {
  Value* x = c.tensor(0);
  return {x->dtype() == DType::kC64 ? c.add("conjugate", {x}) : x};
}

Values view_as_real(KernelArguments& c) {
  Value* x = c.tensor(0);
  return {c.add("stack", {c.add("real_part", {x}), c.add("imaginary_part", {x})},
                {{"axis", c.rank(x)}})};
}

const KernelConverters kAtenCopy{
    {"aten::_conj_physical.out", conj_physical},
    {{"aten::_to_copy.out", "dim_order_ops::_to_dim_order_copy.out"}, to_copy},
    {{"aten::alias", "aten::alias_copy.out", "aten::clone.out", "aten::detach_copy.out",
      "aten::lift_fresh_copy.out", "dim_order_ops::_clone_dim_order.out", "et_copy::_d2h_copy.out",
      "et_copy::_h2d_copy.out"},
     same},
    {"aten::constant_pad_nd.out", constant_pad_nd},
    {"aten::copy.out", copy},
    {"aten::copy_", copy, "", {0}},
    {{"aten::expand", "aten::expand_copy.out"}, expand},
    {"aten::flip.out", flip},
    {{"aten::reflection_pad1d.out", "aten::reflection_pad2d.out", "aten::reflection_pad3d.out"},
     pad,
     "reflect"},
    {"aten::repeat.out", repeat},
    {"aten::repeat_interleave.Tensor_out", repeat_interleave},
    {{"aten::replication_pad1d.out", "aten::replication_pad2d.out", "aten::replication_pad3d.out"},
     pad,
     "edge"},
    {"aten::roll.out", roll},
    {"aten::tril.out", tril},
    {"aten::triu.out", triu},
    {"aten::view_as_real_copy.out", view_as_real},
};

}  // namespace

}  // namespace anymps::executorch
