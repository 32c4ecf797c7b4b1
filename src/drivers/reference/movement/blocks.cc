// SPDX-License-Identifier: Apache-2.0
// Reference kernels of elements in another arrangement.
#include "ops/movement/blocks.h"

#include "drivers/reference/lines.h"
#include "drivers/reference/movement/inverse_moves.h"

namespace anymps {

REFERENCE(interleave) {
  const View& y = args.out[0];
  const int64_t axis = normalize_axis(args.attrs.i("axis"), y.rank(), "interleave");
  const auto count = std::ssize(args.in);
  for (int64_t k = 0; k < count; ++k) {
    const View& x = args.in[k];
    for_each_index(x.shape(), [&](const Shape& index) {
      Shape to = index;
      int64_t& at = to[axis];
      at = at * count + k;
      move_element(y, y.offset(to), x, x.offset(index));
    });
  }
}

// `small` is the tensor whose batch axis holds the places in blocks, `large` the other one.
template <typename Move>
static void for_each_block_element(const ReferenceArgs& args, const View& small, const View& large,
                                   Move move) {
  const Blocks blocks = blocks_of(args.attrs, small.rank(), args.op.name.c_str());
  const int64_t batches = large.extent(blocks.batch);
  for_each_index(large.shape(), [&](const Shape& index) {
    Shape in_small = index;
    int64_t& batch = in_small[blocks.batch];
    batch *= blocks.batch_step();
    for (size_t i = 0; i < blocks.axes.size(); ++i) {
      int64_t& at = in_small[blocks.axes[i]];
      batch += at % blocks.sizes[i] * blocks.place_step(i, batches);
      at /= blocks.sizes[i];
    }
    move(in_small, index);
  });
}

static void move_blocks(const ReferenceArgs& args, bool into_space) {
  move_by(args, into_space, [&](const View& small, const View& large, auto move) {
    for_each_block_element(args, small, large, move);
  });
}

REFERENCE(space_to_batch) { move_blocks(args, false); }

REFERENCE(batch_to_space) { move_blocks(args, true); }

REFERENCE(reinterpret) {
  const View &x = args.in[0], &y = args.out[0];
  const size_t from = size_of(x.dtype), to = size_of(y.dtype);
  std::vector<char> bytes;
  for_each_index(x.shape(), [&](const Shape& index) {
    const char* element = x.data + x.offset(index) * static_cast<int64_t>(from);
    bytes.insert(bytes.end(), element, element + from);
  });
  require_shape(args, bytes.size() == static_cast<size_t>(y.count()) * to);
  size_t at = 0;
  for_each_index(y.shape(), [&](const Shape& index) {
    std::memcpy(y.data + y.offset(index) * static_cast<int64_t>(to), bytes.data() + at, to);
    at += to;
  });
}

REFERENCE(coordinate_along_axis) {
  const View& y = args.out[0];
  const size_t axis = axis_of(args, 1, y.rank());
  dispatch<kReal>(y.dtype, [&]<typename T>() {
    for_each_index(y.shape(),
                   [&](const Shape& index) { y.at<T>(index) = scalar::convert<T>(index[axis]); });
  });
}

}  // namespace anymps
