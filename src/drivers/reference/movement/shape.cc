// SPDX-License-Identifier: Apache-2.0
// The same elements under another shape: reshape, flatten, transpose, squeeze, unsqueeze, expand,
// shape, size, depth_to_space, space_to_depth.
#include <algorithm>

#include "drivers/reference/movement/inverse_moves.h"

namespace anymps {

namespace {

void same_order(const ReferenceArgs& args) {
  require_shape(args, args.in[0].count() == args.out[0].count());
  move_in_order(args.in[0], args.out[0]);
}

// Between an image of large pixels (`deep`, many channels) and one of small pixels (`wide`):
// calls fn(index in wide, index in deep) for each element.
template <typename Fn>
void for_each_depth_element(const ReferenceArgs& args, const View& wide, const View& deep,
                            Fn&& fn) {
  const bool first = args.attrs.s("layout") == "channels_first",
             dcr = args.attrs.s("mode") == "DCR";
  const size_t c = first ? 1 : 3, h = first ? 2 : 1, w = first ? 3 : 2;
  const int64_t block = args.attrs.i("block"), channels = wide.extent(static_cast<int64_t>(c));
  require_shape(args, deep.shape()[c] == channels * block * block &&
                          wide.shape()[h] == deep.shape()[h] * block &&
                          wide.shape()[w] == deep.shape()[w] * block &&
                          wide.shape()[0] == deep.shape()[0]);
  for_each_index(wide.shape(), [&](const Shape& index) {
    Shape source = index;
    const int64_t place = index[h] % block * block + index[w] % block;
    source[h] = index[h] / block;
    source[w] = index[w] / block;
    source[c] = dcr ? place * channels + index[c] : index[c] * block * block + place;
    fn(index, source);
  });
}

}  // namespace

REFERENCE(reshape) { same_order(args); }
REFERENCE(flatten) { same_order(args); }
REFERENCE(squeeze) { same_order(args); }
REFERENCE(unsqueeze) { same_order(args); }

REFERENCE(transpose) {
  const View &x = args.in[0], &y = args.out[0];
  const std::vector<int64_t>& perm = args.attrs.ints("perm");
  require_shape(args, x.rank() == y.rank() && x.count() == y.count());
  move_elements(x, y, [&](const Shape& index) {
    Shape source = index;
    for (size_t i = 0; i < index.size(); ++i) {
      const size_t axis = perm.empty()
                              ? index.size() - 1 - i
                              : static_cast<size_t>(normalize_axis(perm[i], x.rank(), "transpose"));
      source[axis] = index[i];
    }
    return source;
  });
}

REFERENCE(expand) {
  const View &x = args.in[0], &y = args.out[0];
  require_shape(args, broadcast(x.shape(), y.shape(), "expand") == y.shape());
  const BroadcastOffset from(x, y.shape());
  for_each_index(y.shape(),
                 [&](const Shape& index) { move_element(y, y.offset(index), x, from(index)); });
}

REFERENCE(shape) {
  const View &x = args.in[0], &y = args.out[0];
  int64_t first = args.attrs.i("start");
  first = std::clamp<int64_t>(first < 0 ? first + x.rank() : first, 0, x.rank());
  require_shape(args, y.rank() == 1 && first + y.count() <= x.rank());
  for (int64_t i = 0; i < y.extent(0); ++i) y.at<int64_t>({i}) = x.extent(first + i);
}

REFERENCE(size) { *args.out[0].as<int64_t>() = args.in[0].count(); }

static void move_depth(const ReferenceArgs& args, bool into_depth) {
  move_by(args, into_depth, [&](const View& wide, const View& deep, auto move) {
    for_each_depth_element(args, wide, deep, move);
  });
}

REFERENCE(depth_to_space) { move_depth(args, false); }

REFERENCE(space_to_depth) { move_depth(args, true); }

}  // namespace anymps
