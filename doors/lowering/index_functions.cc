// SPDX-License-Identifier: Apache-2.0
// Elements picked and placed by lists of indices, and numbers at equal distances.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "lowering/functions.h"

namespace anymps::lowering {

namespace {

int64_t counted(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }
int64_t product(const Ints& dims, size_t first, size_t last) {
  return std::accumulate(dims.begin() + first, dims.begin() + last, int64_t{1},
                         std::multiplies<>());
}
Ints joined_dims(const Ints& dims, size_t axis, const Ints& inner, size_t behind) {
  Ints all(dims.begin(), dims.begin() + axis);
  all.insert(all.end(), inner.begin(), inner.end());
  all.insert(all.end(), dims.begin() + behind, dims.end());
  return all;
}

// A tensor and indices of several of its axes, as one index of one axis.
class Indexed {
 public:
  Indexed(Builder& builder, Tensor x, const Values& indices) : b_(builder), x_(x) {
    Ints dims = b_.dims(x);
    if (std::ssize(indices) > std::ssize(dims))
      throw std::invalid_argument("too many indices for tensor of dimension " +
                                  std::to_string(dims.size()));
    for (size_t axis = 0; axis < indices.size(); ++axis)
      if (!indices[axis].absent()) axes_.push_back(static_cast<int64_t>(axis));
    if (axes_.empty()) return;
    const bool together = axes_.back() - axes_.front() + 1 == std::ssize(axes_);
    first_ = together ? axes_.front() : 0;
    if (!together) {
      perm_ = axes_;
      for (int64_t axis = 0; axis < std::ssize(dims); ++axis)
        if (std::find(axes_.begin(), axes_.end(), axis) == axes_.end()) perm_.push_back(axis);
      x_ = b_.op("transpose", {x_}, {{"perm", perm_}}).tensor();
      dims = b_.dims(x_);
    }
    for (const int64_t axis : axes_) {
      const Ints extents = b_.dims(indices[axis].tensor());
      if (extents.size() > shape_.size())
        shape_.insert(shape_.begin(), extents.size() - shape_.size(), 1);
      for (size_t i = 0; i < extents.size(); ++i) {
        int64_t& extent = shape_[shape_.size() - extents.size() + i];
        if (extent != 1 && extents[i] != 1 && extent != extents[i])
          throw std::invalid_argument(
              "shape mismatch: indexing tensors could not be broadcast together");
        if (extent == 1) extent = extents[i];
      }
    }
    dims_ = dims;
    const size_t behind = first_ + axes_.size();
    merged_ = joined_dims(dims, first_, {product(dims, first_, behind)}, behind);
    result_ = joined_dims(dims, first_, shape_, behind);
    x_ = b_.reshape(x_, merged_);
    place_ = axes_.size() == 1 ? indices[axes_[0]].tensor() : linear(indices);
  }

  bool nothing() const { return axes_.empty(); }
  const Ints& shape() const { return result_; }  // of what is picked

  Value pick() const { return b_.op("gather", {x_, place_}, {{"axis", first_}}); }

  Value put(Value values, const std::string& mode) const {
    const Ints flat = joined_dims(merged_, first_, {product(shape_, 0, shape_.size())}, first_ + 1);
    const Tensor places = b_.reshape(place_, {flat.at(first_)});
    const Tensor updates = b_.reshape(values.tensor(), flat);
    Tensor y = b_.op("scatter", {updates, places, x_}, {{"axis", first_}, {"mode", mode}}).tensor();
    y = b_.reshape(y, dims_);
    if (perm_.empty()) return y;
    Ints back(perm_.size());
    for (size_t i = 0; i < perm_.size(); ++i) back[perm_[i]] = static_cast<int64_t>(i);
    return b_.op("transpose", {y}, {{"perm", back}});
  }

 private:
  // One that is out of range leads behind the end.
  Tensor linear(const Values& indices) const {
    Value place, bad;
    int64_t stride = merged_.at(first_);
    const int64_t end = stride;
    for (size_t i = 0; i < axes_.size(); ++i) {
      const int64_t n = dims_.at(first_ + i);
      stride = n == 0 ? 0 : stride / n;
      const Tensor given = b_.cast(indices[axes_[i]].tensor(), AMPS_I64);
      const Value below = b_.binary("less", given, int64_t{0});
      const Value index = b_.op("where", {below, b_.binary("add", given, n), given});
      const Value outside = b_.op("logical_or", {b_.binary("less", index, int64_t{0}),
                                                 b_.binary("greater_equal", index, n)});
      const Value part = stride == 1 ? index : b_.binary("mul", index, stride);
      place = place.absent() ? part : b_.op("add", {place, part});
      bad = bad.absent() ? outside : b_.op("logical_or", {bad, outside});
    }
    const Value checked =
        b_.op("where", {bad, b_.number(static_cast<double>(end), AMPS_I64), place});
    return b_.op("expand", {checked}, {{"shape", shape_}}).tensor();
  }

  Builder& b_;
  Tensor x_, place_;
  Ints axes_, perm_, shape_, dims_, merged_, result_;  // shape_: of the indices
  int64_t first_ = 0;
};

// picked(x, indices): one index, or none, for each of the first axes.
Values picked(Call& c) {
  const Indexed x(c.builder, c.part(0).tensor(), c.part(1).values());
  return {x.nothing() ? c.part(0) : x.pick()};
}

// put_at(x, indices, values, mode): x with values, which broadcast, at what indices pick.
Values put_at(Call& c) {
  Builder& b = c.builder;
  const Tensor x = c.part(0).tensor();
  const Value given = c.part(2).is_tensor() ? Value(b.cast(c.parts[2].tensor(), b.dtype(x)))
                                            : Value(b.number(c.parts[2], b.dtype(x)));
  const Indexed at(b, x, c.part(1).values());
  if (at.nothing()) {
    const Value all = b.op("expand", {given}, {{"shape", b.dims(x)}});
    return {c.part(3).text() == "set" ? all : b.op(c.part(3).text(), {Value(x), all})};
  }
  // Leading extents of 1 may be more than there are axes.
  Tensor values = given.tensor();
  Ints dims = b.dims(values);
  while (dims.size() > at.shape().size() && dims.front() == 1) dims.erase(dims.begin());
  values = b.reshape(values, dims);
  if (dims != at.shape()) values = b.op("expand", {values}, {{"shape", at.shape()}}).tensor();
  return {at.put(values, c.part(3).text())};
}

// put_by_mask(x, mask, values, add): x with values where a mask of its first axes is true. They
// broadcast; with a leading extent above 1 they are taken in order, one for each true place.
Values put_by_mask(Call& c) {
  Builder& b = c.builder;
  const Tensor x = c.part(0).tensor();
  Tensor mask = c.part(1).tensor(), values = b.cast(c.part(2).tensor(), b.dtype(x));
  const Ints dims = b.dims(x), chosen = b.dims(mask);
  if (chosen.size() > dims.size() || !std::equal(chosen.begin(), chosen.end(), dims.begin()))
    throw std::invalid_argument("the shape of a mask is that of the first axes");
  Ints extents = chosen, given = b.dims(values);
  extents.resize(dims.size(), 1);
  mask = b.op("expand", {b.reshape(mask, extents)}, {{"shape", dims}}).tensor();
  const size_t behind = dims.size() - chosen.size();
  while (given.size() > behind && given.front() == 1) given.erase(given.begin());
  if (given.size() > behind + 1)
    throw std::invalid_argument("the values have more axes than what the mask picks");
  values = b.reshape(values, given);
  const bool in_order = given.size() > behind;
  Ints whole(in_order ? given.begin() : dims.begin(),
             in_order ? given.begin() + 1 : dims.begin() + chosen.size());
  whole.insert(whole.end(), dims.begin() + chosen.size(), dims.end());
  const Value all = b.op("expand", {values}, {{"shape", whole}});
  const auto set = [&](const Value& to) {
    return in_order ? b.op("masked_scatter", {to, mask, all}) : b.op("where", {mask, all, to});
  };
  if (!c.part(3).flag()) return {set(x)};
  return {
      b.op("add", {Value(x), set(b.op("expand", {b.number(0, b.dtype(x))}, {{"shape", dims}}))})};
}

// joined(list, axis, type): vectors without elements go with everything.
Values joined(Call& c) {
  Values kept;
  for (const Value& item : c.part(0).values())
    if (c.builder.dims(item.tensor()) != Ints{0})
      kept.push_back(c.builder.cast(item.tensor(), c.part(2).dtype()));
  if (kept.empty()) return {c.builder.cast(c.part(0).values().at(0).tensor(), c.part(2).dtype())};
  const int64_t axis = counted(c.part(1).integer(), c.builder.rank(kept[0].tensor()));
  return {kept.size() == 1 ? kept[0] : c.builder.op("concat", kept, {{"axis", axis}}, 1)[0]};
}

// cut(x, shape, axis): x without what lies outside a shape, except along an axis.
Values cut(Call& c) {
  const Ints dims = c.builder.dims(c.part(0).tensor());
  Ints ends = c.part(1).ints();
  if (c.has(2)) ends.at(counted(c.parts[2].integer(), std::ssize(dims))) = INT64_MAX;
  bool whole = true;
  for (size_t i = 0; i < dims.size(); ++i) whole = whole && dims[i] <= ends.at(i);
  if (whole) return {c.part(0)};
  return {c.builder.op("slice", {c.part(0)}, {{"starts", Ints(dims.size(), 0)}, {"ends", ends}})};
}

std::complex<double> complex_of(const Value& number) {
  if (const auto* given = std::get_if<std::complex<double>>(&number)) return *given;
  return number.number();
}

// Numbers as values of a type: those of integers are whole.
std::complex<double> in_type(const Value& number, amps_dtype type) {
  const std::complex<double> given = complex_of(number);
  return is_float(type) || is_complex(type) ? given : std::trunc(given.real());
}

Value coordinates(Builder& b, int64_t count, amps_dtype type) {
  const Tensor at = b.op("coordinate_along_axis", {},
                         {{"shape", Ints{count}}, {"axis", int64_t{0}}, {"dtype", AMPS_I64}})
                        .tensor();
  return b.cast(at, type);
}

// spaced(start, end, count, type): both ends, and numbers between them at equal distances.
Values spaced(Call& c) {
  Builder& b = c.builder;
  const int64_t count = c.part(2).integer();
  const amps_dtype type = c.part(3).dtype(), wide = is_complex(type) ? AMPS_C128 : AMPS_F64;
  const auto start = in_type(c.part(0), type), end = in_type(c.part(1), type);
  const auto step = count > 1 ? (end - start) / static_cast<double>(count - 1) : 0.0;
  const auto number = [&](std::complex<double> value) { return b.number(Value(value), wide); };
  const Value at = coordinates(b, count, wide);
  const Value back = b.op("sub", {number(static_cast<double>(count - 1)), at});
  const Value low = b.op("add", {b.op("mul", {at, number(step)}), number(start)});
  const Value high = b.op("sub", {number(end), b.op("mul", {back, number(step)})});
  const Value first =
      b.binary("less", coordinates(b, count, AMPS_I64), std::max<int64_t>(count / 2, count == 1));
  return {b.op("where", {first, low, high})};
}

// stepped(start, end, step, type, closed): numbers from start on; `closed`: the end is one of them.
Values stepped(Call& c) {
  Builder& b = c.builder;
  const amps_dtype type = c.part(3).dtype();
  const bool wide = is_float(type) || is_complex(type), closed = c.part(4).flag();
  const double start = c.part(0).number(), end = c.part(1).number(), step = c.part(2).number();
  if (step == 0) throw std::invalid_argument("step must be nonzero");
  if (!std::isfinite(start) || !std::isfinite(end))
    throw std::invalid_argument("unsupported range: " + std::to_string(start) + " -> " +
                                std::to_string(end));
  if ((step > 0 && end < start) || (step < 0 && end > start))
    throw std::invalid_argument("upper bound and lower bound inconsistent with step sign");
  double steps = (end - start) / step;
  if (const auto* a = std::get_if<int64_t>(&c.part(0)), *z = std::get_if<int64_t>(&c.part(1));
      a && z)
    steps = static_cast<double>(*z - *a) / step;
  const auto count = static_cast<int64_t>(closed ? std::floor(steps + 1) : std::ceil(steps));
  const Value at = coordinates(b, count, wide ? AMPS_F64 : AMPS_I64);
  if (wide) return {b.binary("add", b.binary("mul", at, step), start)};
  const auto whole = [](const Value& number) {
    const auto* given = std::get_if<double>(&number);
    return given ? static_cast<int64_t>(*given) : number.integer();
  };
  return {b.binary("add", b.binary("mul", at, whole(c.part(2))), whole(c.part(0)))};
}

// folded(x, axes, keep, op): all elements along axes made one by an op of two that asks for no
// order.
Values folded(Call& c) {
  Builder& b = c.builder;
  const Ints dims = b.dims(c.part(0).tensor()), axes = c.part(1).ints();
  const auto among = [&](int64_t axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  Ints order = axes, shape;
  for (int64_t axis = 0; axis < std::ssize(dims); ++axis) {
    if (!among(axis)) order.push_back(axis);
    if (!among(axis) || c.part(2).flag()) shape.push_back(among(axis) ? 1 : dims[axis]);
  }
  int64_t count = 1, others = 1;
  for (int64_t axis = 0; axis < std::ssize(dims); ++axis)
    (among(axis) ? count : others) *= dims[axis];
  if (count == 0) throw std::invalid_argument("a fold of nothing");
  Tensor y = c.part(0).tensor();
  if (!std::is_sorted(order.begin(), order.end()))
    y = b.op("transpose", {y}, {{"perm", order}}).tensor();
  y = b.reshape(y, {count, others});
  for (int64_t half = count / 2; count > 1; count -= half, half = count / 2) {
    const Value whole = y;
    const Values part =
        b.op("split", std::span(&whole, 1),
             {{"axis", int64_t{0}}, {"sizes", Ints{half, half, count - 2 * half}}}, 3);
    y = b.op(c.part(3).text(), {part[0], part[1]}).tensor();
    if (count > 2 * half) y = b.op("concat", {y, part[2]}, {{"axis", int64_t{0}}}).tensor();
  }
  return {b.reshape(y, shape)};
}

const Functions registered = {{"picked", picked},           {"put_at", put_at},  {"joined", joined},
                              {"put_by_mask", put_by_mask}, {"folded", folded},  {"cut", cut},
                              {"spaced", spaced},           {"stepped", stepped}};

}  // namespace

}  // namespace anymps::lowering
