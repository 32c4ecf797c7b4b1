// SPDX-License-Identifier: Apache-2.0
// Attention of f64 and its gradient as products (typed_gemm.h): the scores of some heads and
// queries at a time stay in the cache between the product that makes them, the softmax and the
// products that use them.
#include <array>
#include <cmath>
#include <limits>

#include "drivers/cpu/linear/typed_gemm.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kMostScores = 1 << 18;                   // at a time: 2 MiB
constexpr int64_t kMostQueries = 256, kLeastQueries = 16;  // of a block
constexpr double kScoreNs = 8;                             // for the exponential of a score
constexpr double kNone = -std::numeric_limits<double>::infinity();  // the score of no key

// The strides of a tensor [B, H, rows, columns].
struct Heads {
  Heads() = default;
  explicit Heads(const TensorDesc& desc) : strides(desc.strides) {}
  int64_t at(int64_t b, int64_t h, int64_t row) const {
    return b * strides[0] + h * strides[1] + row * strides[2];
  }
  TypedGemm::Matrix matrix() const { return {strides[2], strides[3]}; }
  TypedGemm::Matrix transposed() const { return {strides[3], strides[2]}; }
  int64_t step() const { return strides[1]; }
  Strides strides;
};

// One product for each head of a group: rows by depth times depth by columns.
struct Factor {
  TypedGemm::Matrix matrix;
  int64_t step = 0;  // from one head to the next
};
TypedGemm product(int64_t heads, int64_t rows, int64_t depth, int64_t columns, const Factor& a,
                  const Factor& b, const Factor& y) {
  TypedGemm::Problem problem;
  problem.rows = rows;
  problem.depth = depth;
  problem.columns = columns;
  problem.a = a.matrix;
  problem.b = b.matrix;
  problem.y = y.matrix;
  problem.batch = Loops{{heads}, {{a.step}, {b.step}, {y.step}}};
  return TypedGemm(std::move(problem));
}

// What attention and its gradient share: how heads and queries are cut into blocks, and the scores
// of a query before the softmax.
class Blocks {
 public:
  // Inputs q, k, v, and the mask if there is one, are those of these numbers.
  Blocks(const KernelRequest& request, size_t q, size_t mask)
      : shape(request.in(q).shape),
        keys(request.in(q + 1).shape[2]),
        width(request.in(q + 2).shape[3]),
        causal_(request.attrs.b("causal")),
        mask_input_(mask) {
    const double asked = request.attrs.f("scale");
    scale = asked != 0 ? asked : 1 / std::sqrt(static_cast<double>(depth()));
    if (request.has(mask)) {
      mask_dtype_ = request.in(mask).dtype;
      mask_ = broadcast_strides(request.in(mask), {shape[0], shape[1], shape[2], keys});
    }
    // Products of one key are not added up: its queries are one block.
    const int64_t fit = std::clamp(kMostScores / keys, kLeastQueries, kMostQueries);
    block = keys == 1 ? queries() : std::min(queries(), fit);
    for (int64_t n = 1; n <= shape[1]; ++n)
      if (shape[1] % n == 0 && n * block * keys <= kMostScores) group = n;
    sizes = {block, queries() - (queries() - 1) / block * block};
  }
  int64_t queries() const { return shape[2]; }
  int64_t depth() const { return shape[3]; }
  int64_t scores() const { return group * block * keys; }
  Factor scores_by_query() const { return {{keys, 1}, block * keys}; }
  Factor scores_by_key() const { return {{1, keys}, block * keys}; }

  // Calls fn(b, first head, first query, which of the sizes).
  template <typename Fn>
  void for_each(Fn&& fn) const {
    for (int64_t b = 0; b < shape[0]; ++b)
      for (int64_t h = 0; h < shape[1]; h += group)
        for (int64_t s = 0; s < queries(); s += block)
          fn(b, h, s, s + block < queries() ? size_t{0} : size_t{1});
  }
  // Calls fn(h, s, place among the scores) for the queries of a block, in parallel.
  template <typename Fn>
  void for_each_query(int64_t h, int64_t s, int64_t size, Fn&& fn) const {
    parallel_for(0, group * size, kScoreNs * static_cast<double>(keys),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     fn(h + i / size, s + i % size, (i / size * block + i % size) * keys);
                 });
  }

  // Scales and masks the products of a query with the keys; returns the highest score, or NaN.
  double mask_scores(const KernelArgs& args, int64_t b, int64_t h, int64_t s, double* row) const {
    for (int64_t t = 0; t < keys; ++t) row[t] *= scale;
    if (!mask_.empty()) {
      const int64_t at = b * mask_[0] + h * mask_[1] + s * mask_[2];
      dispatch<kPrecise | kBoolean>(mask_dtype_, [&]<typename T>() {
        using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
        const auto* mask = static_cast<const Stored*>(args.inputs[mask_input_]) + at;
        for (int64_t t = 0; t < keys; ++t) {
          const Stored value = mask[t * mask_[3]];
          if constexpr (std::is_same_v<T, bool>)
            row[t] = value != 0 ? row[t] : kNone;
          else
            row[t] += static_cast<double>(value);
        }
      });
    }
    if (causal_)
      for (int64_t t = s + 1; t < keys; ++t) row[t] = kNone;
    double most = kNone;
    for (int64_t t = 0; t < keys; ++t) most = std::isnan(row[t]) || row[t] > most ? row[t] : most;
    return most;
  }
  // Masked scores become exp(score - shift); returns their sum.
  double exponentials(double shift, double* row) const {
    double sum = 0;
    for (int64_t t = 0; t < keys; ++t) sum += row[t] = std::exp(row[t] - shift);
    return sum;
  }

  Shape shape;  // of q
  int64_t keys, width;
  double scale = 1;
  int64_t block = 1, group = 1;           // queries and heads at a time
  std::array<int64_t, 2> sizes = {1, 1};  // of blocks: all but the last, and the last

 private:
  bool causal_;
  size_t mask_input_;
  Strides mask_;  // as if it had the scores' shape; empty: no mask
  DType mask_dtype_ = DType::kF64;
};

size_t scratch_of(const std::vector<TypedGemm>& products) {
  size_t most = 0;
  for (const TypedGemm& one : products) most = std::max(most, one.scratch_bytes());
  return most;
}

class TypedAttention final : public Kernel {
 public:
  explicit TypedAttention(const KernelRequest& request)
      : blocks_(request, 0, 3),
        q_(request.in(0)),
        k_(request.in(1)),
        v_(request.in(2)),
        y_(request.out()) {
    if (request.outputs.size() > 1) sums_ = request.out(1).strides;
    for (const int64_t size : blocks_.sizes) {
      scores_.push_back(product(blocks_.group, size, blocks_.depth(), blocks_.keys,
                                {q_.matrix(), q_.step()}, {k_.transposed(), k_.step()},
                                blocks_.scores_by_query()));
      values_.push_back(product(blocks_.group, size, blocks_.keys, blocks_.width,
                                blocks_.scores_by_query(), {v_.matrix(), v_.step()},
                                {y_.matrix(), y_.step()}));
    }
  }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(blocks_.scores()) * sizeof(double) + 64 +
           std::max(scratch_of(scores_), scratch_of(values_));
  }
  void run(const KernelArgs& args) const override {
    const auto* q = static_cast<const double*>(args.inputs[0]);
    const auto* k = static_cast<const double*>(args.inputs[1]);
    const auto* v = static_cast<const double*>(args.inputs[2]);
    auto* y = static_cast<double*>(args.outputs[0]);
    auto* scores = static_cast<double*>(args.scratch);
    void* more = scores + (blocks_.scores() + 7) / 8 * 8;
    blocks_.for_each([&](int64_t b, int64_t h, int64_t s, size_t which) {
      scores_[which].run(q + q_.at(b, h, s), k + k_.at(b, h, 0), scores, more);
      blocks_.for_each_query(
          h, s, blocks_.sizes[which], [&](int64_t head, int64_t query, int64_t at) {
            const double log_sum = softmax(args, b, head, query, scores + at);
            if (!sums_.empty())
              static_cast<double*>(
                  args.outputs[1])[b * sums_[0] + head * sums_[1] + query * sums_[2]] = log_sum;
          });
      values_[which].run(scores, v + v_.at(b, h, 0), y + y_.at(b, h, s), more);
    });
  }

 private:
  double softmax(const KernelArgs& args, int64_t b, int64_t h, int64_t s, double* row) const {
    const double most = blocks_.mask_scores(args, b, h, s, row);
    if (most == kNone) {  // no key is kept
      std::fill_n(row, blocks_.keys, 0.0);
      return kNone;
    }
    const double sum = blocks_.exponentials(most, row);
    for (int64_t t = 0; t < blocks_.keys; ++t) row[t] /= sum;
    return most + std::log(sum);
  }

  Blocks blocks_;
  Heads q_, k_, v_, y_;
  Strides sums_;                            // empty: not asked for
  std::vector<TypedGemm> scores_, values_;  // for each of the blocks' sizes
};

class TypedAttentionGradient final : public Kernel {
 public:
  explicit TypedAttentionGradient(const KernelRequest& request)
      : blocks_(request, 1, 6),
        dy_(request.in(0)),
        q_(request.in(1)),
        k_(request.in(2)),
        v_(request.in(3)),
        y_(request.in(4)) {
    if (request.has(5)) sums_ = request.in(5).strides, sums_dtype_ = request.in(5).dtype;
    for (const TensorDesc& output : request.outputs) out_.emplace_back(output);
    const Factor by_query = blocks_.scores_by_query(), by_key = blocks_.scores_by_key();
    const int64_t group = blocks_.group, keys = blocks_.keys, depth = blocks_.depth(),
                  width = blocks_.width;
    const auto factor = [](const Heads& heads) { return Factor{heads.matrix(), heads.step()}; };
    const auto turned = [](const Heads& heads) { return Factor{heads.transposed(), heads.step()}; };
    for (const int64_t size : blocks_.sizes) {
      scores_.push_back(product(group, size, depth, keys, factor(q_), turned(k_), by_query));
      slopes_.push_back(product(group, size, width, keys, factor(dy_), turned(v_), by_query));
      dq_.push_back(product(group, size, keys, depth, by_query, factor(k_), factor(out_[0])));
      if (out_.size() > 1)
        dk_.push_back(product(group, keys, size, depth, by_key, factor(q_), factor(out_[1])));
      if (out_.size() > 2)
        dv_.push_back(product(group, keys, size, width, by_key, factor(dy_), factor(out_[2])));
    }
  }
  size_t scratch_bytes() const override {
    size_t most = 0;
    for (const auto* products : {&scores_, &slopes_, &dq_, &dk_, &dv_})
      most = std::max(most, scratch_of(*products));
    return 2 * (static_cast<size_t>(blocks_.scores()) * sizeof(double) + 64) + most;
  }
  void run(const KernelArgs& args) const override {
    const auto in = [&](size_t i) { return static_cast<const double*>(args.inputs[i]); };
    const auto out = [&](size_t i) { return static_cast<double*>(args.outputs[i]); };
    auto* p = static_cast<double*>(args.scratch);
    double* ds = p + (blocks_.scores() + 7) / 8 * 8;
    void* more = ds + (blocks_.scores() + 7) / 8 * 8;
    blocks_.for_each([&](int64_t b, int64_t h, int64_t s, size_t which) {
      const double *dy = in(0) + dy_.at(b, h, s), *q = in(1) + q_.at(b, h, s);
      const double *k = in(2) + k_.at(b, h, 0), *v = in(3) + v_.at(b, h, 0);
      scores_[which].run(q, k, p, more);
      slopes_[which].run(dy, v, ds, more);
      blocks_.for_each_query(h, s, blocks_.sizes[which],
                             [&](int64_t head, int64_t query, int64_t at) {
                               slopes(args, b, head, query, p + at, ds + at);
                             });
      dq_[which].run(ds, k, out(0) + out_[0].at(b, h, s), more);
      if (out_.size() > 1) dk_[which].run(ds, q, out(1) + out_[1].at(b, h, 0), more, s > 0);
      if (out_.size() > 2) dv_[which].run(p, dy, out(2) + out_[2].at(b, h, 0), more, s > 0);
    });
  }

 private:
  // From products with keys and values to the weights of the keys and the slopes of the scores.
  void slopes(const KernelArgs& args, int64_t b, int64_t h, int64_t s, double* p,
              double* ds) const {
    const double most = blocks_.mask_scores(args, b, h, s, p);
    double log_sum = most;
    if (!sums_.empty()) {
      const int64_t at = b * sums_[0] + h * sums_[1] + s * sums_[2];
      dispatch<kPrecise>(sums_dtype_, [&]<typename T>() {
        log_sum = static_cast<double>(static_cast<const T*>(args.inputs[5])[at]);
      });
    } else if (most != kNone) {
      double sum = 0;
      for (int64_t t = 0; t < blocks_.keys; ++t) sum += std::exp(p[t] - most);
      log_sum += std::log(sum);
    }
    if (log_sum == kNone) {  // no key is kept
      std::fill_n(p, blocks_.keys, 0.0);
      std::fill_n(ds, blocks_.keys, 0.0);
      return;
    }
    blocks_.exponentials(log_sum, p);
    double delta = 0;
    const auto* dy = static_cast<const double*>(args.inputs[0]) + dy_.at(b, h, s);
    const auto* y = static_cast<const double*>(args.inputs[4]) + y_.at(b, h, s);
    for (int64_t d = 0; d < blocks_.width; ++d)
      delta += dy[d * dy_.strides[3]] * y[d * y_.strides[3]];
    for (int64_t t = 0; t < blocks_.keys; ++t) ds[t] = p[t] * (ds[t] - delta) * blocks_.scale;
  }

  Blocks blocks_;
  Heads dy_, q_, k_, v_, y_;
  std::vector<Heads> out_;
  Strides sums_;  // empty: computed again
  DType sums_dtype_ = DType::kF64;
  std::vector<TypedGemm> scores_, slopes_, dq_, dk_, dv_;  // for each of the blocks' sizes
};

template <typename K>
KernelPtr make_typed_attention(const KernelRequest& request, size_t q, size_t mask,
                               std::string& why) {
  if (request.in(q).dtype != DType::kF64)
    return refuse(why, fmt::format("dtype {}", name(request.in(q).dtype)));
  const Shape &queries = request.in(q).shape, &values = request.in(q + 2).shape;
  if (element_count(queries) == 0 || element_count(values) == 0)
    return refuse(why, "nothing to multiply");
  if (request.has(mask) && !contains(kPrecise | kBoolean, request.in(mask).dtype))
    return refuse(why, fmt::format("a mask of {}", name(request.in(mask).dtype)));
  return std::make_shared<K>(request);
}

const KernelRegistrar kTypedAttention("cpu", "sdpa", "typed", 20,
                                      [](const KernelRequest& request, std::string& why) {
                                        return make_typed_attention<TypedAttention>(request, 0, 3,
                                                                                    why);
                                      });
const KernelRegistrar kTypedGradient("cpu", "sdpa_gradient", "typed", 20,
                                     [](const KernelRequest& request, std::string& why) {
                                       return make_typed_attention<TypedAttentionGradient>(
                                           request, 1, 6, why);
                                     });

}  // namespace

}  // namespace anymps::cpu
