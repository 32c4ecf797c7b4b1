// SPDX-License-Identifier: Apache-2.0
// Gradients of tables of rows, and bags of rows. What is added to a row is found by sorting the
// indices first, so that each row is summed in f32 in the order of the indices, by one thread, and
// written once.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/dense_rows.h"
#include "drivers/cpu/common/gradient_ops.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

int64_t index_at(DType dtype, const void* data, int64_t i) {
  return dtype == DType::kI64 ? static_cast<const int64_t*>(data)[i]
                              : int64_t{static_cast<const int32_t*>(data)[i]};
}

// Which positions of a list of indices name each row; sorted into scratch memory.
struct RowLists {
  int64_t rows = 0, count = 0;
  DType dtype = DType::kI64;
  const char* op = "";

  size_t numbers() const { return rows + 1 + count; }
  int64_t row(const void* indices, int64_t i) const {
    const int64_t at = index_at(dtype, indices, i);
    if (at < 0 || at >= rows) [[unlikely]]
      fail(Code::kInvalidArgument, "[{}] index {} is out of range for {} rows", op, at, rows);
    return at;
  }
  // begin[r] … begin[r + 1] are the places of row r's positions in the list after `begin`.
  void sort(const void* indices, int64_t* begin) const {
    int64_t* const order = begin + rows + 1;
    std::fill_n(begin, rows + 1, int64_t{0});
    for (int64_t i = 0; i < count; ++i) ++begin[row(indices, i) + 1];
    std::partial_sum(begin, begin + rows + 1, begin);
    for (int64_t i = 0; i < count; ++i) order[begin[row(indices, i)]++] = i;
    for (int64_t r = rows; r > 0; --r) begin[r] = begin[r - 1];
    begin[0] = 0;
  }
};

// to += row * scale, over a part of a row.
template <typename A>
void add_scaled(const A* row, A scale, A* to, int64_t n) {
  const GradientOps<A>& ops = gradient_ops<A>();
  if (scale == A(1))
    ops.add(row, to, n);
  else
    ops.combine(row, to, nullptr, A(0), scale, A(1), A(0), to, n);
}

// Writes all rows of a table. source(position, factor) gives the row of dy for a position of the
// indices, negative for none, and its factor.
template <typename A, typename Source>
void sum_rows(const RowLists& lists, const int64_t* begin, int64_t padding, bool by_frequency,
              int64_t width, const DenseRows<A>& rows, const void* dy, void* dweight,
              const Source& source) {
  const int64_t* const order = begin + lists.rows + 1;
  const double ns = 5 + 0.2 * static_cast<double>(width) *
                            (1 + static_cast<double>(lists.count) /
                                     static_cast<double>(std::max<int64_t>(lists.rows, 1)));
  parallel_for(0, lists.rows, ns, [&](int64_t first, int64_t last) {
    alignas(64) A in[kRowTile], out[kRowTile];
    for (int64_t r = first; r < last; ++r) {
      const int64_t picks = r == padding ? 0 : begin[r + 1] - begin[r];
      const A scale = by_frequency && picks > 0 ? A(1) / static_cast<A>(picks) : A(1);
      for_row_tiles(width, [&](int64_t d, int64_t n) {
        A* const to = rows.target(dweight, r * width + d, out);
        std::fill_n(to, n, A(0));
        for (int64_t k = 0; k < picks; ++k) {
          A factor = 1;
          const int64_t from = source(order[begin[r] + k], factor);
          if (from < 0) continue;
          add_scaled(rows.read(dy, from * width + d, n, in), factor * scale, to, n);
        }
        rows.write(dweight, r * width + d, n, to);
      });
    }
  });
}

template <typename A>
class EmbeddingGradient final : public Kernel {
 public:
  explicit EmbeddingGradient(const KernelRequest& request)
      : rows_(request.in(0).dtype),
        lists_{request.attrs.i("rows"), request.in(1).count(), request.in(1).dtype,
               request.op->name.c_str()},
        width_(request.in(0).shape.back()),
        padding_(request.attrs.i("padding_idx")),
        by_frequency_(request.attrs.b("scale_grad_by_freq")) {}
  size_t scratch_bytes() const override { return lists_.numbers() * sizeof(int64_t); }
  void run(const KernelArgs& args) const override {
    auto* const begin = static_cast<int64_t*>(args.scratch);
    lists_.sort(args.inputs[1], begin);
    sum_rows(lists_, begin, padding_, by_frequency_, width_, rows_, args.inputs[0], args.outputs[0],
             [](int64_t i, A&) { return i; });
  }

 private:
  DenseRows<A> rows_;
  RowLists lists_;
  int64_t width_, padding_;
  bool by_frequency_;
};

// Where bags begin, checked; `weight` is the number of that input.
struct BagRanges {
  BagRanges(const KernelRequest& request, size_t weight)
      : lists{request.in(weight).shape[0], request.in(weight + 1).count(),
              request.in(weight + 1).dtype, request.op->name.c_str()},
        input(weight + 2),
        dtype(request.in(weight + 2).dtype),
        offsets(request.in(weight + 2).count()),
        last(request.attrs.b("include_last_offset")),
        padding(request.attrs.i("padding_idx")),
        mean(request.attrs.s("mode") == "mean"),
        max(request.attrs.s("mode") == "max") {}
  int64_t count() const { return offsets - (last ? 1 : 0); }
  // count() + 1 places.
  void read(const KernelArgs& args, int64_t* begin) const {
    int64_t before = 0;
    for (int64_t i = 0; i < offsets; ++i) {
      const int64_t at = index_at(dtype, args.inputs[input], i);
      if (at < before || at > lists.count || (i == 0 && at != 0)) [[unlikely]]
        fail(Code::kInvalidArgument, "[{}] offset {} is {}, must be from {} to {}", lists.op, i, at,
             before, i > 0 ? lists.count : 0);
      begin[i] = before = at;
    }
    if (!last) begin[offsets] = lists.count;
  }
  RowLists lists;
  size_t input;
  DType dtype;
  int64_t offsets;
  bool last;
  int64_t padding;
  bool mean, max;
};

template <typename A>
class EmbeddingBag final : public Kernel {
 public:
  explicit EmbeddingBag(const KernelRequest& request)
      : bags_(request, 0),
        rows_(request.in(0).dtype),
        width_(request.in(0).shape[1]),
        weighted_(request.has(3)),
        places_(request.outputs.size() > 1 && bags_.max) {}
  size_t scratch_bytes() const override {
    return static_cast<size_t>(bags_.count() + 1) * sizeof(int64_t);
  }
  void run(const KernelArgs& args) const override {
    auto* const begin = static_cast<int64_t*>(args.scratch);
    bags_.read(args, begin);
    const double each = static_cast<double>(bags_.lists.count + bags_.count()) /
                        static_cast<double>(std::max<int64_t>(bags_.count(), 1));
    parallel_for(0, bags_.count(), 10 + 0.3 * each * static_cast<double>(width_),
                 [&](int64_t first, int64_t last) {
                   for (int64_t b = first; b < last; ++b) run_bag(args, b, begin[b], begin[b + 1]);
                 });
  }

 private:
  void run_bag(const KernelArgs& args, int64_t bag, int64_t first, int64_t last) const {
    alignas(64) A out[kRowTile];
    for_row_tiles(width_, [&](int64_t d, int64_t n) {
      A* const y = rows_.target(args.outputs[0], bag * width_ + d, out);
      std::fill_n(y, n, A(0));
      const int64_t size = bags_.max ? take_largest(args, bag, first, last, d, n, y)
                           : rows_.direct() && !weighted_
                               ? add_in_groups(args, first, last, d, n, y)
                               : add_each(args, first, last, d, n, y);
      if (bags_.mean && size > 1)
        gradient_ops<A>().affine(y, A(0), A(1) / static_cast<A>(size), A(0), y, n);
      rows_.write(args.outputs[0], bag * width_ + d, n, y);
    });
  }

  // Each of these gives how many rows were picked.
  int64_t add_in_groups(const KernelArgs& args, int64_t first, int64_t last, int64_t d, int64_t n,
                        A* y) const {
    constexpr size_t kGroup = 16;
    const A* group[kGroup];
    const auto* const weight = static_cast<const A*>(args.inputs[0]) + d;
    size_t count = 0;
    int64_t size = 0;
    for (int64_t i = first; i < last; ++i) {
      const int64_t row = bags_.lists.row(args.inputs[1], i);
      if (row == bags_.padding) continue;
      group[count++] = weight + row * width_;
      ++size;
      if (count == kGroup) gradient_ops<A>().add_rows(group, std::exchange(count, 0), y, n);
    }
    gradient_ops<A>().add_rows(group, count, y, n);
    return size;
  }

  int64_t add_each(const KernelArgs& args, int64_t first, int64_t last, int64_t d, int64_t n,
                   A* y) const {
    alignas(64) A in[kRowTile];
    int64_t size = 0;
    for (int64_t i = first; i < last; ++i) {
      const int64_t row = bags_.lists.row(args.inputs[1], i);
      if (row == bags_.padding) continue;
      A buffer[1];
      const A sample = weighted_ ? *rows_.read(args.inputs[3], i, 1, buffer) : A(1);
      add_scaled(rows_.read(args.inputs[0], row * width_ + d, n, in), sample, y, n);
      ++size;
    }
    return size;
  }

  int64_t take_largest(const KernelArgs& args, int64_t bag, int64_t first, int64_t last, int64_t d,
                       int64_t n, A* y) const {
    alignas(64) A in[kRowTile];
    int64_t* const places =
        places_ ? static_cast<int64_t*>(args.outputs[1]) + bag * width_ + d : nullptr;
    if (places) std::fill_n(places, n, int64_t{-1});
    int64_t size = 0;
    for (int64_t i = first; i < last; ++i) {
      const int64_t row = bags_.lists.row(args.inputs[1], i);
      if (row == bags_.padding) continue;
      const A* x = rows_.read(args.inputs[0], row * width_ + d, n, in);
      for (int64_t k = 0; k < n; ++k)
        if (size == 0 || x[k] > y[k] || (std::isnan(x[k]) && !std::isnan(y[k]))) {
          y[k] = x[k];
          if (places) places[k] = row;
        }
      ++size;
    }
    return size;
  }

  BagRanges bags_;
  DenseRows<A> rows_;
  int64_t width_;
  bool weighted_, places_;
};

template <typename A>
class EmbeddingBagGradient final : public Kernel {
 public:
  explicit EmbeddingBagGradient(const KernelRequest& request)
      : bags_(request, 1),
        rows_(request.in(1).dtype),
        width_(request.in(1).shape[1]),
        weighted_(request.has(4)),
        samples_(request.outputs.size() > 1 && request.has(4)),
        by_frequency_(request.attrs.b("scale_grad_by_freq")) {}
  // The offsets, the bag of each index, the factor of each bag, and the lists of rows.
  size_t scratch_bytes() const override {
    return (static_cast<size_t>(2 * (bags_.count() + 1) + bags_.lists.count) +
            bags_.lists.numbers()) *
           sizeof(int64_t);
  }
  void run(const KernelArgs& args) const override {
    const RowLists& lists = bags_.lists;
    auto* const begin = static_cast<int64_t*>(args.scratch);
    int64_t *const bag_of = begin + bags_.count() + 1, *const starts = bag_of + lists.count;
    auto* const factors = reinterpret_cast<double*>(starts + lists.numbers());
    bags_.read(args, begin);
    std::fill_n(bag_of, lists.count, int64_t{-1});
    for (int64_t b = 0; b < bags_.count(); ++b) {
      int64_t size = 0;
      for (int64_t i = begin[b]; i < begin[b + 1]; ++i) {
        bag_of[i] = b;
        size += lists.row(args.inputs[2], i) != bags_.padding;
      }
      factors[b] = bags_.mean && size > 0 ? 1 / static_cast<double>(size) : 1;
    }
    lists.sort(args.inputs[2], starts);
    if (bags_.max)
      run_max(args, starts);
    else
      sum_rows(lists, starts, bags_.padding, by_frequency_, width_, rows_, args.inputs[0],
               args.outputs[0], [&](int64_t i, A& factor) {
                 A buffer[1];
                 if (bag_of[i] < 0) return int64_t{-1};  // behind the last offset
                 factor = static_cast<A>(factors[bag_of[i]]);
                 if (weighted_) factor = *rows_.read(args.inputs[4], i, 1, buffer);
                 return bag_of[i];
               });
    if (samples_) run_samples(args, bag_of);
  }

 private:
  // Columns are shared out, so that elements are added in the order of the bags.
  void run_max(const KernelArgs& args, const int64_t* starts) const {
    constexpr int64_t kColumns = 64;
    const auto* places = static_cast<const int64_t*>(args.inputs[5]);
    const auto* dy = static_cast<const A*>(args.inputs[0]);
    auto* dw = static_cast<A*>(args.outputs[0]);
    const int64_t rows = bags_.lists.rows;
    parallel_for(0, (width_ + kColumns - 1) / kColumns,
                 static_cast<double>(kColumns * (rows + bags_.count())),
                 [&](int64_t first, int64_t last) {
                   const int64_t begin = first * kColumns, end = std::min(width_, last * kColumns);
                   for (int64_t r = 0; r < rows; ++r)
                     std::fill(dw + r * width_ + begin, dw + r * width_ + end, A(0));
                   for (int64_t b = 0; b < bags_.count(); ++b)
                     for (int64_t d = begin; d < end; ++d) {
                       const int64_t row = places[b * width_ + d];
                       if (row >= rows) [[unlikely]]
                         fail(Code::kInvalidArgument, "[{}] index {} is out of range for {} rows",
                              bags_.lists.op, row, rows);
                       if (row < 0) continue;
                       const auto picks = static_cast<A>(starts[row + 1] - starts[row]);
                       dw[row * width_ + d] += dy[b * width_ + d] / (by_frequency_ ? picks : A(1));
                     }
                 });
  }

  void run_samples(const KernelArgs& args, const int64_t* bag_of) const {
    parallel_for(0, bags_.lists.count, 5 + 0.2 * static_cast<double>(width_),
                 [&](int64_t first, int64_t last) {
                   alignas(64) A dy[kRowTile], weight[kRowTile];
                   for (int64_t i = first; i < last; ++i) {
                     const int64_t row = bags_.lists.row(args.inputs[2], i);
                     double sum = 0;
                     if (row != bags_.padding && bag_of[i] >= 0)
                       for_row_tiles(width_, [&](int64_t d, int64_t n) {
                         sum += static_cast<double>(gradient_ops<A>().dot(
                             rows_.read(args.inputs[0], bag_of[i] * width_ + d, n, dy),
                             rows_.read(args.inputs[1], row * width_ + d, n, weight), n));
                       });
                     A result[1] = {static_cast<A>(sum)};
                     *rows_.target(args.outputs[1], i, result) = result[0];
                     rows_.write(args.outputs[1], i, 1, result);
                   }
                 });
  }

  BagRanges bags_;
  DenseRows<A> rows_;
  int64_t width_;
  bool weighted_, samples_, by_frequency_;
};

template <template <typename> class K>
KernelPtr make_embedding(const KernelRequest& request, std::string& why) {
  if (!dense(request, why)) return nullptr;
  return with_computed(request.in(0).dtype,
                       [&]<typename A>() -> KernelPtr { return std::make_shared<K<A>>(request); });
}

KernelPtr make_bag_gradient(const KernelRequest& request, std::string& why) {
  if (!dense(request, why)) return nullptr;
  // The sums of max are in the memory of the result.
  if (is_half(request.in(0).dtype) && request.attrs.s("mode") == "max")
    return widened(request, make_bag_gradient, why);
  return make_embedding<EmbeddingBagGradient>(request, why);
}

const KernelRegistrar kEmbeddingGradient("cpu", "embedding_gradient", "sorted", 10,
                                         make_embedding<EmbeddingGradient>);
const KernelRegistrar kEmbeddingBag("cpu", "embedding_bag", "bags", 10,
                                    make_embedding<EmbeddingBag>);
const KernelRegistrar kEmbeddingBagGradient("cpu", "embedding_bag_gradient", "sorted", 10,
                                            make_bag_gradient);

}  // namespace

}  // namespace anymps::cpu
