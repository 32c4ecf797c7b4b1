// SPDX-License-Identifier: Apache-2.0
// Runs one op with the first CPU kernel that takes it, and compares with the reference.
#pragma once

#include "drivers/cpu/threads.h"
#include "drivers/driver.h"
#include "support/tensor.h"

namespace anymps::testing {

struct Prepared {
  KernelRequest request;
  KernelPtr kernel;
  std::string name, refusals;
};

// Outputs are contiguous, or as `outputs` says.
inline Prepared prepare_cpu(const char* op_name, const TestInputs& inputs,
                            const NamedAttrs& attrs = {}, size_t outputs = 1,
                            const std::vector<TensorDesc>& layouts = {}) {
  Prepared prepared;
  const Op& op = get_op(op_name);
  KernelRequest& request = prepared.request;
  request.op = &op;
  request.attrs = Attrs(op, attrs);
  request.node = "test";
  request.outputs = layouts.empty() ? infer_outputs(op, request.attrs, inputs, outputs) : layouts;
  for (const auto& input : inputs) {
    request.inputs.push_back(input ? std::optional(input->desc()) : std::nullopt);
    request.contents.push_back(input ? content_of(*input) : std::nullopt);
  }
  request.constants.resize(inputs.size());
  for (const KernelEntry& entry : get_driver("cpu").kernels(get_op(op_name))) {
    std::string why;
    prepared.kernel = entry.make(request, why);
    prepared.name = entry.name;
    if (prepared.kernel) break;
    prepared.refusals += entry.name + ": " + why + "; ";
  }
  return prepared;
}

inline std::vector<TestTensor> run(const Prepared& prepared, TestInputs& inputs) {
  std::vector<TestTensor> results;
  for (const TensorDesc& desc : prepared.request.outputs) results.emplace_back(desc);
  std::vector<void*> in, out;
  for (auto& input : inputs) in.push_back(input ? input->ptr() : nullptr);
  for (TestTensor& result : results) out.push_back(result.ptr());
  std::vector<std::byte> scratch(prepared.kernel->scratch_bytes() + 64);
  auto* aligned =
      reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
  prepared.kernel->run({in.data(), out.data(), aligned, nullptr});
  return results;
}

// The CPU kernel's results are the reference's; inputs may be strided.
inline void expect_as_reference(const char* op, TestInputs inputs, const NamedAttrs& attrs = {},
                                double tolerance = 0, size_t outputs = 1) {
  std::string what = op;
  for (const auto& input : inputs) what += " " + (input ? to_string(input->desc()) : "absent");
  SCOPED_TRACE(what);
  const Prepared prepared = prepare_cpu(op, inputs, attrs, outputs);
  ASSERT_TRUE(prepared.kernel) << prepared.refusals;
  const std::vector<TestTensor> expected = run_reference_all(op, inputs, attrs, outputs);
  const std::vector<TestTensor> actual = run(prepared, inputs);
  for (size_t i = 0; i < outputs; ++i) EXPECT_TRUE(same(actual[i], expected[i], tolerance));
}

inline std::vector<DType> dtypes_of(DTypeSet set) {
  std::vector<DType> all;
  for (const DType dtype : kComputeDTypes)
    if (contains(set, dtype)) all.push_back(dtype);
  return all;
}

}  // namespace anymps::testing
