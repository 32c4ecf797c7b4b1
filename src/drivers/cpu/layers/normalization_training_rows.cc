// SPDX-License-Identifier: Apache-2.0
// The gradients of normalizations by rows (layer_norm, rms_norm) and by groups of channels
// (group_norm), to x, scale and shift at once. A row is read for its sums, and again while it is in
// the cache. Sums over rows are made in chunks that depend on the shape alone.
#include <algorithm>
#include <cmath>
#include <optional>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/dense_rows.h"
#include "drivers/cpu/common/gradient_ops.h"
#include "drivers/cpu/kernel_family.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

// One run of elements with the same statistics: dense rows of dy and x from `first` on.
template <typename A>
struct RunOfElements {
  const DenseRows<A>& rows;
  const void *dy, *x;
  int64_t first, length;

  // Calls fn(i, n, dy, x) for tiles.
  template <typename Fn>
  void each(Fn&& fn) const {
    alignas(64) A dy_tile[kRowTile], x_tile[kRowTile];
    for_row_tiles(length, [&](int64_t i, int64_t n) {
      fn(i, n, rows.read(dy, first + i, n, dy_tile), rows.read(x, first + i, n, x_tile));
    });
  }
};

struct KeptStatistics {
  double mean = 0, inv_std = 0;
};

template <typename A>
KeptStatistics statistics_of(const RunOfElements<A>& run, double epsilon, bool centered) {
  const GradientOps<A>& ops = gradient_ops<A>();
  const auto count = static_cast<double>(run.length);
  double sum = 0, squares = 0;
  if (centered)
    run.each([&](int64_t, int64_t n, const A*, const A* x) {
      sum += static_cast<double>(ops.sum(x, n));
    });
  const double mean = centered ? sum / count : 0;
  run.each([&](int64_t, int64_t n, const A*, const A* x) {
    squares += static_cast<double>(ops.sum_centered(x, static_cast<A>(mean), n));
  });
  return {mean, 1 / std::sqrt(squares / count + epsilon)};
}

double number_at(DType dtype, const void* data, int64_t at) {
  double value = 0;
  read_numbers(dtype, static_cast<const char*>(data) + at * static_cast<int64_t>(size_of(dtype)), 1,
               &value);
  return value;
}

// Where the inputs are: rms_norm's has no mean.
struct GradientInputs {
  GradientInputs(const KernelRequest& request, bool is_centered)
      : centered(is_centered), inv_std(is_centered ? 3 : 2), gamma(inv_std + 1) {
    if (request.has(inv_std)) statistics = request.in(inv_std).dtype;
    if (request.has(gamma)) parameter = request.in(gamma).dtype;
    for (size_t i = 1; i < request.outputs.size(); ++i) outputs.push_back(request.out(i).dtype);
    epsilon = request.attrs.f("epsilon");
  }
  template <typename A>
  KeptStatistics of(const KernelArgs& args, int64_t row, const RunOfElements<A>& run) const {
    if (!statistics) return statistics_of(run, epsilon, centered);
    return {centered ? number_at(*statistics, args.inputs[2], row) : 0,
            number_at(*statistics, args.inputs[inv_std], row)};
  }
  // One element is its own mean: nothing depends on it, and rounding shall not say otherwise.
  bool flat(int64_t length) const { return centered && length == 1; }
  bool centered;
  size_t inv_std, gamma;
  std::optional<DType> statistics, parameter;
  std::vector<DType> outputs;  // of dgamma and dbeta
  double epsilon = 0;
};

template <typename A>
class RowNormGradient final : public Kernel {
 public:
  RowNormGradient(const KernelRequest& request, bool centered)
      : in_(request, centered), rows_(request.in(1).dtype) {
    const TensorDesc& x = request.in(1);
    const size_t axis = normalize_axis(request.attrs.i("axis"), x.rank(), request.op->name.c_str());
    for (size_t i = 0; i < x.shape.size(); ++i) (i < axis ? count_ : length_) *= x.shape[i];
    constexpr int64_t kMostChunks = 32, kLeastRows = 8, kMostNumbers = 1 << 21;
    const int64_t most =
        std::clamp<int64_t>(kMostNumbers / std::max<int64_t>(length_, 1), 1, kMostChunks);
    each_ = std::max(kLeastRows, (count_ + most - 1) / most);
    chunks_ = (count_ + each_ - 1) / each_;
  }

  // gamma, then the sums of each chunk in double and in A.
  size_t scratch_bytes() const override {
    const size_t sums = in_.outputs.size() * static_cast<size_t>(std::max<int64_t>(chunks_, 1));
    return static_cast<size_t>(length_) * (sizeof(double) + sums * (sizeof(double) + sizeof(A)));
  }

  void run(const KernelArgs& args) const override {
    const auto sums = std::ssize(in_.outputs);
    auto* const gamma = static_cast<A*>(args.scratch);
    auto* const wide = static_cast<double*>(args.scratch) + length_;
    A* const narrow = reinterpret_cast<A*>(wide + sums * std::max<int64_t>(chunks_, 1) * length_);
    if (in_.parameter) read_numbers(*in_.parameter, args.inputs[in_.gamma], length_, gamma);
    if (chunks_ == 0) std::fill_n(wide, sums * length_, 0.0);
    parallel_for(0, chunks_, 0.8 * static_cast<double>(each_ * length_),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t k = begin; k < end; ++k)
                     run_chunk(args, k, in_.parameter ? gamma : nullptr, wide + k * sums * length_,
                               narrow + k * sums * length_);
                 });
    for (int64_t s = 0; s < sums; ++s) {
      double* const total = wide + s * length_;
      parallel_for(0, length_, 0.3 * static_cast<double>(chunks_), [&](int64_t b, int64_t e) {
        for (int64_t k = 1; k < chunks_; ++k) {
          const double* const part = total + k * sums * length_;
          for (int64_t i = b; i < e; ++i) total[i] += part[i];
        }
      });
      write_numbers(in_.outputs[s], args.outputs[s + 1], length_, total);
    }
  }

 private:
  static constexpr int64_t kRowsInFloat = 64;

  // dx = dy * gamma * inv_std + (x - mean) * b + c of a row.
  struct Line {
    A mean, inv_std, b, c;
  };

  void run_chunk(const KernelArgs& args, int64_t chunk, const A* gamma, double* wide,
                 A* narrow) const {
    constexpr auto kTogether = static_cast<int64_t>(GradientOps<A>::kTogether);
    const auto sums = std::ssize(in_.outputs);
    std::fill_n(wide, sums * length_, 0.0);
    const int64_t end = std::min(count_, (chunk + 1) * each_);
    for (int64_t row = chunk * each_; row < end; row += kRowsInFloat) {
      std::fill_n(narrow, sums * length_, A(0));
      const int64_t last = std::min(row + kRowsInFloat, end);
      int64_t r = row;
      if (sums == 2 && rows_.direct())
        for (; r + kTogether <= last; r += kTogether) run_rows(args, r, gamma, narrow);
      for (; r < last; ++r)
        run_row(args, r, gamma, sums > 0 ? narrow : nullptr, sums > 1 ? narrow + length_ : nullptr);
      for (int64_t i = 0; i < sums * length_; ++i) wide[i] += static_cast<double>(narrow[i]);
    }
  }

  Line line_of(const KernelArgs& args, int64_t row, const A* gamma) const {
    const GradientOps<A>& ops = gradient_ops<A>();
    const RunOfElements<A> run{rows_, args.inputs[0], args.inputs[1], row * length_, length_};
    const KeptStatistics s = in_.of(args, row, run);
    double sum = 0, moment = 0;
    run.each([&](int64_t i, int64_t n, const A* dy, const A* x) {
      A both[2];
      ops.sums(dy, x, gamma ? gamma + i : nullptr, static_cast<A>(s.mean), both, n);
      sum += static_cast<double>(both[0]);
      moment += static_cast<double>(both[1]);
    });
    if (in_.flat(length_)) return {static_cast<A>(s.mean), A(0), A(0), A(0)};
    const auto count = static_cast<double>(length_);
    return {static_cast<A>(s.mean), static_cast<A>(s.inv_std),
            static_cast<A>(-s.inv_std * s.inv_std * s.inv_std * moment / count),
            in_.centered ? static_cast<A>(-s.inv_std * sum / count) : A(0)};
  }

  void run_rows(const KernelArgs& args, int64_t row, const A* gamma, A* sums) const {
    typename GradientOps<A>::Rows rows;
    for (size_t k = 0; k < GradientOps<A>::kTogether; ++k) {
      const int64_t r = row + static_cast<int64_t>(k);
      const Line line = line_of(args, r, gamma);
      rows.mean[k] = line.mean;
      rows.inv_std[k] = line.inv_std;
      rows.b[k] = line.b;
      rows.c[k] = line.c;
      rows.dy[k] = static_cast<const A*>(args.inputs[0]) + r * length_;
      rows.x[k] = static_cast<const A*>(args.inputs[1]) + r * length_;
      rows.dx[k] = static_cast<A*>(args.outputs[0]) + r * length_;
    }
    gradient_ops<A>().combine_rows(rows, gamma, sums, sums + length_, length_);
  }

  void run_row(const KernelArgs& args, int64_t row, const A* gamma, A* dgamma, A* dbeta) const {
    const GradientOps<A>& ops = gradient_ops<A>();
    const RunOfElements<A> run{rows_, args.inputs[0], args.inputs[1], row * length_, length_};
    const Line line = line_of(args, row, gamma);
    alignas(64) A out[kRowTile];
    run.each([&](int64_t i, int64_t n, const A* dy, const A* x) {
      const size_t size = n;
      if (dgamma)
        ops.add_parameters(dy, x, line.mean, line.inv_std, dgamma + i, dbeta ? dbeta + i : nullptr,
                           size);
      A* const dx = rows_.target(args.outputs[0], row * length_ + i, out);
      ops.combine(dy, x, gamma ? gamma + i : nullptr, line.mean, line.inv_std, line.b, line.c, dx,
                  size);
      rows_.write(args.outputs[0], row * length_ + i, n, dx);
    });
  }

  GradientInputs in_;
  DenseRows<A> rows_;
  int64_t count_ = 1, length_ = 1;  // rows, and elements of one
  int64_t each_ = 1, chunks_ = 0;   // rows of a chunk
};

template <typename A>
class GroupNormGradient final : public Kernel {
 public:
  explicit GroupNormGradient(const KernelRequest& request)
      : in_(request, true), rows_(request.in(1).dtype), groups_(request.attrs.i("groups")) {
    const Shape& x = request.in(1).shape;
    batch_ = x[0];
    channels_ = x[1];
    for (size_t i = 2; i < x.size(); ++i) plane_ *= x[i];
  }

  // gamma, and two sums for each channel of each image.
  size_t scratch_bytes() const override {
    return static_cast<size_t>(channels_ * (1 + 2 * std::max<int64_t>(batch_, 1))) * sizeof(double);
  }

  void run(const KernelArgs& args) const override {
    auto* const gamma = static_cast<double*>(args.scratch);
    double* const sums = gamma + channels_;  // [image][dgamma, dbeta][channel]
    if (in_.parameter)
      read_numbers(*in_.parameter, args.inputs[in_.gamma], channels_, gamma);
    else
      std::fill_n(gamma, channels_, 1.0);
    if (batch_ == 0) std::fill_n(sums, 2 * channels_, 0.0);
    const int64_t run = channels_ / groups_ * plane_;
    parallel_for(0, batch_ * groups_, 20 + 0.8 * static_cast<double>(run),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     run_group(args, i / groups_, i % groups_, gamma, sums);
                 });
    for (int64_t image = 1; image < batch_; ++image)
      for (int64_t i = 0; i < 2 * channels_; ++i) sums[i] += sums[image * 2 * channels_ + i];
    for (size_t s = 0; s < in_.outputs.size(); ++s)
      write_numbers(in_.outputs[s], args.outputs[s + 1], channels_,
                    sums + static_cast<int64_t>(s) * channels_);
  }

 private:
  void run_group(const KernelArgs& args, int64_t image, int64_t group, const double* gamma,
                 double* all) const {
    const GradientOps<A>& ops = gradient_ops<A>();
    const int64_t channels = channels_ / groups_, first = group * channels;
    const int64_t at = (image * channels_ + first) * plane_;
    const RunOfElements<A> whole{rows_, args.inputs[0], args.inputs[1], at, channels * plane_};
    const KeptStatistics s = in_.of(args, image * groups_ + group, whole);
    const A mean = static_cast<A>(s.mean);
    double *const dgamma = all + image * 2 * channels_ + first, *const dbeta = dgamma + channels_;
    double sum = 0, moment = 0;
    const auto channel = [&](int64_t c) {
      return RunOfElements<A>{rows_, args.inputs[0], args.inputs[1], at + c * plane_, plane_};
    };
    for (int64_t c = 0; c < channels; ++c) {
      double own = 0, own_moment = 0;
      channel(c).each([&](int64_t, int64_t n, const A* dy, const A* x) {
        A both[2];
        ops.sums(dy, x, nullptr, mean, both, n);
        own += static_cast<double>(both[0]);
        own_moment += static_cast<double>(both[1]);
      });
      sum += own * gamma[first + c];
      moment += own_moment * gamma[first + c];
      dgamma[c] = own_moment * s.inv_std;
      dbeta[c] = own;
    }
    const auto count = static_cast<double>(channels * plane_);
    const A b = static_cast<A>(-s.inv_std * s.inv_std * s.inv_std * moment / count);
    const bool flat = in_.flat(channels * plane_);
    const A shift = flat ? A(0) : static_cast<A>(-s.inv_std * sum / count);
    alignas(64) A out[kRowTile];
    for (int64_t c = 0; c < channels; ++c) {
      const A a = flat ? A(0) : static_cast<A>(gamma[first + c] * s.inv_std);
      channel(c).each([&](int64_t i, int64_t n, const A* dy, const A* x) {
        const int64_t place = at + c * plane_ + i;
        A* const dx = rows_.target(args.outputs[0], place, out);
        ops.combine(dy, x, nullptr, mean, a, b, shift, dx, n);
        rows_.write(args.outputs[0], place, n, dx);
      });
    }
  }

  GradientInputs in_;
  DenseRows<A> rows_;
  int64_t groups_, batch_ = 0, channels_ = 0, plane_ = 1;
};

template <bool centered>
KernelPtr make_row_norm_gradient(const KernelRequest& request, std::string& why) {
  if (!dense(request, why)) return nullptr;
  return with_computed(request.in(1).dtype, [&]<typename A>() -> KernelPtr {
    return std::make_shared<RowNormGradient<A>>(request, centered);
  });
}

KernelPtr make_group_norm_gradient(const KernelRequest& request, std::string& why) {
  if (!dense(request, why)) return nullptr;
  return with_computed(request.in(1).dtype, [&]<typename A>() -> KernelPtr {
    return std::make_shared<GroupNormGradient<A>>(request);
  });
}

const KernelFamily kRowNormGradients("simd", 10,
                                     {{"layer_norm_gradient", make_row_norm_gradient<true>},
                                      {"rms_norm_gradient", make_row_norm_gradient<false>},
                                      {"group_norm_gradient", make_group_norm_gradient}});

}  // namespace

}  // namespace anymps::cpu
