// SPDX-License-Identifier: Apache-2.0
// The samples of an op's record as test inputs.
#pragma once

#include "drivers/cpu/run_cpu.h"

namespace anymps::testing {

// Floats and integers of several sizes.
inline constexpr DTypeSet kSomeDTypes =
    bit(DType::kF32) | bit(DType::kF16) | bit(DType::kI8) | bit(DType::kI64) | bit(DType::kF64);

inline TestInputs sample_inputs(const Op& op, const Sample& sample, DType dtype) {
  TestInputs inputs;
  for (size_t i = 0; i < sample.shapes.size(); ++i) {
    if (sample.shapes[i] == Sample::absent) {
      inputs.emplace_back();
      continue;
    }
    const InputSpec& spec = op.inputs[std::min(i, op.inputs.size() - 1)];
    const DType type = contains(spec.dtypes, dtype) ? dtype : DType::kI64;
    Domain domain = op.test.domain;
    for (const auto& [name, own] : op.test.input_domains)
      if (name == spec.name) domain = own;
    TestTensor tensor(type, sample.shapes[i]);
    tensor.fill(i + 7, domain.low, domain.high);
    for (const auto& [input, values] : sample.values)
      if (input == static_cast<int>(i))
        tensor = TestTensor(type == dtype && !contains(kIndex, dtype) ? DType::kI64 : type,
                            sample.shapes[i], std::vector<double>(values.begin(), values.end()));
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

// Runs every sample in every dtype, contiguous and strided. Returns how many a CPU kernel took.
inline int expect_samples_as_reference(const char* name, DTypeSet dtypes,
                                       double tolerance_scale = 1) {
  const Op& op = get_op(name);
  int taken = 0;
  for (DType dtype : dtypes_of(dtypes & op.inputs[0].dtypes))
    for (const Sample& sample : op.test.samples)
      for (bool strided : {false, true}) {
        TestInputs inputs = sample_inputs(op, sample, dtype);
        if (strided)
          for (auto& input : inputs)
            if (input) input = input->scrambled();
        size_t outputs = op.outputs.size();
        if (op.variadic_outputs) continue;
        const Prepared prepared = prepare_cpu(name, inputs, sample.attrs, outputs);
        if (!prepared.kernel) continue;
        ++taken;
        SCOPED_TRACE(sample.label + (strided ? ", strided" : ""));
        expect_as_reference(name, inputs, sample.attrs,
                            tolerance_scale * op.test.tolerance.of(dtype), outputs);
      }
  return taken;
}

}  // namespace anymps::testing
