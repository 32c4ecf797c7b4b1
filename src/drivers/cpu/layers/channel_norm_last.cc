// SPDX-License-Identifier: Apache-2.0
// Group and instance normalization of f32 images whose channels lie side by side. Each block of
// pixels gives a mean and a sum of squared distances from it for each channel, which are put
// together in double: the image is read once for its statistics and once for the result. Blocks are
// cut by the shape alone, so results do not depend on the threads.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "drivers/cpu/isa.h"
#include "drivers/cpu/layers/normalizations.h"
#include "drivers/cpu/threads.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/layers/channel_norm_last.cc"
#include "drivers/cpu/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

// Channels that do not fill a vector are taken as so many pixels in a row that they do.
size_t pixels_in_row(size_t channels) {
  const size_t lanes = hn::Lanes(Tag());
  return channels >= lanes ? 1 : lanes / std::gcd(channels, lanes);
}

// fn.template operator()<vectors>(column) for all columns, at least a vector of them; the last
// vector may lie over the one before it.
template <typename Fn>
HWY_INLINE void each_vectors(size_t columns, Fn&& fn) {
  const size_t lanes = hn::Lanes(Tag());
  size_t c = 0;
  for (; c + 4 * lanes <= columns; c += 4 * lanes) fn.template operator()<4>(c);
  for (; c + lanes <= columns; c += lanes) fn.template operator()<1>(c);
  if (c < columns) fn.template operator()<1>(columns - lanes);
}

// Of each column its sum, or the sum of its squared distances from `means`.
template <bool kSquares>
HWY_INLINE void column_sums(const float* x, size_t rows, size_t columns, const float* means,
                            float* to) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  each_vectors(columns, [&]<size_t kVectors>(size_t c) HWY_ATTR {
    V even[kVectors], odd[kVectors], mean[kVectors];
    for (size_t v = 0; v < kVectors; ++v) {
      even[v] = odd[v] = hn::Zero(d);
      mean[v] = kSquares ? hn::LoadU(d, means + c + v * lanes) : hn::Zero(d);
    }
    const auto join = [&](V& sum, size_t v, const float* row) HWY_ATTR {
      const V value = hn::LoadU(d, row + v * lanes);
      if constexpr (kSquares) {
        const V distance = hn::Sub(value, mean[v]);
        sum = hn::MulAdd(distance, distance, sum);
      } else {
        sum = hn::Add(sum, value);
      }
    };
    const float* row = x + c;
    size_t r = 0;
    for (; r + 2 <= rows; r += 2, row += 2 * columns)
      for (size_t v = 0; v < kVectors; ++v) {
        join(even[v], v, row);
        join(odd[v], v, row + columns);
      }
    if (r < rows)
      for (size_t v = 0; v < kVectors; ++v) join(even[v], v, row);
    for (size_t v = 0; v < kVectors; ++v)
      hn::StoreU(hn::Add(even[v], odd[v]), d, to + c + v * lanes);
  });
}

}  // namespace

// Mean and sum of squared distances of each channel over `pixels`. `row` and `means` have room for
// a row of several pixels.
void last_moments(const float* x, size_t pixels, size_t channels, float* mean, float* squares,
                  float* row, float* means) {
  const size_t many = pixels_in_row(channels), wide = many * channels, rows = pixels / many,
               done = rows * many;
  const auto fold = [&](float* to) {
    for (size_t c = 0; c < channels; ++c) {
      float sum = 0;
      for (size_t k = c; rows != 0 && k < wide; k += channels) sum += row[k];
      to[c] = sum;
    }
  };
  column_sums<false>(x, rows, wide, nullptr, row);
  fold(mean);
  for (size_t i = done * channels; i < pixels * channels; ++i) mean[i % channels] += x[i];
  const float part = 1 / static_cast<float>(pixels);
  for (size_t c = 0; c < channels; ++c) mean[c] *= part;
  for (size_t k = 0; k < wide; k += channels) std::copy_n(mean, channels, means + k);
  column_sums<true>(x, rows, wide, means, row);
  fold(squares);
  for (size_t i = done * channels; i < pixels * channels; ++i) {
    const float distance = x[i] - mean[i % channels];
    squares[i % channels] += distance * distance;
  }
}

// y = (x - mean) * scale + shift, each of `wide` numbers: those of the channels, again and again.
void last_affine(const float* x, size_t pixels, size_t channels, const float* mean,
                 const float* scale, const float* shift, float* y) {
  const Tag d;
  const size_t lanes = hn::Lanes(d), many = pixels_in_row(channels), wide = many * channels,
               rows = pixels / many;
  const auto one = [&](V v, size_t c) HWY_ATTR {
    return hn::MulAdd(hn::Sub(v, hn::LoadU(d, mean + c)), hn::LoadU(d, scale + c),
                      hn::LoadU(d, shift + c));
  };
  const size_t whole = wide / lanes * lanes;
  for (size_t r = 0; r < rows; ++r, x += wide, y += wide) {
    // x may be y: what lies under two vectors is read before it is written.
    const V last = hn::LoadU(d, x + wide - lanes);
    for (size_t c = 0; c < whole; c += lanes) hn::StoreU(one(hn::LoadU(d, x + c), c), d, y + c);
    if (whole < wide) hn::StoreU(one(last, wide - lanes), d, y + wide - lanes);
  }
  for (size_t i = 0; i < (pixels - rows * many) * channels; ++i)
    y[i] = (x[i] - mean[i]) * scale[i] + shift[i];
}

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

namespace {

HWY_EXPORT(last_moments);
HWY_EXPORT(last_affine);

constexpr size_t kBlockBytes = 32 << 10;  // a block is read twice, from the L1 cache
constexpr size_t kLeastPixels = 16;
constexpr size_t kMostLanes = 16;

class LastNorm final : public Kernel {
 public:
  LastNorm(const KernelRequest& request, int64_t groups)
      : batch_(request.in(0).shape[0]),
        channels_(request.in(0).shape.back()),
        groups_(groups),
        epsilon_(request.attrs.f("epsilon")) {
    const Shape& shape = request.in(0).shape;
    pixels_ = element_count(Shape(shape.begin() + 1, shape.end() - 1));
    const auto fitting = static_cast<int64_t>(kBlockBytes / sizeof(float)) / channels_;
    block_ = std::max(fitting, static_cast<int64_t>(kLeastPixels));
    blocks_ = (pixels_ + block_ - 1) / block_;
    // Parameters of the channels again and again, for rows of several pixels.
    wide_ = channels_ < static_cast<int64_t>(kMostLanes)
                ? channels_ * static_cast<int64_t>(kMostLanes)
                : channels_;
    for (size_t i : {size_t{1}, size_t{2}})
      steps_[i - 1] = request.has(i) ? request.in(i).strides[0] : 0;
    has_[0] = request.has(1);
    has_[1] = request.has(2);
  }

  size_t scratch_bytes() const override {
    return sizeof(float) * static_cast<size_t>(batch_ * (blocks_ * part() + 3 * wide_));
  }
  bool in_place(size_t input, size_t output) const override { return input == 0 && output == 0; }

  void run(const KernelArgs& args) const override {
    const auto* const x = static_cast<const float*>(args.inputs[0]);
    auto* const y = static_cast<float*>(args.outputs[0]);
    auto* const parts = static_cast<float*>(args.scratch);
    float* const affine = parts + batch_ * blocks_ * part();
    const auto channels = static_cast<size_t>(channels_);
    parallel_for(0, batch_ * blocks_, 0.15 * static_cast<double>(block_ * channels_),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t first = i % blocks_ * block_;
                     float* const to = parts + i * part();
                     HWY_DYNAMIC_DISPATCH(last_moments)
                     (x + (i / blocks_ * pixels_ + first) * channels_, pixels_of(first), channels,
                      to, to + channels_, to + 2 * channels_, to + 2 * channels_ + wide_);
                   }
                 });
    parallel_for(0, batch_, 2.0 * static_cast<double>(blocks_ * channels_),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     join(args, parts + i * blocks_ * part(), affine + i * 3 * wide_);
                 });
    parallel_for(0, batch_ * blocks_, 0.15 * static_cast<double>(block_ * channels_),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t image = i / blocks_, first = i % blocks_ * block_,
                                   at = (image * pixels_ + first) * channels_;
                     const float* const a = affine + image * 3 * wide_;
                     HWY_DYNAMIC_DISPATCH(last_affine)
                     (x + at, pixels_of(first), channels, a, a + wide_, a + 2 * wide_, y + at);
                   }
                 });
  }

 private:
  // Of a block: mean and squares of each channel, and what last_moments works with.
  int64_t part() const { return 2 * channels_ + 2 * wide_; }
  size_t pixels_of(int64_t first) const {
    return static_cast<size_t>(std::min(block_, pixels_ - first));
  }

  // mean, scale and shift of each channel from the blocks of one image.
  void join(const KernelArgs& args, const float* parts, float* affine) const {
    const int64_t size = channels_ / groups_;
    for (int64_t group = 0; group < groups_; ++group) {
      const int64_t first = group * size;
      const auto each = [&](auto&& fn) {
        for (int64_t b = 0; b < blocks_; ++b)
          for (int64_t c = first; c < first + size; ++c)
            fn(static_cast<double>(pixels_of(b * block_)), parts + b * part() + c);
      };
      double sum = 0, squares = 0;
      each([&](double count, const float* at) { sum += count * static_cast<double>(*at); });
      const double all = static_cast<double>(pixels_) * static_cast<double>(size);
      const double mean = sum / all;
      each([&](double count, const float* at) {
        const double distance = static_cast<double>(*at) - mean;
        squares += static_cast<double>(at[channels_]) + count * distance * distance;
      });
      const double inverse = 1 / std::sqrt(squares / all + epsilon_);
      for (int64_t c = first; c < first + size; ++c) {
        affine[c] = static_cast<float>(mean);
        affine[wide_ + c] = static_cast<float>(inverse * parameter(args, 0, c, 1));
        affine[2 * wide_ + c] = static_cast<float>(parameter(args, 1, c, 0));
      }
    }
    for (int64_t k = 0; k < 3; ++k)
      for (int64_t c = channels_; c < wide_; ++c)
        affine[k * wide_ + c] = affine[k * wide_ + c - channels_];
  }
  double parameter(const KernelArgs& args, size_t i, int64_t c, double absent) const {
    if (!has_[i]) return absent;
    return static_cast<double>(static_cast<const float*>(args.inputs[i + 1])[c * steps_[i]]);
  }

  int64_t batch_, channels_, groups_, pixels_ = 0, block_ = 1, blocks_ = 0, wide_ = 0;
  int64_t steps_[2] = {0, 0};
  bool has_[2] = {false, false};
  double epsilon_;
};

}  // namespace

KernelPtr make_last_norm(const KernelRequest& request, int64_t groups, std::string& why) {
  const TensorDesc& x = request.in(0);
  if (x.dtype != DType::kF32) return refuse(why, fmt::format("dtype {}", name(x.dtype)));
  if (!x.contiguous() || !request.out().contiguous()) return refuse(why, "not contiguous");
  if (request.outputs.size() > 1) return refuse(why, "statistics are asked for");
  if (x.count() == 0) return refuse(why, "nothing to do");
  isa();
  return std::make_shared<LastNorm>(request, groups);
}

}  // namespace anymps::cpu
#endif
