// SPDX-License-Identifier: Apache-2.0
// Runs one kernel of the cpu driver on the samples of an op's record, and on cases of the test's
// own, and compares with the reference kernel.
#pragma once

#include <functional>

#include "drivers/driver.h"
#include "drivers/packed_weights.h"
#include "memory/allocator.h"
#include "support/tensor.h"

namespace anymps::testing {

struct KernelCase {
  const char* op;
  const char* kernel;
  TestInputs inputs;
  NamedAttrs attrs;
  size_t outputs = 1;
  std::vector<size_t> constant;        // inputs that are constants
  std::optional<Strides> out_strides;  // of output 0; contiguous if absent
  int threads = 2;
  // What a constant says of itself; a copy of its elements if absent.
  std::function<ConstantPtr(const TestTensor&)> make_constant = copied;

  static ConstantPtr copied(const TestTensor& tensor) {
    return Constant::copy(tensor.dtype(), tensor.shape(),
                          {static_cast<const std::byte*>(tensor.ptr()), tensor.desc().bytes()});
  }
};

struct KernelResult {
  KernelPtr kernel;  // null: refused
  std::string why;
  std::vector<TestTensor> outputs;
};

inline KernelResult run_cpu_kernel(KernelCase& test) {
  const Op& op = get_op(test.op);
  KernelRequest request;
  request.op = &op;
  request.attrs = Attrs(op, test.attrs);
  request.node = "test";
  const ThreadScope scope(get_driver("cpu"), test.threads);
  auto allocator = Allocator::create(std::make_unique<HostMemory>());
  PackedWeights packed(allocator);
  request.packed = &packed;
  request.outputs = infer_outputs(op, request.attrs, test.inputs, test.outputs);
  if (test.out_strides) request.outputs[0].strides = *test.out_strides;
  std::vector<void*> in, out;
  for (auto& input : test.inputs) {
    request.inputs.push_back(input ? std::optional(input->desc()) : std::nullopt);
    request.contents.push_back(input ? content_of(*input) : std::nullopt);
    request.constants.push_back(nullptr);
    in.push_back(input ? input->ptr() : nullptr);
  }
  for (const size_t i : test.constant)
    if (i < test.inputs.size() && test.inputs[i])
      request.constants[i] = test.make_constant(*test.inputs[i]);
  KernelResult result;
  for (const KernelEntry& entry : get_driver("cpu").kernels(op))
    if (entry.name == test.kernel) result.kernel = entry.make(request, result.why);
  if (!result.kernel) return result;
  // What the kernel says it does not read, it must not read.
  for (size_t i = 0; i < in.size(); ++i)
    if (!result.kernel->reads(i)) in[i] = nullptr;
  for (const TensorDesc& desc : request.outputs) result.outputs.emplace_back(desc);
  for (TestTensor& tensor : result.outputs) out.push_back(tensor.ptr());
  TestTensor scratch(DType::kU8, {static_cast<int64_t>(result.kernel->scratch_bytes()) + 64});
  auto* aligned =
      reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(scratch.ptr()) + 63) & ~63ul);
  for (int run = 0; run < 2; ++run) result.kernel->run({in.data(), out.data(), aligned, nullptr});
  EXPECT_TRUE(scratch.guards_intact());
  return result;
}

// The reference's results for the same inputs, contiguous.
inline std::vector<TestTensor> expected_of(const KernelCase& test) {
  return run_reference_all(test.op, test.inputs, test.attrs, test.outputs);
}

inline void expect_same(KernelCase test, double tolerance) {
  const KernelResult result = run_cpu_kernel(test);
  ASSERT_TRUE(result.kernel) << "refused: " << result.why;
  const std::vector<TestTensor> expected = expected_of(test);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(same(result.outputs[i], expected[i], tolerance)) << result.kernel->detail();
}

// Positive strides with gaps, the axes in reverse order: a view that no dense kernel expects.
inline TestTensor spread(const TestTensor& tensor) {
  Strides strides(tensor.shape().size());
  int64_t step = 1;
  for (size_t i = 0; i < strides.size(); ++i) {
    strides[i] = step;
    step *= tensor.shape()[i] + 1;
  }
  return tensor.with_strides(strides);
}

inline TestInputs inputs_of(const Op& op, const Sample& sample, DType dtype, uint64_t seed = 1) {
  TestInputs inputs;
  for (size_t i = 0; i < sample.shapes.size(); ++i) {
    if (sample.shapes[i] == Sample::absent) {
      inputs.push_back(std::nullopt);
      continue;
    }
    const InputSpec& spec = op.inputs[std::min(i, op.inputs.size() - 1)];
    DType type = contains(spec.dtypes, dtype) ? dtype : DType::kI64;
    if (spec.dtypes == kBoolean) type = DType::kBool;
    Domain domain = op.test.domain;
    for (const auto& [name, special] : op.test.input_domains)
      if (name == spec.name) domain = special;
    inputs.emplace_back(TestTensor(type, sample.shapes[i]).fill(seed + i, domain.low, domain.high));
    for (const auto& [index, values] : sample.values)
      if (index == static_cast<int>(i))
        inputs.back()->set(std::vector<double>(values.begin(), values.end()));
  }
  return inputs;
}

}  // namespace anymps::testing
