// SPDX-License-Identifier: Apache-2.0
// Reductions of f32 and halves, and the choice between them and the plain ones. Sums of runs are
// made in vectors of f32 and put together in double, always cut in the same places: results do not
// depend on the number of threads.
#include "drivers/cpu/reduction/reduction.h"

#include <cmath>
#include <limits>
#include <map>

#include "drivers/cpu/common/row_access.h"
#include "drivers/cpu/common/row_ops.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kChunk = 16 * kRowTile;  // of a long run, for several threads
constexpr int64_t kShort = 16;             // elements of a row for which a vector does not pay

class FloatReduction final : public Kernel {
 public:
  FloatReduction(const KernelRequest& request, ReductionPlan plan, Reduction kind, bool nan)
      : plan_(std::move(plan)), kind_(kind), nan_(nan) {
    const DType dtype = request.in(0).dtype;
    element_ = size_of(dtype);
    x_ = RowAccess(dtype, plan_.step);
    y_ = RowAccess(dtype, 1);
    chunks_ = (plan_.run + kChunk - 1) / kChunk;
    const int64_t results = plan_.kept.count(), parts = plan_.outer.count() * chunks_;
    if (kind != Reduction::kLogSumExp && results > 0 && results <= 8 && parts > 1 &&
        parts <= 1 << 20)
      parts_ = parts;
    short_ = parts_ == 0 && dtype == DType::kF32 && plan_.step == 1 && plan_.run <= kShort &&
             plan_.outer.count() == 1 && kind != Reduction::kProd && kind != Reduction::kLogSumExp;
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(parts_ * plan_.kept.count()) * sizeof(double);
  }

  void run(const KernelArgs& args) const override {
    const int64_t results = plan_.kept.count();
    if (parts_ > 0) {
      double* partial = static_cast<double*>(args.scratch);
      const double ns = 0.3 * static_cast<double>(plan_.count) / static_cast<double>(parts_);
      parallel_for(0, results * parts_, ns, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t part = i % parts_, first = part % chunks_ * kChunk;
          const int64_t offset =
              plan_.kept.offset(0, i / parts_) + plan_.outer.offset(0, part / chunks_);
          partial[i] = reduce_run(at(args.inputs[0], offset), first,
                                  std::min(kChunk, plan_.run - first), neutral(), 0);
        }
      });
      for (int64_t r = 0; r < results; ++r) {
        double total = neutral();
        for (int64_t i = 0; i < parts_; ++i) total = join(total, partial[r * parts_ + i]);
        write(args, r, total, 0);
      }
      return;
    }
    if (short_) {
      parallel_for(0, results, 2 + 0.5 * static_cast<double>(plan_.run),
                   [&](int64_t begin, int64_t end) { short_rows(args, begin, end); });
      return;
    }
    parallel_for(0, results, 10 + 0.3 * static_cast<double>(plan_.count),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r) run_result(args, r);
                 });
  }

 private:
  char* at(void* base, int64_t offset) const {
    return static_cast<char*>(base) + offset * element_;
  }

  double neutral() const {
    switch (kind_) {
      case Reduction::kMax:
        return -kInf;
      case Reduction::kMin:
        return kInf;
      case Reduction::kProd:
        return 1;
      default:
        return 0;
    }
  }
  double join(double a, double b) const {
    switch (kind_) {
      case Reduction::kMax:
        return b > a || b != b ? b : a;
      case Reduction::kMin:
        return b < a || b != b ? b : a;
      case Reduction::kProd:
        return a * b;
      default:
        return a + b;
    }
  }

  // Adds elements [first, first + n) of a row to `total`.
  double reduce_run(const void* row, int64_t first, int64_t n, double total, float shift) const {
    const RowOps& ops = row_ops();
    alignas(64) float buffer[kRowTile];
    for_row_tiles(n, [&](int64_t i, int64_t part) {
      const float* x = x_.read(row, first + i, part, buffer);
      const size_t count = part;
      switch (kind_) {
        case Reduction::kMax:
          total = join(total, (nan_ ? ops.max : ops.max_number)(x, count));
          break;
        case Reduction::kMin:
          total = join(total, (nan_ ? ops.min : ops.min_number)(x, count));
          break;
        case Reduction::kL1:
          total += ops.sum_abs(x, count);
          break;
        case Reduction::kL2:
        case Reduction::kSumSquare:
          total += ops.sum_squares(x, count);
          break;
        case Reduction::kLogSumExp:
          total += ops.exp_sum(x, shift, nullptr, count);
          break;
        case Reduction::kProd:  // in double: a part of a product may leave the range of f32
          for (size_t k = 0; k < count; ++k) total *= x[k];
          break;
        default:
          total += ops.sum(x, count);
          break;
      }
    });
    return total;
  }

  // Rows of a few elements, one by one: the processor works on several at a time.
  template <typename Join>
  void short_rows(const KernelArgs& args, int64_t begin, int64_t end, Join&& joined) const {
    const Loops& kept = plan_.kept;
    const int64_t x_step = kept.last_step(0), y_step = kept.last_step(1);
    const auto start = static_cast<float>(neutral());
    kept.for_lines(begin, end, [&](int64_t first, int64_t rows) {
      const float* x = static_cast<const float*>(args.inputs[0]) + kept.offset(0, first);
      float* y = static_cast<float*>(args.outputs[0]) + kept.offset(1, first);
      for (int64_t r = 0; r < rows; ++r, x += x_step, y += y_step) {
        float total = start;
        for (int64_t k = 0; k < plan_.run; ++k) total = joined(total, x[k]);
        *y = finish(total, 0);
      }
    });
  }
  void short_rows(const KernelArgs& args, int64_t begin, int64_t end) const {
    const auto rows = [&](auto&& joined) { short_rows(args, begin, end, joined); };
    switch (kind_) {
      case Reduction::kMax:
        if (nan_) return rows([](float a, float b) { return b > a || b != b ? b : a; });
        return rows([](float a, float b) { return b > a ? b : a; });
      case Reduction::kMin:
        if (nan_) return rows([](float a, float b) { return b < a || b != b ? b : a; });
        return rows([](float a, float b) { return b < a ? b : a; });
      case Reduction::kL1:
        return rows([](float a, float b) { return a + std::abs(b); });
      case Reduction::kL2:
      case Reduction::kSumSquare:
        return rows([](float a, float b) { return a + b * b; });
      default:
        return rows([](float a, float b) { return a + b; });
    }
  }

  void run_result(const KernelArgs& args, int64_t r) const {
    const int64_t base = plan_.kept.offset(0, r), rows = plan_.outer.count();
    float highest = 0;
    if (kind_ == Reduction::kLogSumExp) {
      highest = -std::numeric_limits<float>::infinity();
      alignas(64) float buffer[kRowTile];
      for (int64_t i = 0; i < rows; ++i) {
        const char* row = at(args.inputs[0], base + plan_.outer.offset(0, i));
        for_row_tiles(plan_.run, [&](int64_t first, int64_t n) {
          const float m = row_ops().max(x_.read(row, first, n, buffer), static_cast<size_t>(n));
          if (m > highest || m != m) highest = m;
        });
      }
      if (!std::isfinite(highest)) return write_value(args, r, highest);
    }
    double total = neutral();
    for (int64_t i = 0; i < rows; ++i)
      total = reduce_run(at(args.inputs[0], base + plan_.outer.offset(0, i)), 0, plan_.run, total,
                         highest);
    write(args, r, total, highest);
  }

  float finish(double total, float highest) const {
    switch (kind_) {
      case Reduction::kMean:
        return static_cast<float>(total / static_cast<double>(plan_.count));
      case Reduction::kL2:
        return static_cast<float>(std::sqrt(total));
      case Reduction::kLogSum:
        return static_cast<float>(std::log(total));
      case Reduction::kLogSumExp:
        return static_cast<float>(highest + std::log(total));
      default:
        return static_cast<float>(total);
    }
  }
  void write(const KernelArgs& args, int64_t r, double total, float highest) const {
    write_value(args, r, finish(total, highest));
  }
  void write_value(const KernelArgs& args, int64_t r, float value) const {
    void* to = at(args.outputs[0], plan_.kept.offset(1, r));
    *y_.target(to, 0, &value) = value;
    y_.write(to, 0, 1, &value);
  }

  ReductionPlan plan_;
  Reduction kind_;
  bool nan_;
  int64_t element_ = 4, chunks_ = 1, parts_ = 0;
  bool short_ = false;
  RowAccess x_, y_;
};

const std::map<std::string, Reduction>& kinds() {
  static const auto& all = *new std::map<std::string, Reduction>{
      {"reduce_sum", Reduction::kSum},        {"reduce_mean", Reduction::kMean},
      {"reduce_max", Reduction::kMax},        {"reduce_min", Reduction::kMin},
      {"reduce_prod", Reduction::kProd},      {"reduce_l1", Reduction::kL1},
      {"reduce_l2", Reduction::kL2},          {"reduce_sum_square", Reduction::kSumSquare},
      {"reduce_log_sum", Reduction::kLogSum}, {"reduce_log_sum_exp", Reduction::kLogSumExp},
      {"reduce_and", Reduction::kAnd},        {"reduce_or", Reduction::kOr}};
  return all;
}

KernelPtr make_float_reduction(const KernelRequest& request, const ReductionPlan& plan,
                               Reduction kind, bool nan) {
  if (KernelPtr columns = make_column_reduction(request, plan, kind, nan)) return columns;
  return std::make_shared<FloatReduction>(request, plan, kind, nan);
}

KernelPtr make_reduction(const KernelRequest& request, std::string& why) {
  const TensorDesc& x = request.in(0);
  const auto axes = request.ints(1, "axes");
  if (!axes) return refuse(why, "the axes are not known");
  const bool all = axes->empty() && request.attrs.s("empty_axes") == "all";
  std::vector<bool> reduced(x.shape.size(), all);
  for (int64_t axis : *axes)
    reduced[normalize_axis(axis, x.rank(), request.op->name.c_str())] = true;
  ReductionPlan plan = plan_reduction(x, request.out(), reduced, request.attrs.b("keep_dims"));
  const Reduction kind = kinds().at(request.op->name);
  const bool nan = request.op->attr_index("propagate_nan") < 0 || request.attrs.b("propagate_nan");
  if (x.dtype == DType::kF32 || is_half(x.dtype))
    return make_float_reduction(request, plan, kind, nan);
  return make_plain_reduction(request, plan, kind, nan, why);
}

struct Register {
  Register() {
    for (const auto& [op, kind] : kinds())
      KernelRegistrar("cpu", op.c_str(), "simd", 10, make_reduction);
  }
};
const Register kRegister;

}  // namespace

KernelPtr make_sum(const KernelRequest& request, const ReductionPlan& plan, std::string& why) {
  const DType dtype = request.in(0).dtype;
  if (dtype == DType::kF32 || is_half(dtype))
    return make_float_reduction(request, plan, Reduction::kSum, true);
  return make_plain_reduction(request, plan, Reduction::kSum, true, why);
}

ReductionPlan plan_reduction(const TensorDesc& x, const TensorDesc& y,
                             const std::vector<bool>& reduced, bool keep_dims) {
  Shape kept, gone;
  Strides kept_x, kept_y, gone_x;
  size_t out = 0;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (reduced[i]) {
      gone.push_back(x.shape[i]);
      gone_x.push_back(x.strides[i]);
      if (keep_dims) ++out;
    } else {
      kept.push_back(x.shape[i]);
      kept_x.push_back(x.strides[i]);
      kept_y.push_back(y.strides[out++]);
    }
  }
  ReductionPlan plan;
  plan.count = element_count(gone);
  plan.kept = make_loops(kept, {kept_x, kept_y});
  plan.outer = make_loops(gone, {gone_x});
  if (!plan.outer.extents.empty()) {
    plan.run = plan.outer.extents.back();
    plan.step = plan.outer.strides[0].back();
    plan.outer.extents.pop_back();
    plan.outer.strides[0].pop_back();
  }
  return plan;
}

}  // namespace anymps::cpu
