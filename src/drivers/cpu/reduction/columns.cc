// SPDX-License-Identifier: Apache-2.0
// Reductions of f32 and halves whose results lie side by side in x: vectors go over the results.
// Rows are joined some at a time in f32, and these in double, always cut in the same places.
#include <algorithm>
#include <cmath>
#include <limits>

#include "drivers/cpu/common/row_access.h"
#include "drivers/cpu/common/row_ops.h"
#include "drivers/cpu/elementwise/tile_ops.h"
#include "drivers/cpu/reduction/reduction.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kColumns = 256;
constexpr int64_t kRows = 32;      // joined in f32 before they go to double
constexpr int64_t kReadRows = 8;   // the same of rows that are converted or gathered
constexpr int64_t kShortRun = 16;  // too short for a loop over vectors of its own
constexpr int64_t kGroup = 16;     // results that are written together: a cache line

// Many results of few elements each, as of complex numbers.
bool short_runs(const ReductionPlan& plan) {
  return plan.count > 1 && plan.count <= kShortRun && !plan.kept.extents.empty() &&
         plan.kept.extents.back() >= kShortRun;
}

JoinRows join_of(Reduction kind, bool nan) {
  const RowOps& ops = row_ops();
  switch (kind) {
    case Reduction::kLogSumExp:
      return ops.max_rows;
    case Reduction::kMax:
      return nan ? ops.max_rows : ops.max_number_rows;
    case Reduction::kMin:
      return nan ? ops.min_rows : ops.min_number_rows;
    case Reduction::kL1:
      return ops.sum_abs_rows;
    case Reduction::kL2:
    case Reduction::kSumSquare:
      return ops.sum_squares_rows;
    case Reduction::kProd:  // in double: a part of a product may leave the range of f32
      return nullptr;
    default:
      return ops.sum_rows;
  }
}

class ColumnReduction final : public Kernel {
 public:
  ColumnReduction(const KernelRequest& request, const ReductionPlan& plan, Reduction kind, bool nan)
      : kept_(plan.kept), all_(plan.outer), count_(plan.count), kind_(kind) {
    const DType dtype = request.in(0).dtype;
    element_ = size_of(dtype);
    join_ = join_of(kind, nan);
    x_ = RowAccess(dtype, kept_.strides[0].back());
    y_step_ = kept_.strides[1].back();
    y_ = RowAccess(dtype, y_step_);
    all_.extents.push_back(plan.run);
    all_.strides[0].push_back(plan.step);
    width_ = kept_.extents.back();
    kept_.extents.pop_back();
    for (Strides& strides : kept_.strides) strides.pop_back();
    blocks_ = (width_ + kColumns - 1) / kColumns;
    const int64_t parts = std::max<int64_t>(blocks_, 1);
    columns_ = ((width_ + parts - 1) / parts + kGroup - 1) / kGroup * kGroup;
    if (blocks_ > 0) columns_ = std::min(columns_, kColumns);
    if (!kept_.extents.empty()) last_ = kept_.extents.back();
    // The columns lie apart in y, and what is computed for the next index beside them.
    across_ = dtype == DType::kF32 && y_step_ != 1 && last_ > 1 && kept_.strides[1].back() == 1;
    group_ = across_ ? kGroup : 1;
    groups_ = (last_ + group_ - 1) / group_;
  }

  void run(const KernelArgs& args) const override {
    if (last_ == 0) return;
    const auto columns = static_cast<double>(std::min(width_, columns_));
    const double ns =
        20 + static_cast<double>(group_) * columns * (0.3 + 0.1 * static_cast<double>(count_));
    parallel_for(0, kept_.count() / last_ * groups_ * blocks_, ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        run_group(args, i / blocks_ / groups_, i / blocks_ % groups_ * group_,
                  i % blocks_ * columns_);
    });
  }

 private:
  char* at(void* base, int64_t offset) const {
    return static_cast<char*>(base) + offset * element_;
  }

  // Indices from `index` on along the last axis of those kept, columns from `first` on.
  void run_group(const KernelArgs& args, int64_t row, int64_t index, int64_t first) const {
    const int64_t n = std::min(columns_, width_ - first);
    if (n <= 0) return;
    alignas(64) float values[kGroup * kColumns];
    if (!across_) {
      char* const to = at(args.outputs[0], kept_.offset(1, row * last_ + index));
      float* const y = y_.target(to, first, values);
      reduce(at(args.inputs[0], kept_.offset(0, row * last_ + index)), first, n, y);
      y_.write(to, first, n, y);
      return;
    }
    const int64_t rows = std::min(group_, last_ - index);
    for (int64_t k = 0; k < rows; ++k)
      reduce(at(args.inputs[0], kept_.offset(0, row * last_ + index + k)), first, n,
             values + k * kColumns);
    for (int64_t c = 0; c < n; ++c) {
      char* const to = at(args.outputs[0], kept_.offset(1, row * last_ + index));
      float* const y = reinterpret_cast<float*>(to) + (first + c) * y_step_;
      for (int64_t k = 0; k < rows; ++k) y[k] = values[k * kColumns + c];
    }
  }

  // Where the i-th reduced row lies; most often without a division.
  int64_t row_at(int64_t i) const {
    return all_.extents.size() == 1 ? i * all_.strides[0][0] : all_.offset(0, i);
  }

  void reduce(const void* x, int64_t first, int64_t n, float* y) const {
    alignas(64) float buffer[kReadRows * kColumns];
    if (!join_) return multiply(x, first, n, y, buffer);
    if (kind_ == Reduction::kLogSumExp) return log_sum_exp(x, first, n, y, buffer);
    double totals[kColumns];
    bool all = false;
    for_groups(x, first, n, buffer, [&](const float* const* rows, int64_t begin, int64_t count) {
      join_(rows, count, y, n);
      if ((all = count == count_)) return;
      if (begin == 0)
        std::copy_n(y, n, totals);
      else if (kind_ == Reduction::kMax)
        for (int64_t c = 0; c < n; ++c)
          totals[c] = y[c] > totals[c] || y[c] != y[c] ? y[c] : totals[c];
      else if (kind_ == Reduction::kMin)
        for (int64_t c = 0; c < n; ++c)
          totals[c] = y[c] < totals[c] || y[c] != y[c] ? y[c] : totals[c];
      else
        for (int64_t c = 0; c < n; ++c) totals[c] += y[c];
    });
    all ? finish(y, n, y) : finish(totals, n, y);
  }

  // Calls fn(rows, the first of them, how many) for the reduced rows, some at a time.
  template <typename Fn>
  void for_groups(const void* x, int64_t first, int64_t n, float* buffer, Fn&& fn) const {
    const int64_t most = x_.direct() ? kRows : kReadRows;
    const float* rows[kRows];
    for (int64_t begin = 0; begin < count_ || begin == 0; begin += most) {
      const int64_t count = std::min(most, count_ - begin);
      for (int64_t k = 0; k < count; ++k)
        rows[k] = x_.read(static_cast<const char*>(x) + row_at(begin + k) * element_, first, n,
                          buffer + (x_.direct() ? 0 : k * kColumns));
      fn(rows, begin, count);
    }
  }

  // With the highest of each column taken away first; where that is not finite it is the result.
  void log_sum_exp(const void* x, int64_t first, int64_t n, float* y, float* buffer) const {
    static const TileFn sub = find_tile_op("sub", DType::kF32)->run,
                        exp = find_tile_op("exp", DType::kF32)->run,
                        add = find_tile_op("add", DType::kF32)->run;
    static constexpr double kNoParams[kTileParams] = {};
    alignas(64) float highest[kColumns], part[kColumns], shift[kColumns], powers[kColumns];
    double totals[kColumns] = {};
    std::fill_n(highest, n, -std::numeric_limits<float>::infinity());
    for_groups(x, first, n, buffer, [&](const float* const* rows, int64_t, int64_t count) {
      join_(rows, count, part, n);
      for (int64_t c = 0; c < n; ++c)
        highest[c] = part[c] > highest[c] || part[c] != part[c] ? part[c] : highest[c];
    });
    for (int64_t c = 0; c < n; ++c) shift[c] = std::isfinite(highest[c]) ? highest[c] : 0;
    const auto call = [&](TileFn fn, const float* a, const float* b, float* to) {
      fn({{a, b, nullptr}, to, static_cast<size_t>(n), kNoParams});
    };
    for_groups(x, first, n, buffer, [&](const float* const* rows, int64_t, int64_t count) {
      std::fill_n(part, n, 0.0f);
      for (int64_t k = 0; k < count; ++k) {
        call(sub, rows[k], shift, powers);
        call(exp, powers, nullptr, powers);
        call(add, part, powers, part);
      }
      for (int64_t c = 0; c < n; ++c) totals[c] += part[c];
    });
    for (int64_t c = 0; c < n; ++c)
      y[c] = std::isfinite(highest[c]) ? static_cast<float>(highest[c] + std::log(totals[c]))
                                       : highest[c];
  }

  void multiply(const void* x, int64_t first, int64_t n, float* y, float* buffer) const {
    double totals[kColumns];
    std::fill_n(totals, n, 1.0);
    for (int64_t i = 0; i < count_; ++i) {
      const float* row =
          x_.read(static_cast<const char*>(x) + row_at(i) * element_, first, n, buffer);
      for (int64_t c = 0; c < n; ++c) totals[c] *= row[c];
    }
    finish(totals, n, y);
  }

  template <typename T>
  void finish(const T* totals, int64_t n, float* y) const {
    const auto count = static_cast<double>(count_);
    const auto each = [&](auto fn) {
      for (int64_t c = 0; c < n; ++c) y[c] = static_cast<float>(fn(static_cast<double>(totals[c])));
    };
    switch (kind_) {
      case Reduction::kMean:
        return each([&](double total) { return total / count; });
      case Reduction::kL2:
        return each([](double total) { return std::sqrt(total); });
      case Reduction::kLogSum:
        return each([](double total) { return std::log(total); });
      default:
        if (static_cast<const void*>(totals) != y) each([](double total) { return total; });
    }
  }

  Loops kept_, all_;  // all but the columns; every reduced axis
  int64_t count_;
  Reduction kind_;
  JoinRows join_ = nullptr;
  int64_t element_ = 4, width_ = 1, columns_ = 1, blocks_ = 1, y_step_ = 1;
  int64_t last_ = 1, group_ = 1, groups_ = 1;  // the last axis kept: its extent, cut in groups
  bool across_ = false;
  RowAccess x_, y_;
};

}  // namespace

KernelPtr make_column_reduction(const KernelRequest& request, const ReductionPlan& plan,
                                Reduction kind, bool propagate_nan) {
  if (!plan.side_by_side() && !short_runs(plan)) return nullptr;
  return std::make_shared<ColumnReduction>(request, plan, kind, propagate_nan);
}

}  // namespace anymps::cpu
