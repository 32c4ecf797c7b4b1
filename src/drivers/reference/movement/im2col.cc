// SPDX-License-Identifier: Apache-2.0
// Reference kernels of windows as columns.
#include "drivers/reference/dense.h"
#include "drivers/reference/move.h"
#include "ops/layers/window.h"

namespace anymps {

namespace {

// Calls fn(row within a channel, column, place in the image or null when it is outside).
template <typename Fn>
void for_each_tap(const Window& window, const Shape& image, Fn fn) {
  Shape windows;
  for (size_t i = 0; i < image.size(); ++i)
    windows.push_back((image[i] + window.pads_begin[i] + window.pads_end[i] - window.span(i)) /
                          window.strides[i] +
                      1);
  int64_t row = 0;
  for_each_index(window.kernel, [&](const Shape& tap) {
    int64_t column = 0;
    for_each_index(windows, [&](const Shape& at) {
      Shape place = at;
      bool inside = true;
      for (size_t i = 0; i < image.size(); ++i) {
        place[i] = at[i] * window.strides[i] + tap[i] * window.dilations[i] - window.pads_begin[i];
        inside &= place[i] >= 0 && place[i] < image[i];
      }
      fn(row, column, inside ? &place : nullptr);
      ++column;
    });
    ++row;
  });
}

}  // namespace

REFERENCE(im2col) {
  const View &x = args.in[0], &y = args.out[0];
  const std::vector<int64_t>& kernel = args.attrs.ints("kernel");
  const Shape image(x.shape().begin() + 2, x.shape().end()), sizes(kernel.begin(), kernel.end());
  const Window window = resolve_window(args.attrs, image, sizes);
  const int64_t taps = element_count(sizes);
  const auto size = static_cast<int64_t>(size_of(y.dtype));
  for (int64_t n = 0; n < x.extent(0); ++n)
    for (int64_t c = 0; c < x.extent(1); ++c)
      for_each_tap(window, image, [&](int64_t row, int64_t column, const Shape* place) {
        const int64_t to = n * y.stride(0) + (c * taps + row) * y.stride(1) + column * y.stride(2);
        if (!place) {
          std::memset(y.data + to * size, 0, size);
          return;
        }
        Shape from{n, c};
        for (const int64_t at : *place) from.push_back(at);
        move_element(y, to, x, x.offset(from));
      });
}

REFERENCE(col2im) {
  const View &x = args.in[0], &y = args.out[0];
  const std::vector<int64_t> kernel = args.ints(2, "kernel");
  const Shape image(y.shape().begin() + 2, y.shape().end()), sizes(kernel.begin(), kernel.end());
  const Window window = resolve_window(args.attrs, image, sizes);
  const int64_t taps = element_count(sizes), pixels = element_count(image);
  with_accumulator(x.dtype, [&]<typename A>() {
    const std::vector<A> columns = read_dense<A>(x);
    std::vector<A> sums(y.count(), A(0));
    for (int64_t nc = 0; nc < y.extent(0) * y.extent(1); ++nc)
      for_each_tap(window, image, [&](int64_t row, int64_t column, const Shape* place) {
        if (!place) return;
        int64_t flat = 0;
        for (size_t i = 0; i < image.size(); ++i) flat = flat * image[i] + (*place)[i];
        sums[nc * pixels + flat] += columns[(nc * taps + row) * x.extent(2) + column];
      });
    write_dense(y, sums);
  });
}

}  // namespace anymps
