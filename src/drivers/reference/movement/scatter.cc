// SPDX-License-Identifier: Apache-2.0
// Reference kernels of scatters: start with data or zeros, then apply one update after the other.
#include <map>

#include "drivers/reference/lines.h"
#include "drivers/reference/move.h"
#include "semantics/scatter_modes.h"

namespace anymps {

namespace {

void start(const ReferenceArgs& args) {
  const View& y = args.out[0];
  if (args.has(2)) {
    require_shape(args, args.in[2].shape() == y.shape());
    return move_elements(args.in[2], y, [](const Shape& index) { return index; });
  }
  const auto size = static_cast<int64_t>(size_of(y.dtype));
  for_each_index(y.shape(), [&](const Shape& index) {
    std::memset(y.data + y.offset(index) * size, 0, size);
  });
}

// `place(index)` tells where in y the update at `index` goes.
template <typename Place>
void apply(const ReferenceArgs& args, Place place) {
  const View &updates = args.in[0], &y = args.out[0];
  const ScatterMode mode = parse_scatter_mode(args.attrs.s("mode"));
  const bool self = args.attrs.b("include_self");
  start(args);
  std::vector<int64_t> places;
  for_each_index(updates.shape(),
                 [&](const Shape& index) { places.push_back(y.offset(place(index))); });
  size_t next = 0;
  if (mode == ScatterMode::kSet)
    return for_each_index(updates.shape(), [&](const Shape& index) {
      move_element(y, places[next++], updates, updates.offset(index));
    });
  dispatch<kNumber>(y.dtype, [&]<typename T>() {
    for (const int64_t at : places)
      if (!self) y.as<T>()[at] = scatter_start<T>(mode);
    for_each_index(updates.shape(), [&](const Shape& index) {
      scatter_join(y.as<T>()[places[next++]], updates.at<T>(index), mode);
    });
    if (mode != ScatterMode::kMean) return;
    std::map<int64_t, int64_t> counts;
    for (const int64_t at : places) ++counts[at];
    for (const auto& [at, count] : counts)
      y.as<T>()[at] = scatter_mean(y.as<T>()[at], count + (self ? 1 : 0));
  });
}

}  // namespace

REFERENCE(scatter) {
  const View &indices = args.in[1], &y = args.out[0];
  const int64_t axis = normalize_axis(args.attrs.i("axis"), y.rank(), "scatter");
  apply(args, [&](const Shape& index) {
    Shape to = index;
    int64_t& at = to[axis];
    at = checked_index(args, load_int(indices, indices.offset({&at, 1})), axis, y.extent(axis));
    return to;
  });
}

REFERENCE(scatter_nd) {
  const View &indices = args.in[1], &y = args.out[0];
  const int64_t batch = args.attrs.i("batch_dims"), tuples = indices.rank() - 1;
  const int64_t depth = indices.extent(tuples);
  require_shape(args, batch >= 0 && tuples >= batch && batch + depth <= y.rank());
  apply(args, [&](const Shape& index) {
    const int64_t* at = index.begin();
    Shape place(at, at + tuples), to(at, at + batch);
    place.push_back(0);
    for (int64_t i = 0; i < depth; ++i) {
      place.back() = i;
      to.push_back(checked_index(args, load_int(indices, indices.offset(place)), batch + i,
                                 y.extent(batch + i)));
    }
    for (size_t i = tuples; i < index.size(); ++i) to.push_back(at[i]);
    return to;
  });
}

REFERENCE(scatter_along_axis) {
  const View &indices = args.in[1], &y = args.out[0];
  const int64_t axis = axis_of(args, 3, y.rank());
  require_shape(args, indices.shape() == args.in[0].shape() && indices.rank() == y.rank());
  for (int64_t i = 0; i < y.rank(); ++i)
    require_shape(args, i == axis || indices.extent(i) <= y.extent(i));
  apply(args, [&](const Shape& index) {
    Shape to = index;
    to[axis] = checked_index(args, load_int(indices, indices.offset(index)), axis, y.extent(axis));
    return to;
  });
}

}  // namespace anymps
