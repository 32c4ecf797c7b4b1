// SPDX-License-Identifier: Apache-2.0
// Random numbers whose distribution's parameters are tensors, and whole numbers, on the CPU: the
// reference's elements in parallel.
#include "semantics/random/sampling.h"

#include <array>
#include <type_traits>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/threads.h"
#include "drivers/kernel.h"
#include "ops/creation/sampling.h"

namespace anymps::cpu {

namespace {

// Nanoseconds of an element: rejection takes a few rounds.
constexpr double kSampleCost = 120;

// A tensor as it is, or one element for all; nothing else is read in parallel here.
bool simple(const TensorDesc& parameter, const TensorDesc& y) {
  return parameter.count() == 1 || (parameter.shape == y.shape && parameter.contiguous());
}

using DrawTwo = double (*)(RandomStream&, double, double);

template <typename T>
double parameter_at(const void* from, int64_t i) {
  return static_cast<double>(static_cast<Compute<T>>(static_cast<const T*>(from)[i]));
}

template <auto function>
KernelPtr make_sampled(const KernelRequest& request, std::string& why) {
  constexpr bool kTwo = std::is_same_v<decltype(function), DrawTwo>;
  constexpr size_t kParameters = kTwo ? 2 : 1;
  const TensorDesc& y = request.out();
  if (!dense_outputs(request, why)) return nullptr;
  std::array<int64_t, 2> steps{};
  for (size_t k = 0; k < kParameters; ++k) {
    if (!simple(request.in(k), y)) return refuse(why, "a parameter is strided or broadcast");
    steps.at(k) = request.in(k).count() == 1 ? 0 : 1;
  }
  return make_kernel([=, count = y.count(), dtype = y.dtype,
                      stride = request.in(kParameters).strides[0],
                      with_state = request.outputs.size() > 1](const KernelArgs& args) {
    const Philox state =
        Philox::read(static_cast<const int32_t*>(args.inputs[kParameters]), stride);
    dispatch<kFloat>(dtype, [&]<typename T>() {
      T* to = static_cast<T*>(args.outputs[0]);
      parallel_for(0, count, kSampleCost, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          RandomStream stream(state, static_cast<uint64_t>(i));
          const double first = parameter_at<T>(args.inputs[0], i * steps[0]);
          double value = 0;
          if constexpr (kTwo)
            value = function(stream, first, parameter_at<T>(args.inputs[1], i * steps[1]));
          else
            value = function(stream, first);
          to[i] = static_cast<T>(static_cast<Compute<T>>(value));
        }
      });
    });
    if (with_state)
      state.advanced(static_cast<uint64_t>(count)).write(static_cast<int32_t*>(args.outputs[1]));
  });
}

KernelPtr make_random_integers(const KernelRequest& request, std::string& why) {
  const TensorDesc& y = request.out();
  if (!dense_outputs(request, why)) return nullptr;
  return make_kernel([range = integer_range(request.attrs), count = y.count(), dtype = y.dtype,
                      stride = request.in(0).strides[0],
                      with_state = request.outputs.size() > 1](const KernelArgs& args) {
    const Philox state = Philox::read(static_cast<const int32_t*>(args.inputs[0]), stride);
    dispatch<kInt>(dtype, [&]<typename T>() {
      T* to = static_cast<T*>(args.outputs[0]);
      parallel_for(0, count, 30, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          to[i] =
              static_cast<T>(whole_number(state, static_cast<uint64_t>(i), range.low, range.high));
      });
    });
    if (with_state)
      state.advanced(static_cast<uint64_t>(count)).write(static_cast<int32_t*>(args.outputs[1]));
  });
}

#define SAMPLED(name) \
  const KernelRegistrar kSampled_##name("cpu", #name, "philox", 10, make_sampled<&draw::name>);
ANYMPS_SAMPLED_OPS(SAMPLED, SAMPLED)
#undef SAMPLED
const KernelRegistrar kRandomIntegers("cpu", "random_integers", "philox", 10, make_random_integers);

}  // namespace

}  // namespace anymps::cpu
