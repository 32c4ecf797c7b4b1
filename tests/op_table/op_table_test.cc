// SPDX-License-Identifier: Apache-2.0
// Every op x dtype x shape x memory layout x driver against the reference kernels. The cases come
// from the op table, so an op that is added is tested without a line here.
#include <cstdio>
#include <map>

#include "op_table/eager_attrs.h"
#include "op_table/op_cases.h"
#include "runtime/device.h"
#include "runtime/eager/eager.h"
#include "support/island_driver.h"

namespace anymps::testing {
namespace {

std::map<std::string, size_t> case_counts;

// The tensor's elements on a device, in the same strides, `offset` bytes into a buffer.
Tensor to_device(Device& device, const TestTensor& host, size_t offset) {
  int64_t low = 0, high = 0;
  for (size_t i = 0; i < host.shape().size(); ++i) {
    const int64_t reach = std::max<int64_t>(host.shape()[i] - 1, 0) * host.desc().strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const auto size = static_cast<int64_t>(size_of(host.dtype()));
  const auto bytes = static_cast<size_t>((high - low + 1) * size);
  Tensor tensor;
  tensor.desc = host.desc();
  tensor.buffer = device.allocator().allocate(bytes + offset);
  tensor.offset = offset + static_cast<size_t>(-low * size);
  device.driver().copy_to_device(static_cast<char*>(tensor.buffer->data()) + offset,
                                 static_cast<const char*>(host.ptr()) + low * size, bytes, nullptr);
  return tensor;
}

TestTensor to_test(Device& device, const Tensor& tensor) {
  TestTensor host(tensor.desc.dtype, tensor.desc.shape);
  if (host.count() > 0) device.to_host(tensor, host.ptr());
  if (host.dtype() == DType::kString)  // the tensor's strings go with it
    for (int64_t i = 0; i < host.count(); ++i)
      host.data<Text>()[i] = interned(text_of(host.data<Text>()[i]));
  return host;
}

struct Outcome {
  std::vector<TestTensor> results;
  std::string error;
};

Outcome on_reference(const OpCase& item) {
  try {
    return {run_reference_all(item.op->name.c_str(), item.inputs, item.attrs, item.outputs), ""};
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

Outcome on_device(Device& device, const OpCase& item) {
  std::vector<Tensor> tensors(item.inputs.size());
  std::vector<const Tensor*> inputs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (item.inputs[i])
      tensors[i] =
          to_device(device, *item.inputs[i], item.offset * size_of(item.inputs[i]->dtype()));
    inputs.push_back(item.inputs[i] ? &tensors[i] : nullptr);
  }
  const std::vector<EagerAttr> attrs = eager_attrs(item.attrs);
  std::vector<Tensor> outputs(item.outputs);
  try {
    device.eager().call(*item.op, inputs, attrs, outputs);
  } catch (const Error& error) {
    return {{}, error.what()};
  }
  Outcome outcome;
  for (const Tensor& output : outputs) outcome.results.push_back(to_test(device, output));
  return outcome;
}

class OpTable : public ::testing::TestWithParam<const Op*> {
 public:
  static void TearDownTestSuite() {
    size_t total = 0;
    for (const auto& [driver, count] : case_counts) {
      std::printf("op cases on %s: %zu\n", driver.c_str(), count);
      total += count;
    }
    std::printf("op cases in all: %zu over %zu ops\n", total, all_ops().size());
  }
};

TEST_P(OpTable, AgreesWithReference) {
  register_island_driver();
  const Op& op = *GetParam();
  if (!op.test.skip.empty()) GTEST_SKIP() << op.test.skip;
  size_t cases = 0, computed = 0;
  std::string last_error;
  for_each_case(op, [&](OpCase& item) {
    ++cases;
    const Outcome expected = on_reference(item);
    computed += expected.error.empty();
    if (!expected.error.empty()) last_error = item.label + ": " + expected.error;
    const bool strings = std::any_of(item.inputs.begin(), item.inputs.end(), [](const auto& input) {
      return input && input->dtype() == DType::kString;
    });
    for (const char* driver : {"cpu", "island"}) {
      if (strings && std::string_view(driver) == "island")
        continue;  // its memory holds no pointers
      ++case_counts[driver];
      const Outcome actual = on_device(*Device::get(driver), item);
      ASSERT_EQ(expected.error.empty(), actual.error.empty())
          << op.name << " on " << driver << ", " << item.label << ": reference says '"
          << expected.error << "', the driver '" << actual.error << "'";
      for (size_t i = 0; i < expected.results.size(); ++i) {
        const std::string wrong = difference(op, actual.results[i], expected.results[i]);
        EXPECT_EQ(wrong, "") << op.name << " on " << driver << ", " << item.label << ", output "
                             << i;
      }
    }
  });
  EXPECT_GT(cases, 0u) << op.name << " has no samples: add some to its record";
  EXPECT_GT(computed, 0u) << op.name << ": every case is an error: " << last_error;
}

INSTANTIATE_TEST_SUITE_P(All, OpTable, ::testing::ValuesIn(all_ops()),
                         [](const auto& info) { return info.param->name; });

}  // namespace
}  // namespace anymps::testing
