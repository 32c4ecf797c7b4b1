// SPDX-License-Identifier: Apache-2.0
// Batch normalization that trains: statistics are put together from tiles that are in the cache, so
// that x is read once for them and once to be normalized.
#include "drivers/cpu/layers/batch_norm_training.h"

namespace anymps::cpu {

namespace {

template <typename A>
class BatchNormTraining final : public Kernel {
 public:
  explicit BatchNormTraining(const KernelRequest& request)
      : e_(request.attrs, request.in(0).shape),
        chunks_(e_.outer, e_.channels),
        tiles_(e_, request.in(0).dtype),
        rows_(request.in(0).dtype) {
    for (size_t i = 1; i < 5; ++i)
      if (request.has(i)) parameters_[i] = request.in(i).dtype;
    for (const TensorDesc& output : request.outputs) outputs_.push_back(output.dtype);
    momentum_ = e_.count() > 0 ? request.attrs.f("momentum") : 0;
    epsilon_ = request.attrs.f("epsilon");
    unbiased_ = request.attrs.b("unbiased");
  }

  size_t scratch_bytes() const override {
    if (!e_.last()) return 0;
    const size_t channels = e_.channels;
    return channels * (3 * sizeof(double) * static_cast<size_t>(chunks_.count()) + 3 * sizeof(A));
  }

  void run(const KernelArgs& args) const override {
    if (e_.last()) return run_rows(args);
    parallel_for(0, e_.channels, 0.5 * static_cast<double>(e_.count()),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t c = begin; c < end; ++c) run_channel(args, c);
                 });
  }

 private:
  struct Line {
    A mean, scale, shift;
  };

  static double one_number(DType dtype, const void* data, int64_t at) {
    double value = 0;
    read_numbers(dtype, static_cast<const char*>(data) + at * static_cast<int64_t>(size_of(dtype)),
                 1, &value);
    return value;
  }
  void store(const KernelArgs& args, size_t output, int64_t c, double value) const {
    const DType dtype = outputs_[output];
    write_numbers(
        dtype, static_cast<char*>(args.outputs[output]) + c * static_cast<int64_t>(size_of(dtype)),
        1, &value);
  }

  // Writes the statistics of a channel; what is left is y = (x - mean) * scale + shift.
  Line finish(const KernelArgs& args, int64_t c, const Moments& m) const {
    const double mean = m.count > 0 ? m.sum / m.count : 0;
    const double inv_std = 1 / std::sqrt((m.count > 0 ? m.squares / m.count : 0) + epsilon_);
    store(args, 1, c, mean);
    store(args, 2, c, inv_std);
    for (size_t k = 3; k < outputs_.size(); ++k) {
      double statistic = mean;
      if (k == 4) statistic = m.count > 0 ? m.squares / (unbiased_ ? m.count - 1 : m.count) : 0;
      if (parameters_[k]) {
        const double running = one_number(*parameters_[k], args.inputs[k], c);
        statistic = momentum_ == 0 ? running : running * (1 - momentum_) + statistic * momentum_;
      }
      store(args, k, c, statistic);
    }
    const double gamma = parameters_[1] ? one_number(*parameters_[1], args.inputs[1], c) : 1;
    const double beta = parameters_[2] ? one_number(*parameters_[2], args.inputs[2], c) : 0;
    // What the mean loses when it is rounded goes into the shift.
    const A rounded = static_cast<A>(mean);
    const double lost = static_cast<double>(rounded) - mean, scale = inv_std * gamma;
    return {rounded, static_cast<A>(scale),
            static_cast<A>(std::isfinite(lost * scale) ? beta + lost * scale : beta)};
  }

  void run_channel(const KernelArgs& args, int64_t c) const {
    const GradientOps<A>& ops = gradient_ops<A>();
    Moments moments;
    tiles_.template each<1>(c, {args.inputs[0]}, nullptr, [&](const A* const* in, A*, int64_t n) {
      const size_t count = n;
      const A mean = ops.sum(in[0], count) / static_cast<A>(n);
      moments.add(static_cast<double>(n), mean, ops.sum_centered(in[0], mean, count));
    });
    const Line line = finish(args, c, moments);
    tiles_.template each<1>(c, {args.inputs[0]}, args.outputs[0],
                            [&](const A* const* in, A* out, int64_t n) {
                              ops.affine(in[0], line.mean, line.scale, line.shift, out, n);
                            });
  }

  void run_rows(const KernelArgs& args) const {
    const GradientOps<A>& ops = gradient_ops<A>();
    const int64_t channels = e_.channels, chunks = chunks_.count();
    auto* partial = static_cast<double*>(args.scratch);  // [chunk][mean, squares, sum][channel]
    A* const lines = reinterpret_cast<A*>(partial + chunks * 3 * channels);
    parallel_for(0, chunks, 0.3 * static_cast<double>(chunks_.each() * channels),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t k = begin; k < end; ++k)
                     for (int64_t c = 0; c < channels; c += kRowTile)
                       sum_chunk(args, k, c, std::min(kRowTile, channels - c),
                                 partial + k * 3 * channels + c);
                 });
    merge_chunks(partial);
    A *const mean = lines, *const scale = lines + channels, *const shift = lines + 2 * channels;
    parallel_for(0, channels, 30, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        Moments all;
        if (chunks > 0)
          all = {static_cast<double>(e_.outer), partial[c], partial[channels + c],
                 partial[2 * channels + c]};
        const Line line = finish(args, c, all);
        mean[c] = line.mean;
        scale[c] = line.scale;
        shift[c] = line.shift;
      }
    });
    parallel_for(0, e_.outer, 0.3 * static_cast<double>(channels), [&](int64_t begin, int64_t end) {
      alignas(64) A in[kRowTile], out[kRowTile];
      for (int64_t row = begin; row < end; ++row)
        for_row_tiles(channels, [&](int64_t c, int64_t n) {
          const int64_t first = row * channels + c;
          A* const y = rows_.target(args.outputs[0], first, out);
          ops.affine_each(rows_.read(args.inputs[0], first, n, in), mean + c, scale + c, shift + c,
                          y, n);
          rows_.write(args.outputs[0], first, n, y);
        });
    });
  }

  // Into the first, in their order.
  void merge_chunks(double* partial) const {
    const int64_t channels = e_.channels;
    for (int64_t k = 1; k < chunks_.count(); ++k) {
      const auto rows = static_cast<double>(chunks_.end(k) - chunks_.begin(k));
      const auto before = static_cast<double>(chunks_.begin(k));
      const double share = rows / (before + rows), weight = before * share;
      const double* const part = partial + k * 3 * channels;
      for (int64_t c = 0; c < channels; ++c) {
        const double distance = part[c] - partial[c];
        partial[c] += distance * share;
        partial[channels + c] += part[channels + c] + distance * distance * weight;
        partial[2 * channels + c] += part[2 * channels + c];
      }
    }
  }

  // The statistics of n channels over the rows of a chunk, from blocks that fit the L1 cache.
  void sum_chunk(const KernelArgs& args, int64_t chunk, int64_t channel, int64_t n,
                 double* result) const {
    const GradientOps<A>& ops = gradient_ops<A>();
    const size_t width = n;
    alignas(64) A block[RowBlock<A>::kElements], mean[kRowTile], squares[kRowTile];
    double *const means = result, *const all = result + e_.channels,
                  *const sums = all + e_.channels;
    std::fill_n(means, n, 0.0);
    std::fill_n(all, n, 0.0);
    std::fill_n(sums, n, 0.0);
    double before = 0;
    const int64_t step = RowBlock<A>::rows_of(n), end = chunks_.end(chunk);
    for (int64_t row = chunks_.begin(chunk); row < end; row += step) {
      const RowBlock<A> x(rows_, args.inputs[0], row, std::min(step, end - row), e_.channels,
                          channel, n, block);
      const auto rows = static_cast<double>(x.rows);
      ops.column_sum(x.data, x.stride, x.rows, mean, width);
      for (int64_t i = 0; i < n; ++i) {
        sums[i] += static_cast<double>(mean[i]);
        mean[i] = mean[i] / static_cast<A>(x.rows);
      }
      ops.column_centered(x.data, mean, x.stride, x.rows, squares, width);
      const double share = rows / (before + rows), weight = before * share;
      for (int64_t i = 0; i < n; ++i) {
        const double distance = static_cast<double>(mean[i]) - means[i];
        all[i] += static_cast<double>(squares[i]) + distance * distance * weight;
        means[i] += distance * share;
      }
      before += rows;
    }
  }

  NormExtents e_;
  RowChunks chunks_;
  ChannelTiles<A> tiles_;
  DenseRows<A> rows_;
  std::optional<DType> parameters_[5];
  std::vector<DType> outputs_;
  double momentum_ = 0, epsilon_ = 0;
  bool unbiased_ = true;
};

template <typename A>
class BatchNormGradient final : public Kernel {
 public:
  explicit BatchNormGradient(const KernelRequest& request)
      : e_(request.attrs, request.in(1).shape),
        chunks_(e_.outer, e_.channels),
        tiles_(e_, request.in(1).dtype),
        rows_(request.in(1).dtype),
        statistics_(request.in(2).dtype),
        training_(request.attrs.b("training")) {
    if (request.has(4)) gamma_ = request.in(4).dtype;
    for (size_t i = 1; i < request.outputs.size(); ++i) outputs_.push_back(request.out(i).dtype);
  }

  // mean, inv_std and gamma, then a, b and c of dx = dy * a + (x - mean) * b + c; partial sums.
  size_t scratch_bytes() const override {
    const size_t channels = e_.channels;
    const size_t parts = e_.last() ? static_cast<size_t>(chunks_.count()) : 1;
    return channels * (2 * sizeof(double) * parts + 6 * sizeof(A));
  }

  void run(const KernelArgs& args) const override {
    const int64_t channels = e_.channels;
    auto* const partial = static_cast<double*>(args.scratch);
    const int64_t parts = e_.last() ? chunks_.count() : 1;
    A* const numbers = reinterpret_cast<A*>(partial + parts * 2 * channels);
    read_numbers(statistics_, args.inputs[2], channels, numbers);
    read_numbers(statistics_, args.inputs[3], channels, numbers + channels);
    if (gamma_)
      read_numbers(*gamma_, args.inputs[4], channels, numbers + 2 * channels);
    else
      std::fill_n(numbers + 2 * channels, channels, A(1));
    if (e_.last())
      run_rows(args, partial, numbers);
    else
      parallel_for(0, channels, 0.5 * static_cast<double>(e_.count()),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t c = begin; c < end; ++c) run_channel(args, c, partial, numbers);
                   });
    for (size_t i = 0; i < outputs_.size(); ++i)
      write_numbers(outputs_[i], args.outputs[i + 1], channels, partial + (1 - i) * channels);
  }

 private:
  // From the sums of dy and of dy * (x - mean), which becomes dgamma.
  void finish(int64_t c, double* sums, A* numbers) const {
    const int64_t channels = e_.channels;
    const double inv_std = static_cast<double>(numbers[channels + c]);
    const double a = static_cast<double>(numbers[2 * channels + c]) * inv_std;
    const auto count = static_cast<double>(e_.count());
    double& moment = sums[channels + c];
    numbers[3 * channels + c] = static_cast<A>(a);
    numbers[4 * channels + c] = static_cast<A>(-a * inv_std * inv_std * moment / count);
    numbers[5 * channels + c] = static_cast<A>(-a * sums[c] / count);
    moment *= inv_std;
  }

  void run_channel(const KernelArgs& args, int64_t c, double* sums, A* numbers) const {
    const GradientOps<A>& ops = gradient_ops<A>();
    const int64_t channels = e_.channels;
    const A mean = numbers[c];
    sums[c] = sums[channels + c] = 0;
    tiles_.template each<2>(c, {args.inputs[0], args.inputs[1]}, nullptr,
                            [&](const A* const* in, A*, int64_t n) {
                              A both[2];
                              ops.sums(in[0], in[1], nullptr, mean, both, n);
                              sums[c] += static_cast<double>(both[0]);
                              sums[channels + c] += static_cast<double>(both[1]);
                            });
    finish(c, sums, numbers);
    const A a = numbers[3 * channels + c];
    if (training_)
      tiles_.template each<2>(c, {args.inputs[0], args.inputs[1]}, args.outputs[0],
                              [&](const A* const* in, A* out, int64_t n) {
                                ops.combine(in[0], in[1], nullptr, mean, a,
                                            numbers[4 * channels + c], numbers[5 * channels + c],
                                            out, n);
                              });
    else
      tiles_.template each<1>(
          c, {args.inputs[0]}, args.outputs[0],
          [&](const A* const* in, A* out, int64_t n) { ops.affine(in[0], A(0), a, A(0), out, n); });
  }

  void run_rows(const KernelArgs& args, double* partial, A* numbers) const {
    const GradientOps<A>& ops = gradient_ops<A>();
    const int64_t channels = e_.channels, chunks = chunks_.count();
    parallel_for(0, chunks, 0.3 * static_cast<double>(chunks_.each() * channels),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t k = begin; k < end; ++k)
                     for (int64_t c = 0; c < channels; c += kRowTile)
                       sum_chunk(args, k, c, std::min(kRowTile, channels - c), numbers,
                                 partial + k * 2 * channels + c);
                 });
    if (chunks == 0) std::fill_n(partial, 2 * channels, 0.0);
    for (int64_t k = 1; k < chunks; ++k)
      for (int64_t i = 0; i < 2 * channels; ++i) partial[i] += partial[k * 2 * channels + i];
    for (int64_t c = 0; c < channels; ++c) finish(c, partial, numbers);
    if (!training_) std::fill_n(numbers + 5 * channels, channels, A(0));
    parallel_for(0, e_.outer, 0.4 * static_cast<double>(channels), [&](int64_t begin, int64_t end) {
      alignas(64) A dy_tile[kRowTile], x_tile[kRowTile], out[kRowTile], zero[kRowTile] = {};
      for (int64_t row = begin; row < end; ++row)
        for_row_tiles(channels, [&](int64_t c, int64_t n) {
          const int64_t first = row * channels + c;
          const A* dy = rows_.read(args.inputs[0], first, n, dy_tile);
          const A* at = numbers + c;
          A* const dx = rows_.target(args.outputs[0], first, out);
          if (training_)
            ops.combine_each(dy, rows_.read(args.inputs[1], first, n, x_tile), at,
                             at + 3 * channels, at + 4 * channels, at + 5 * channels, dx, n);
          else
            ops.affine_each(dy, zero, at + 3 * channels, zero, dx, n);
          rows_.write(args.outputs[0], first, n, dx);
        });
    });
  }

  void sum_chunk(const KernelArgs& args, int64_t chunk, int64_t channel, int64_t n,
                 const A* numbers, double* result) const {
    const GradientOps<A>& ops = gradient_ops<A>();
    alignas(64) A dy_block[RowBlock<A>::kElements], x_block[RowBlock<A>::kElements], sum[kRowTile],
        moment[kRowTile];
    std::fill_n(result, n, 0.0);
    std::fill_n(result + e_.channels, n, 0.0);
    const int64_t step = RowBlock<A>::rows_of(n), end = chunks_.end(chunk);
    for (int64_t row = chunks_.begin(chunk); row < end; row += step) {
      const int64_t rows = std::min(step, end - row);
      const RowBlock<A> dy(rows_, args.inputs[0], row, rows, e_.channels, channel, n, dy_block);
      const RowBlock<A> x(rows_, args.inputs[1], row, rows, e_.channels, channel, n, x_block);
      ops.column_sums(dy.data, x.data, numbers + channel, x.stride, x.rows, sum, moment, n);
      for (int64_t i = 0; i < n; ++i) {
        result[i] += static_cast<double>(sum[i]);
        result[e_.channels + i] += static_cast<double>(moment[i]);
      }
    }
  }

  NormExtents e_;
  RowChunks chunks_;
  ChannelTiles<A> tiles_;
  DenseRows<A> rows_;
  DType statistics_;
  std::optional<DType> gamma_;
  std::vector<DType> outputs_;  // of dgamma and dbeta
  bool training_;
};

template <template <typename> class K, size_t x>
KernelPtr make_training_norm(const KernelRequest& request, std::string& why) {
  if (!dense(request, why)) return nullptr;
  return with_computed(request.in(x).dtype,
                       [&]<typename A>() -> KernelPtr { return std::make_shared<K<A>>(request); });
}

const KernelRegistrar kBatchNormTraining("cpu", "batch_norm_training", "simd", 10,
                                         make_training_norm<BatchNormTraining, 0>);
const KernelRegistrar kBatchNormGradient("cpu", "batch_norm_training_gradient", "simd", 10,
                                         make_training_norm<BatchNormGradient, 1>);

}  // namespace

}  // namespace anymps::cpu
