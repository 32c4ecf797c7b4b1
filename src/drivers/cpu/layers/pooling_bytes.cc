// SPDX-License-Identifier: Apache-2.0
// The largest byte of each window, for many channels side by side where they come last. Compiled
// once for each instruction set.
#include <algorithm>
#include <vector>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/layers/pooling_bytes.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/threads.h"
#include "drivers/kernel.h"
#include "ops/layers/pooling.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

template <typename T>
void largest(const void* const* taps, size_t count, int64_t channels, void* to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto at = [&](size_t tap) { return static_cast<const T*>(taps[tap]); };
  auto* y = static_cast<T*>(to);
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) {
    auto most = hn::LoadU(d, at(0) + c);
    for (size_t tap = 1; tap < count; ++tap) most = hn::Max(most, hn::LoadU(d, at(tap) + c));
    hn::StoreU(most, d, y + c);
  }
  for (; c < channels; ++c) {
    T most = at(0)[c];
    for (size_t tap = 1; tap < count; ++tap) most = std::max(most, at(tap)[c]);
    y[c] = most;
  }
}

void largest_here(bool is_signed, const void* const* taps, size_t count, int64_t channels,
                  void* to) {
  is_signed ? largest<int8_t>(taps, count, channels, to)
            : largest<uint8_t>(taps, count, channels, to);
}

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

namespace {

HWY_EXPORT(largest_here);

class PoolOfBytes final : public Kernel {
 public:
  bool is_signed_ = false;
  int64_t images_ = 1, channels_ = 1;  // planes and 1 where the channels come first
  Triple in_{}, out_{}, taps_{}, strides_{}, dilations_{}, pads_{};

  void run(const KernelArgs& args) const override {
    const int64_t lines = images_ * out_[0] * out_[1], taps = taps_[0] * taps_[1] * taps_[2];
    const double ns =
        static_cast<double>(out_[2] * taps) * (1 + 0.05 * static_cast<double>(channels_));
    parallel_for(0, lines, ns, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) run_line(args, line);
    });
  }

 private:
  struct Span {
    int64_t first = 0, begin = 0, end = 0;  // of the window; its taps that lie in the image
  };
  Span span(size_t axis, int64_t place) const {
    const int64_t first = place * strides_[axis] - pads_[axis], apart = dilations_[axis];
    const int64_t last = in_[axis] - 1 - first;
    return {first, first < 0 ? (apart - 1 - first) / apart : 0,
            last < 0 ? 0 : std::min(taps_[axis], last / apart + 1)};
  }

  void run_line(const KernelArgs& args, int64_t line) const {
    thread_local std::vector<const uint8_t*> rows;  // NOLINT: kept, so that a run allocates nothing
    thread_local std::vector<const void*> taps;     // NOLINT
    const Span d = span(0, line / out_[1] % out_[0]), h = span(1, line % out_[1]);
    const int64_t image = line / (out_[0] * out_[1]);
    rows.clear();  // lines of the image
    for (int64_t i = d.begin; i < d.end; ++i)
      for (int64_t j = h.begin; j < h.end; ++j)
        rows.push_back(static_cast<const uint8_t*>(args.inputs[0]) +
                       ((image * in_[0] + d.first + i * dilations_[0]) * in_[1] + h.first +
                        j * dilations_[1]) *
                           in_[2] * channels_);
    auto* y = static_cast<uint8_t*>(args.outputs[0]) + line * out_[2] * channels_;
    for (int64_t place = 0; place < out_[2]; ++place, y += channels_) {
      const Span w = span(2, place);
      taps.clear();
      for (const uint8_t* row : rows)
        for (int64_t i = w.begin; i < w.end; ++i)
          taps.push_back(row + (w.first + i * dilations_[2]) * channels_);
      if (taps.empty())
        std::fill_n(y, channels_, static_cast<uint8_t>(is_signed_ ? -128 : 0));
      else
        HWY_DYNAMIC_DISPATCH(largest_here)(is_signed_, taps.data(), taps.size(), channels_, y);
    }
  }
};

KernelPtr make_pool_of_bytes(const KernelRequest& request, std::string& why) {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (x.dtype != DType::kU8 && x.dtype != DType::kI8) return refuse(why, "x is not of bytes");
  if (request.outputs.size() > 1) return refuse(why, "no indices");
  if (x.rank() < 3 || x.rank() > 5) return refuse(why, "rank");
  if (!x.contiguous() || !y.contiguous()) return refuse(why, "x or y is not contiguous");
  if (y.count() == 0) return refuse(why, "the result is empty");
  isa();
  auto kernel = std::make_shared<PoolOfBytes>();
  const bool last = request.attrs.s("layout") == "channels_last";
  const int64_t channels = last ? x.shape.back() : x.shape[1];
  kernel->is_signed_ = x.dtype == DType::kI8;
  kernel->images_ = x.shape[0] * (last ? 1 : channels);
  kernel->channels_ = last ? channels : 1;
  const Window window = pool_window(request.attrs, x.shape);
  kernel->in_ = lift(spatial_extents(request.attrs, x.shape), 1);
  kernel->out_ = lift(spatial_extents(request.attrs, y.shape), 1);
  kernel->taps_ = lift(window.kernel, 1);
  kernel->strides_ = lift(window.strides, 1);
  kernel->dilations_ = lift(window.dilations, 1);
  kernel->pads_ = lift(window.pads_begin, 0);
  return kernel;
}

const KernelRegistrar kPoolOfBytes("cpu", "max_pool", "bytes", 10, make_pool_of_bytes);

}  // namespace

}  // namespace anymps::cpu
#endif
