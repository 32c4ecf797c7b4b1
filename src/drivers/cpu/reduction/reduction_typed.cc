// SPDX-License-Identifier: Apache-2.0
// Reductions of f64 and of integers of 32 and 64 bits: vector code over runs that are dense, or
// over results that lie side by side. Long ones are cut into parts, always in the same places, and
// the totals of the parts are joined in their order: results do not depend on the number of
// threads.
#include <algorithm>

#include "drivers/cpu/reduction/reduction.h"
#include "drivers/cpu/reduction/reduction_simd.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kColumns = 512;  // results side by side, whose totals stay in the L1 cache
constexpr int64_t kChunk = 16384;  // elements of a run at a time
constexpr int64_t kLeastRun = 8;   // below, a plain loop is as fast
constexpr int64_t kFewTasks = 16;  // that may be too few for all threads
constexpr int64_t kMostParts = 64;
constexpr int64_t kLeastRows = 256;  // of a part
constexpr int64_t kMostScratch = 8 << 20;

class VectorReduction final : public Kernel {
 public:
  VectorReduction(const KernelRequest& request, ReductionPlan plan, const ReductionCode& code)
      : plan_(std::move(plan)),
        code_(code),
        element_(static_cast<int64_t>(size_of(request.in(0).dtype))),
        total_(static_cast<int64_t>(code.total)) {
    if (plan_.side_by_side()) {
      width_ = plan_.kept.extents.back();
      y_step_ = plan_.kept.strides[1].back();
      plan_.kept.extents.pop_back();
      for (Strides& strides : plan_.kept.strides) strides.pop_back();
    }
    columns_ = std::min(width_, kColumns);
    blocks_ = (width_ + kColumns - 1) / kColumns;
    tasks_ = plan_.kept.count() * blocks_;
    const int64_t outer = plan_.outer.count();
    chunk_ = width_ == 1 ? kChunk : plan_.run;
    if (width_ > 1 && tasks_ < kFewTasks && outer < kMostParts) {
      const int64_t parts = std::max<int64_t>(1, kMostParts / std::max<int64_t>(1, outer));
      chunk_ = std::max(kLeastRows, (plan_.run + parts - 1) / parts);
    }
    chunk_ = std::max<int64_t>(1, chunk_);
    chunks_ = (plan_.run + chunk_ - 1) / chunk_;
    parts_ = outer * chunks_;
    split_ =
        tasks_ < kFewTasks && parts_ > 1 && tasks_ * columns_ * total_ * parts_ <= kMostScratch;
  }

  size_t scratch_bytes() const override {
    return split_ ? static_cast<size_t>(tasks_ * parts_ * columns_ * total_) : 0;
  }

  void run(const KernelArgs& args) const override {
    const double ns = 0.15 * static_cast<double>(columns_ * element_) / 8;
    if (!split_) {
      parallel_for(0, tasks_, 10 + ns * static_cast<double>(plan_.count),
                   [&](int64_t begin, int64_t end) {
                     alignas(64) char totals[kColumns * sizeof(int64_t)];
                     alignas(64) char part[kColumns * sizeof(int64_t)];
                     for (int64_t task = begin; task < end; ++task) {
                       if (parts_ == 0)
                         code_.start(totals, width_of(task));
                       else
                         reduce_part(args, task, 0, totals);
                       for (int64_t i = 1; i < parts_; ++i) {
                         reduce_part(args, task, i, part);
                         code_.join(totals, part, width_of(task));
                       }
                       finish(args, task, totals);
                     }
                   });
      return;
    }
    auto* const all = static_cast<char*>(args.scratch);
    const auto at = [&](int64_t i) { return all + i * columns_ * total_; };
    parallel_for(0, tasks_ * parts_, ns * static_cast<double>(std::min(chunk_, plan_.run)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     reduce_part(args, i / parts_, i % parts_, at(i));
                 });
    for (int64_t task = 0; task < tasks_; ++task) {
      char* totals = at(task * parts_);
      for (int64_t i = 1; i < parts_; ++i)
        code_.join(totals, at(task * parts_ + i), width_of(task));
      finish(args, task, totals);
    }
  }

 private:
  // Divisions by 1 take as long as others: as long as dozens of elements.
  int64_t block_of(int64_t task) const { return blocks_ == 1 ? 0 : task % blocks_; }
  int64_t row_of(int64_t task) const { return blocks_ == 1 ? task : task / blocks_; }
  int64_t kept(size_t operand, int64_t task) const {
    const Loops& loops = plan_.kept;
    return loops.extents.size() == 1 ? row_of(task) * loops.strides[operand][0]
                                     : loops.offset(operand, row_of(task));
  }
  int64_t first_of(int64_t task) const { return block_of(task) * kColumns; }
  int64_t width_of(int64_t task) const { return std::min(kColumns, width_ - first_of(task)); }

  void reduce_part(const KernelArgs& args, int64_t task, int64_t part, void* totals) const {
    const int64_t outer = part == 0 ? 0 : part / chunks_;
    const int64_t first = (part - outer * chunks_) * chunk_,
                  n = std::min(chunk_, plan_.run - first);
    const int64_t offset =
        kept(0, task) + first_of(task) + plan_.outer.offset(0, outer) + first * plan_.step;
    const char* x = static_cast<const char*>(args.inputs[0]) + offset * element_;
    code_.start(totals, width_of(task));
    if (width_ == 1)
      code_.run(x, n, totals);
    else
      code_.columns(x, plan_.step, n, width_of(task), totals);
  }

  void finish(const KernelArgs& args, int64_t task, const void* totals) const {
    const int64_t offset = kept(1, task) + first_of(task) * y_step_;
    code_.finish(totals, width_of(task), plan_.count,
                 static_cast<char*>(args.outputs[0]) + offset * element_, y_step_);
  }

  ReductionPlan plan_;
  ReductionCode code_;
  int64_t element_, total_;  // bytes of an element and of a total
  int64_t width_ = 1, y_step_ = 1, columns_ = 1, blocks_ = 1, tasks_ = 1;
  int64_t chunk_ = 1, chunks_ = 1, parts_ = 1;
  bool split_ = false;  // parts are computed by themselves
};

}  // namespace

KernelPtr make_vector_reduction(const KernelRequest& request, const ReductionPlan& plan,
                                Reduction kind, bool propagate_nan) {
  const bool runs = plan.step == 1 && plan.run >= kLeastRun;
  if (!runs && !(plan.side_by_side() && plan.kept.extents.back() > 1)) return nullptr;
  const ReductionCode code = reduction_code(request.in(0).dtype, kind, propagate_nan);
  if (code.total == 0) return nullptr;
  return std::make_shared<VectorReduction>(request, plan, code);
}

}  // namespace anymps::cpu
