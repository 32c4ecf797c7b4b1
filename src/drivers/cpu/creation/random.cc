// SPDX-License-Identifier: Apache-2.0
// Random numbers and dropout on the CPU: blocks of numbers in parallel, the same as the
// reference's.
#include "ops/creation/random.h"
#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

CPU_KERNEL(random, "philox") {
  const TensorDesc& y = request.out();
  if (!dense_outputs(request, why)) return nullptr;
  const bool with_state = request.outputs.size() > 1;
  return make_kernel([=, distribution = distribution_of(request.attrs), count = y.count(),
                      dtype = y.dtype, stride = request.in(0).strides[0]](const KernelArgs& args) {
    const Philox state = Philox::read(static_cast<const int32_t*>(args.inputs[0]), stride);
    const int64_t blocks = distribution.blocks(count), size = distribution.per_block();
    dispatch<kReal>(dtype, [&]<typename T>() {
      T* to = static_cast<T*>(args.outputs[0]);
      parallel_for(0, blocks, 60, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          const std::array<double, 4> numbers = distribution.block(state, b);
          for (int64_t i = 0; i < size && b * size + i < count; ++i)
            to[b * size + i] = static_cast<T>(static_cast<Compute<T>>(numbers[i]));
        }
      });
    });
    if (with_state)
      state.advanced(static_cast<uint64_t>(blocks)).write(static_cast<int32_t*>(args.outputs[1]));
  });
}

// Calls fn(i, x) for each of `count` elements, x drawn from [0, 1).
template <typename Fn>
void for_each_unit(const Philox& state, int64_t count, Fn fn) {
  parallel_for(0, (count + 3) / 4, 30, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const std::array<uint32_t, 4> words = state.words(static_cast<uint64_t>(b));
      for (int64_t i = b * 4; i < std::min(b * 4 + 4, count); ++i) fn(i, unit(words[i % 4]));
    }
  });
}

// The state after `count` uniform numbers, for who asks for it as output i.
void write_state_after(const KernelArgs& args, size_t i, bool wanted, const Philox& state,
                       int64_t count) {
  if (wanted)
    state.advanced(static_cast<uint64_t>((count + 3) / 4))
        .write(static_cast<int32_t*>(args.outputs[i]));
}

CPU_KERNEL(dropout, "philox") {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (!x.contiguous()) return refuse(why, "x is not contiguous");
  if (!dense_outputs(request, why)) return nullptr;
  if (request.has(2)) return refuse(why, "the rate is a tensor");
  const bool with_mask = request.outputs.size() > 1, with_state = request.outputs.size() > 2;
  return make_kernel([=, rate = request.attrs.f("rate"), count = y.count(), dtype = y.dtype,
                      stride = request.in(1).strides[0]](const KernelArgs& args) {
    const Philox state = Philox::read(static_cast<const int32_t*>(args.inputs[1]), stride);
    bool* mask = with_mask ? static_cast<bool*>(args.outputs[1]) : nullptr;
    dispatch<kFloat>(dtype, [&]<typename T>() {
      const T* from = static_cast<const T*>(args.inputs[0]);
      T* to = static_cast<T*>(args.outputs[0]);
      for_each_unit(state, count, [&](int64_t i, double chance) {
        const bool kept = chance >= rate;
        const auto value = static_cast<double>(static_cast<Compute<T>>(from[i]));
        to[i] = static_cast<T>(static_cast<Compute<T>>(kept ? value / (1 - rate) : 0));
        if (mask) mask[i] = kept;
      });
    });
    write_state_after(args, 2, with_state, state, count);
  });
}

CPU_KERNEL(bernoulli, "philox") {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (!x.contiguous()) return refuse(why, "x is not contiguous");
  if (!dense_outputs(request, why)) return nullptr;
  const int64_t count = y.count(), stride = request.in(1).strides[0];
  const bool with_state = request.outputs.size() > 1;
  return dispatch<kFloat>(x.dtype, [&]<typename T>() {
    return dispatch<kReal | kBoolean>(y.dtype, [&]<typename To>() {
      return make_kernel([=](const KernelArgs& args) {
        const Philox state = Philox::read(static_cast<const int32_t*>(args.inputs[1]), stride);
        const T* from = static_cast<const T*>(args.inputs[0]);
        To* to = static_cast<To*>(args.outputs[0]);
        for_each_unit(state, count, [&](int64_t i, double drawn) {
          const auto chance = static_cast<double>(static_cast<Compute<T>>(from[i]));
          to[i] = static_cast<To>(static_cast<Compute<To>>(drawn < chance));
        });
        write_state_after(args, 1, with_state, state, count);
      });
    });
  });
}

}  // namespace

}  // namespace anymps::cpu
