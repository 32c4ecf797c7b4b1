// SPDX-License-Identifier: Apache-2.0
// Reference kernels of slice_update and of the gradients of slice, tile and pad.
#include "drivers/reference/dense.h"
#include "drivers/reference/move.h"
#include "ops/shape_rules.h"
#include "semantics/border.h"

namespace anymps {

namespace {

// Moves `update` into the range of y that the op's starts, ends, axes and steps name.
void write_range(const ReferenceArgs& args, const View& update) {
  const View& y = args.out[0];
  const auto ranges =
      slice_ranges(y.shape(), args.ints(2, "starts"), args.ints(3, "ends"), args.ints(4, "axes"),
                   args.ints(5, "steps"), args.op.name.c_str());
  require(update.rank() == y.rank(), "[{}] the update has rank {}, the tensor rank {}",
          args.op.name, update.rank(), y.rank());
  for (size_t i = 0; i < ranges.size(); ++i)
    require(ranges[i].length == update.shape()[i],
            "[{}] the range has the extent {} along axis {}, the update {}", args.op.name,
            ranges[i].length, i, update.shape()[i]);
  for_each_index(update.shape(), [&](const Shape& index) {
    Shape to = index;
    for (size_t i = 0; i < index.size(); ++i) to[i] = ranges[i].start + index[i] * ranges[i].step;
    move_element(y, y.offset(to), update, update.offset(index));
  });
}

// Adds each element of dy to the element of a dense dx that `source` names, times 1, -1 or 0.
template <typename Source>
void add_to_sources(const ReferenceArgs& args, Source source) {
  const View &dy = args.in[0], &dx = args.out[0];
  with_accumulator(dy.dtype, [&]<typename A>() {
    const std::vector<A> gradient = read_dense<A>(dy);
    std::vector<A> sums(dx.count(), A(0));
    size_t at = 0;
    for_each_index(dy.shape(), [&](const Shape& index) {
      const auto [place, sign] = source(index);
      const A element = gradient[at++];
      if (sign == 0) return;
      int64_t flat = 0;
      for (size_t i = 0; i < place.size(); ++i) flat = flat * dx.shape()[i] + place[i];
      A& sum = sums[flat];
      sum = sign > 0 ? sum + element : sum - element;
    });
    write_dense(dx, sums);
  });
}

}  // namespace

REFERENCE(slice_update) {
  require_shape(args, args.in[0].shape() == args.out[0].shape());
  move_elements(args.in[0], args.out[0], [](const Shape& index) { return index; });
  write_range(args, args.in[1]);
}

REFERENCE(slice_gradient) {
  const View& dx = args.out[0];
  const auto size = static_cast<int64_t>(size_of(dx.dtype));
  for_each_index(dx.shape(), [&](const Shape& index) {
    std::memset(dx.data + dx.offset(index) * size, 0, size);
  });
  write_range(args, args.in[0]);
}

REFERENCE(tile_gradient) {
  const View& dx = args.out[0];
  add_to_sources(args, [&](const Shape& index) {
    Shape place = index;
    for (size_t i = 0; i < index.size(); ++i) place[i] = index[i] % dx.shape()[i];
    return std::pair(place, 1);
  });
}

REFERENCE(pad_gradient) {
  const View& dx = args.out[0];
  const std::vector<int64_t>& pads = args.attrs.ints("pads");
  const std::string& mode = args.attrs.s("mode");
  add_to_sources(args, [&](const Shape& index) {
    Shape place = index;
    int sign = 1;
    for (size_t i = 0; i < index.size(); ++i) {
      const int64_t extent = dx.shape()[i], at = index[i] - pads[i];
      if (extent == 0 && mode == "constant") return std::pair(place, 0);
      const auto element = border_element(mode, at, extent);
      if (!element) return std::pair(place, 0);
      place[i] = element->place;
      if (element->negated) sign = -sign;
    }
    return std::pair(place, sign);
  });
}

}  // namespace anymps
