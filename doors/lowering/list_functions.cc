// SPDX-License-Identifier: Apache-2.0
// Functions over lists of tensors or numbers, and those that place parts of tensors.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "lowering/evaluate.h"
#include "lowering/functions.h"

namespace anymps::lowering {

namespace {

int64_t counted(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

// parts(x, sizes, axis): a size of -1 takes what is left.
Values parts(Call& c) {
  const Ints dims = c.builder.dims(c.part(0).tensor());
  const int64_t axis = counted(c.part(2).integer(), std::ssize(dims));
  Ints sizes = c.part(1).ints();
  const int64_t known =
      std::accumulate(sizes.begin(), sizes.end(), int64_t{0},
                      [](int64_t sum, int64_t n) { return sum + std::max<int64_t>(n, 0); });
  for (int64_t& size : sizes)
    if (size < 0) size = dims.at(axis) - known;
  return c.builder.op("split", std::span(c.parts.data(), 1), {{"axis", axis}, {"sizes", sizes}},
                      sizes.size());
}

Values unstacked(Call& c) {
  const Ints dims = c.builder.dims(c.part(0).tensor());
  const int64_t axis = counted(c.part(1).integer(), std::ssize(dims));
  Values pieces = c.builder.op("split", std::span(c.parts.data(), 1),
                               {{"axis", axis}, {"sizes", Ints(dims.at(axis), 1)}}, dims.at(axis));
  Ints without = dims;
  without.erase(without.begin() + axis);
  // Their type is that of x, also for gradients whose type Paddle does not infer.
  for (Value& piece : pieces)
    piece = Tensor{c.builder.reshape(piece.tensor(), without).value, false, true};
  return pieces;
}

Values extents(Call& c) {
  Ints sizes;
  for (const Value& item : c.part(0).values()) {
    const Ints dims = c.builder.dims(item.tensor());
    sizes.push_back(dims.at(counted(c.part(1).integer(), std::ssize(dims))));
  }
  return {sizes};
}

// The shape to expand x to: -1 keeps an extent.
Values expanded(Call& c) {
  const Ints dims = c.builder.dims(c.part(0).tensor());
  Ints shape = c.part(1).ints();
  const int64_t more = std::ssize(shape) - std::ssize(dims);
  for (int64_t i = 0; i < std::ssize(shape); ++i)
    if (shape[i] < 0) shape[i] = i < more ? 1 : dims[i - more];
  return {shape};
}

Values opposite(Call& c) {
  Ints numbers = c.part(0).ints();
  for (int64_t& number : numbers) number = -number;
  return {numbers};
}

// Extents with the others as 1.
Values only(Call& c) {
  const Ints dims = c.part(0).ints();
  Ints kept(dims.size(), 1);
  for (const int64_t axis : c.part(1).ints()) kept.at(axis) = dims.at(axis);
  return {kept};
}

// [a, b] as [a, 1, b, 1], or [1, a, 1, b].
Values alternating(Call& c) {
  Ints all;
  for (const int64_t extent : c.part(0).ints()) {
    all.push_back(c.part(1).flag() ? 1 : extent);
    all.push_back(c.part(1).flag() ? extent : 1);
  }
  return {all};
}
Values times(Call& c) {
  Ints a = c.part(0).ints();
  const Ints b = c.part(1).ints();
  for (size_t i = 0; i < a.size(); ++i) a[i] *= b.at(i);
  return {a};
}

Values rolled(Call& c) {
  const Tensor x = c.part(0).tensor();
  const Ints dims = c.builder.dims(x), shifts = c.part(1).ints();
  Ints axes = c.part(2).ints();
  Tensor y = x;
  if (axes.empty()) {
    y = c.builder.reshape(
        x, {std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>())});
    axes = {0};
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const Ints now = c.builder.dims(y);
    const int64_t axis = counted(axes[i], std::ssize(now));
    if (axis < 0 || axis >= std::ssize(now))
      throw std::invalid_argument("Dimension out of range: there are " +
                                  std::to_string(now.size()) + ", not " + std::to_string(axes[i]));
    const int64_t n = now[axis];
    const int64_t shift = n == 0 ? 0 : (shifts.at(i) % n + n) % n;
    if (shift == 0) continue;
    const Value whole = y;
    Values two = c.builder.op("split", std::span(&whole, 1),
                              {{"axis", axis}, {"sizes", Ints{n - shift, shift}}}, 2);
    y = c.builder.op("concat", {two[1], two[0]}, {{"axis", axis}}).tensor();
  }
  return {c.builder.reshape(y, dims)};
}

Values mesh(Call& c) {
  const Values& list = c.part(0).values();
  Ints shape;
  for (const Value& item : list) {
    const Ints dims = c.builder.dims(item.tensor());
    shape.push_back(dims.empty() ? 1 : dims[0]);
  }
  Values grids;
  for (size_t i = 0; i < list.size(); ++i) {
    Ints along(shape.size(), 1);
    along[i] = shape[i];
    grids.push_back(
        c.builder.op("expand", {c.builder.reshape(list[i].tensor(), along)}, {{"shape", shape}}));
  }
  return grids;
}

// mesh_gradients(xs, grids): each grid summed to the axis that its vector lies along.
Values mesh_gradients(Call& c) {
  Values all;
  for (size_t i = 0; i < c.part(0).values().size(); ++i) {
    const Tensor grid = c.part(1).values().at(i).tensor();
    Ints axes(c.builder.rank(grid));
    std::iota(axes.begin(), axes.end(), 0);
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
    const NamedValues over{{"axes", axes}, {"keep_dims", false}, {"empty_axes", "none"}};
    all.push_back(c.builder.reshape(c.builder.op("reduce_sum", {Value(grid)}, over).tensor(),
                                    c.builder.dims(c.part(0).values()[i].tensor())));
  }
  return all;
}

Ints common_shape(const Builder& builder, const Values& list) {
  Ints shape;
  for (const Value& item : list) {
    const Ints dims = builder.dims(item.tensor());
    if (dims.size() > shape.size()) shape.insert(shape.begin(), dims.size() - shape.size(), 1);
    for (size_t i = 0; i < dims.size(); ++i) {
      int64_t& extent = shape[shape.size() - dims.size() + i];
      if (extent == 1) extent = dims[i];
    }
  }
  return shape;
}

Values broadcast_all(Call& c) {
  const Ints shape = common_shape(c.builder, c.part(0).values());
  Values all;
  for (const Value& item : c.part(0).values())
    all.push_back(c.builder.op("expand", {item}, {{"shape", shape}}));
  return all;
}

// Indices of the leading axes, one tensor for each, as places for gather_nd and scatter_nd.
Values index_table(Call& c) {
  const Values& list = c.part(0).values();
  for (const Value& item : list)
    if (c.builder.dtype(item.tensor()) == AMPS_BOOL) {
      if (list.size() != 1) throw std::invalid_argument("a mask among indices is not supported");
      return {c.builder.op("nonzero", {item}, {{"axes_first", false}})};
    }
  Ints shape = common_shape(c.builder, list);
  Values columns;
  shape.push_back(1);
  for (const Value& item : list) {
    Ints dims = c.builder.dims(item.tensor());
    dims.push_back(1);
    const Tensor column = c.builder.reshape(c.builder.cast(item.tensor(), AMPS_I64), dims);
    columns.push_back(c.builder.op("expand", {column}, {{"shape", shape}}));
  }
  return c.builder.op("concat", columns, {{"axis", int64_t{-1}}}, 1);
}

Values chain(Call& c) {
  const Values& list = c.part(0).values();
  Value product = list.at(0);
  for (size_t i = 1; i < list.size(); ++i)
    product = apply(c.builder, "product_of", {product, list[i], false, false}, {}, 1)[0];
  return {product};
}

Values powered(Call& c) {
  int64_t n = c.part(1).integer();
  Value base = c.part(0);
  if (n == 0) {
    const Tensor x = base.tensor();
    const Ints dims = c.builder.dims(x);
    const Tensor eye =
        c.builder
            .op("eye_like",
                {c.builder.op("fill", {}, {{"shape", Ints(dims.end() - 2, dims.end())}})},
                {{"dtype", c.builder.dtype(x)}})
            .tensor();
    return {c.builder.op("expand", {eye}, {{"shape", dims}})};
  }
  if (n < 0) base = c.builder.op("inverse", {base});
  Value result;
  for (n = std::abs(n); n > 0; n /= 2) {
    if (n % 2) result = result.absent() ? base : c.builder.op("matmul", {result, base});
    if (n > 1) base = c.builder.op("matmul", {base, base});
  }
  return {result};
}

// An axis of extent 3, unless one is given (Paddle's 9 says none).
Values cross_axis(Call& c) {
  const Ints dims = c.builder.dims(c.part(0).tensor());
  if (c.part(1).integer() != 9) return {c.part(1)};
  const auto found = std::find(dims.begin(), dims.end(), 3);
  if (found == dims.end()) throw std::invalid_argument("no axis has the extent 3");
  return {static_cast<int64_t>(found - dims.begin())};
}

// assigned(x, value, starts, ends, steps, axes, decrease): x with value at a slice of it, in whose
// shape the axes of `decrease` are left out.
Values assigned(Call& c) {
  const Ints dims = c.builder.dims(c.part(0).tensor()), axes = c.part(5).ints(),
             decrease = c.part(6).ints();
  Ints starts = c.part(2).ints(), ends = c.part(3).ints(), steps = c.part(4).ints(), shape = dims;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t n = dims.at(counted(axes[i], std::ssize(dims))), step = steps.at(i);
    const auto bounded = [&](int64_t at) {
      if (at < 0) at = std::max(at + n, step < 0 ? int64_t{-1} : int64_t{0});
      return std::min(at, step < 0 ? n - 1 : n);
    };
    const int64_t first = bounded(starts.at(i));
    const int64_t last = step < 0 && ends.at(i) < -n ? -1 : bounded(ends.at(i));
    const int64_t count =
        step > 0 ? (last - first + step - 1) / step : (first - last - step - 1) / -step;
    shape.at(counted(axes[i], std::ssize(dims))) = std::max<int64_t>(count, 0);
  }
  Tensor value = c.builder.cast(c.part(1).tensor(), c.builder.dtype(c.part(0).tensor()));
  Ints outer = shape;  // of the value: without the axes that were picked at one place
  for (const int64_t axis : decrease) outer.at(axis) = -1;
  std::erase(outer, -1);
  Ints given = c.builder.dims(value);
  while (given.size() > outer.size() && given.size() > 1 && given[0] == 1 && decrease.empty())
    given.erase(given.begin());  // as broadcasting has it
  value = c.builder.reshape(value, given);
  if (given.size() < outer.size() || !decrease.empty()) {
    value = c.builder.op("expand", {value}, {{"shape", outer}}).tensor();
    value = c.builder.reshape(value, shape);
  } else {
    value = c.builder.op("expand", {value}, {{"shape", shape}}).tensor();
  }
  return {c.builder.op("slice_update", {c.part(0), value},
                       {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}})};
}

// summed_slice(x, starts, ends, steps, axes, decrease, shape): a slice of x, summed to a shape.
Values summed_slice(Call& c) {
  Tensor y = c.builder
                 .op("slice", {c.part(0)},
                     {{"starts", c.part(1)},
                      {"ends", c.part(2)},
                      {"steps", c.part(3)},
                      {"axes", c.part(4)}})
                 .tensor();
  Ints dims = c.builder.dims(y);
  for (const int64_t axis : c.part(5).ints()) dims.at(axis) = -1;
  std::erase(dims, -1);
  const Ints shape = c.part(6).ints();
  if (shape.size() > dims.size()) dims.insert(dims.begin(), shape.size() - dims.size(), 1);
  y = c.builder.reshape(y, dims);
  if (dims == shape) return {y};
  const Tensor like = c.builder.numbers({0.0}, Ints(shape.size(), 1), c.builder.dtype(y));
  return {c.builder.op("sum_to", {y, c.builder.op("expand", {like}, {{"shape", shape}})})};
}

Values sum_each(Call& c) {
  Values all;
  for (size_t i = 0; i < c.part(1).values().size(); ++i)
    all.push_back(
        apply(c.builder, "sum_like", {c.part(0).values().at(i), c.part(1).values()[i]}, {}, 1)[0]);
  return all;
}

// element_places(x, indices, dims, strides, index_dims, index_strides, offset, shape): where in the
// memory of x the elements lie that indices pick: each at the sum of its coordinates times strides,
// and of its indices times theirs. Strides and offset of indices count bytes.
Values element_places(Call& c) {
  Builder& b = c.builder;
  const auto size = static_cast<int64_t>(b.api().dtype_size(b.dtype(c.part(0).tensor())));
  const Ints strides = c.part(3).ints(), extents = c.part(4).ints(), steps = c.part(5).ints(),
             shape = c.part(7).ints();
  const int64_t offset = c.part(6).integer() / size;
  Value place = b.number(static_cast<double>(offset), AMPS_I64);
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    if (strides[axis] == 0 || shape.at(axis) == 1) continue;
    Ints along(shape.size(), 1);
    along[axis] = shape[axis];
    const Value at =
        b.op("coordinate_along_axis", {},
             {{"shape", along}, {"axis", static_cast<int64_t>(axis)}, {"dtype", AMPS_I64}});
    place = b.op("add", {place, b.binary("mul", at, strides[axis])});
  }
  const Values& indices = c.part(1).values();
  for (size_t i = 0; i < indices.size(); ++i) {
    // Its axes are the first ones along which x itself does not move.
    if (b.dtype(indices[i].tensor()) == AMPS_BOOL)
      throw std::invalid_argument("a mask among indices is not supported here");
    Ints dims = b.dims(indices[i].tensor());
    const auto first = std::find(strides.begin(), strides.end(), 0) - strides.begin();
    dims.insert(dims.begin(), std::min<int64_t>(first, std::ssize(shape) - std::ssize(dims)), 1);
    dims.resize(shape.size(), 1);
    const Tensor given = b.cast(b.reshape(indices[i].tensor(), dims), AMPS_I64);
    const Value index = b.op("where", {b.binary("less", given, int64_t{0}),
                                       b.binary("add", given, extents.at(i)), given});
    place = b.op("add", {place, b.binary("mul", index, steps.at(i) / size)});
  }
  return {b.op("expand", {place}, {{"shape", shape}})};
}

Values cropped(Call& c) {
  const Ints dims = c.builder.dims(c.part(0).tensor()), offsets = c.part(2).ints();
  Ints shape = c.part(1).ints(), ends;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) shape[i] = dims.at(i) - offsets.at(i);
    ends.push_back(offsets.at(i) + shape[i]);
  }
  return {c.builder.op("slice", {c.part(0)}, {{"starts", offsets}, {"ends", ends}})};
}

// numbers_tensor(numbers, shape, dtype): where there are twice as many, real and imaginary parts.
Values numbers_tensor(Call& c) {
  const Floats numbers = c.part(0).floats();
  const Ints shape = c.part(1).ints();
  const int64_t count =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  if (count > 0 && std::ssize(numbers) == 2 * count) {
    Floats parts[2];
    for (size_t i = 0; i < numbers.size(); ++i) parts[i % 2].push_back(numbers[i]);
    const Value whole =
        c.builder.op("make_complex", {c.builder.numbers(parts[0], shape, AMPS_F64),
                                      c.builder.numbers(parts[1], shape, AMPS_F64)});
    return {c.builder.cast(whole.tensor(), c.part(2).dtype())};
  }
  return {c.builder.numbers(numbers, shape, c.part(2).dtype())};
}
Values list_of(Call& c) {  // numbers as an f32 tensor of one axis
  Floats numbers;
  for (const Value& part : c.parts) numbers.push_back(part.number());
  return {c.builder.numbers(numbers, {std::ssize(numbers)}, AMPS_F32)};
}
// arranged(start, end, step, type, closed): how many there are is counted in the type, as rounding
// decides it; closed, the end may be one of them.
Values arranged(Call& c) {
  const bool whole =
      !std::holds_alternative<double>(c.part(0)) && !std::holds_alternative<double>(c.part(2));
  const double start = c.part(0).number(), step = c.part(2).number();
  const double end = c.part(1).number();
  const auto narrow = [](double number) { return static_cast<float>(number); };
  const double steps = c.part(3).dtype() == AMPS_F64 || whole
                           ? (end - start) / step
                           : (narrow(end) - narrow(start)) / narrow(step);
  const double count =
      std::max(0.0, c.has(4) && c.parts[4].flag() ? std::floor(steps) + 1 : std::ceil(steps));
  const Tensor at = c.builder
                        .op("coordinate_along_axis", {},
                            {{"shape", Ints{static_cast<int64_t>(count)}},
                             {"axis", int64_t{0}},
                             {"dtype", AMPS_I64}})
                        .tensor();
  const Tensor x = whole ? at : c.builder.cast(at, AMPS_F64);
  return {c.builder.binary("add", c.builder.binary("mul", x, c.part(2)), c.part(0))};
}

const Functions registered = {{"parts", parts},
                              {"unstacked", unstacked},
                              {"extents", extents},
                              {"expanded", expanded},
                              {"opposite", opposite},
                              {"only", only},
                              {"alternating", alternating},
                              {"times", times},
                              {"rolled", rolled},
                              {"mesh", mesh},
                              {"mesh_gradients", mesh_gradients},
                              {"broadcast_all", broadcast_all},
                              {"index_table", index_table},
                              {"chain", chain},
                              {"powered", powered},
                              {"cross_axis", cross_axis},
                              {"assigned", assigned},
                              {"cropped", cropped},
                              {"summed_slice", summed_slice},
                              {"sum_each", sum_each},
                              {"element_places", element_places},
                              {"numbers_tensor", numbers_tensor},
                              {"list_of", list_of},
                              {"arranged", arranged}};

}  // namespace

}  // namespace anymps::lowering
