// SPDX-License-Identifier: Apache-2.0
// Reductions of f64, integers, bool and complex numbers: plain loops for what has no vector code
// (reduction_typed.cc).
#include <cmath>
#include <limits>

#include "drivers/cpu/reduction/reduction.h"
#include "drivers/cpu/threads.h"
#include "semantics/scalar_functions.h"

namespace anymps::cpu {

namespace {

template <typename T>
T load(const T* from, int64_t i) {
  if constexpr (std::is_same_v<T, bool>)
    return reinterpret_cast<const uint8_t*>(from)[i] != 0;
  else
    return from[i];
}

template <typename T, Reduction kind>
auto accumulator() {
  if constexpr (kind == Reduction::kMax || kind == Reduction::kMin || std::is_same_v<T, bool>)
    return T{};
  else if constexpr (kIsComplexType<T>)
    return WideComplex();
  else if constexpr (!std::is_integral_v<T> || kind == Reduction::kL2)
    return double{};
  else
    return std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>{};
}
template <typename T, Reduction kind>
using Acc = decltype(accumulator<T, kind>());

template <typename T, Reduction kind>
Acc<T, kind> neutral() {
  using Limits = std::numeric_limits<T>;
  if constexpr (kind == Reduction::kMax)
    return Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
  else if constexpr (kind == Reduction::kMin)
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  else if constexpr (kind == Reduction::kProd)
    return Acc<T, kind>(1);
  else if constexpr (kind == Reduction::kAnd)
    return true;
  else
    return {};
}

template <typename T, Reduction kind>
Acc<T, kind> take(Acc<T, kind> acc, T x, bool nan) {
  using A = Acc<T, kind>;
  (void)nan;
  if constexpr (kind == Reduction::kMax)
    return scalar::max(acc, x, nan);
  else if constexpr (kind == Reduction::kMin)
    return scalar::min(acc, x, nan);
  else if constexpr (kind == Reduction::kAnd)
    return acc && x;
  else if constexpr (kind == Reduction::kOr)
    return acc || x;
  else if constexpr (kind == Reduction::kProd)
    return scalar::mul(acc, A(x));
  else if constexpr (kind == Reduction::kL1)
    return scalar::add(acc, static_cast<A>(scalar::abs(x)));
  else if constexpr (kind == Reduction::kL2 || kind == Reduction::kSumSquare)
    return scalar::add(acc, scalar::square(A(x)));
  else
    return scalar::add(acc, A(x));
}

template <typename T, Reduction kind>
T finish(Acc<T, kind> acc, int64_t count) {
  if constexpr (kind == Reduction::kMean) {
    if constexpr (std::is_integral_v<T>)
      return count == 0 ? T(0) : static_cast<T>(acc / static_cast<Acc<T, kind>>(count));
    else
      return static_cast<T>(acc / static_cast<double>(count));
  } else if constexpr (kind == Reduction::kL2) {
    if constexpr (std::is_integral_v<T>)
      return scalar::saturate<T>(std::sqrt(acc));
    else
      return static_cast<T>(std::sqrt(acc));
  } else if constexpr (kind == Reduction::kLogSum) {
    return std::log(acc);
  } else {
    return static_cast<T>(acc);
  }
}

// Calls fn(row) for each innermost run that makes up result r.
template <typename T, typename Fn>
void for_rows(const ReductionPlan& plan, const T* x, int64_t r, Fn&& fn) {
  const T* base = x + plan.kept.offset(0, r);
  for (int64_t i = 0, rows = plan.outer.count(); i < rows; ++i) fn(base + plan.outer.offset(0, i));
}

template <typename T, Reduction kind>
KernelPtr make(const ReductionPlan& plan, bool nan) {
  return make_kernel([plan, nan](const KernelArgs& args) {
    const T* x = static_cast<const T*>(args.inputs[0]);
    T* y = static_cast<T*>(args.outputs[0]);
    parallel_for(0, plan.kept.count(), 10 + 1.5 * static_cast<double>(plan.count),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r) {
                     Acc<T, kind> acc = neutral<T, kind>();
                     for_rows(plan, x, r, [&](const T* row) {
                       for (int64_t i = 0; i < plan.run; ++i)
                         acc = take<T, kind>(acc, load(row, i * plan.step), nan);
                     });
                     y[plan.kept.offset(1, r)] = finish<T, kind>(acc, plan.count);
                   }
                 });
  });
}

KernelPtr make_log_sum_exp(const ReductionPlan& plan) {
  return make_kernel([plan](const KernelArgs& args) {
    const double* x = static_cast<const double*>(args.inputs[0]);
    double* y = static_cast<double*>(args.outputs[0]);
    parallel_for(0, plan.kept.count(), 10 + 15.0 * static_cast<double>(plan.count),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r) {
                     double highest = neutral<double, Reduction::kMax>(), sum = 0;
                     for_rows(plan, x, r, [&](const double* row) {
                       for (int64_t i = 0; i < plan.run; ++i)
                         highest = scalar::max(highest, row[i * plan.step], true);
                     });
                     for_rows(plan, x, r, [&](const double* row) {
                       for (int64_t i = 0; i < plan.run; ++i)
                         sum += std::exp(row[i * plan.step] - highest);
                     });
                     y[plan.kept.offset(1, r)] =
                         std::isfinite(highest) ? highest + std::log(sum) : highest;
                   }
                 });
  });
}

}  // namespace

KernelPtr make_plain_reduction(const KernelRequest& request, const ReductionPlan& plan,
                               Reduction kind, bool nan, std::string& why) {
  if (KernelPtr kernel = make_vector_reduction(request, plan, kind, nan)) return kernel;
  const DType dtype = request.in(0).dtype;
  constexpr DTypeSet kF64 = bit(DType::kF64);
  const auto with = [&]<DTypeSet set, Reduction k>() -> KernelPtr {
    if (!contains(set, dtype)) return refuse(why, fmt::format("x is {}", name(dtype)));
    return dispatch<set>(dtype, [&]<typename T>() { return make<T, k>(plan, nan); });
  };
  switch (kind) {
    case Reduction::kSum:
      return with.operator()<kF64 | kInt | kComplex, Reduction::kSum>();
    case Reduction::kMean:
      return with.operator()<kF64 | kInt | kComplex, Reduction::kMean>();
    case Reduction::kProd:
      return with.operator()<kF64 | kInt | kComplex, Reduction::kProd>();
    case Reduction::kMax:
      return with.operator()<kF64 | kInt | kBoolean, Reduction::kMax>();
    case Reduction::kMin:
      return with.operator()<kF64 | kInt | kBoolean, Reduction::kMin>();
    case Reduction::kL1:
      return with.operator()<kF64 | kInt, Reduction::kL1>();
    case Reduction::kL2:
      return with.operator()<kF64 | kInt, Reduction::kL2>();
    case Reduction::kSumSquare:
      return with.operator()<kF64 | kInt, Reduction::kSumSquare>();
    case Reduction::kLogSum:
      return with.operator()<kF64, Reduction::kLogSum>();
    case Reduction::kAnd:
      return with.operator()<kBoolean, Reduction::kAnd>();
    case Reduction::kOr:
      return with.operator()<kBoolean, Reduction::kOr>();
    case Reduction::kLogSumExp:
      return make_log_sum_exp(plan);
  }
  return nullptr;
}

}  // namespace anymps::cpu
