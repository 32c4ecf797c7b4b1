// SPDX-License-Identifier: Apache-2.0
// Every kernel of the CPU driver that takes a case, not only the first: ANYMPS_TUNE may choose any.
// On the samples of the records, and on convolutions that are large enough for all ways.
#include <map>
#include <set>

#include "drivers/kernel_ways.h"
#include "op_table/case_request.h"

namespace anymps::testing {
namespace {

class EveryKernel : public ::testing::Test {
 protected:
  // Runs each kernel and way that takes the case beside the reference.
  void check(const OpCase& item, bool constant_weights) {
    CaseRequest given(item, constant_weights);
    std::vector<TestTensor> expected;
    try {
      expected = run_reference_all(item.op->name.c_str(), given.inputs, item.attrs, item.outputs);
    } catch (const Error&) {
      return;
    }
    for (const TestTensor& result : expected)
      given.request.outputs.emplace_back(result.dtype(), result.shape());
    for (const KernelEntry& entry : get_driver("cpu").kernels(*item.op)) {
      run(item, given.request, given.in, expected, entry, "");
      for (const std::string& way : kernel_ways("cpu", item.op->name, entry.name))
        run(item, given.request, given.in, expected, entry, way);
    }
  }

  void run(const OpCase& item, const KernelRequest& request, std::vector<void*>& in,
           const std::vector<TestTensor>& expected, const KernelEntry& entry,
           const std::string& way) {
    const AskedWay asked(way);
    std::string why;
    const KernelPtr kernel = entry.make(request, why);
    if (!kernel) return;
    ++taken_[item.op->name + " " + entry.name + " " + way];
    std::vector<TestTensor> results;
    std::vector<void*> out;
    for (const TensorDesc& desc : request.outputs) results.emplace_back(desc);
    for (TestTensor& result : results) out.push_back(result.ptr());
    std::vector<std::byte> scratch(kernel->scratch_bytes() + 64);
    auto* aligned =
        reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
    kernel->run({in.data(), out.data(), aligned, nullptr, nullptr});
    for (size_t i = 0; i < results.size(); ++i)
      EXPECT_EQ(difference(*item.op, results[i], expected[i]), "")
          << item.op->name << " by " << entry.name << " " << way << " (" << kernel->detail()
          << "), output " << i << ", " << item.label;
  }

  std::map<std::string, size_t> taken_;
};

bool has_several(const Op& op) {
  size_t count = 0;
  for (const KernelEntry& entry : get_driver("cpu").kernels(op))
    count += 1 + kernel_ways("cpu", op.name, entry.name).size();
  return count > 1;
}

TEST_F(EveryKernel, AgreesWithTheReferenceOnSamples) {
  for (const Op* op : all_ops()) {
    if (!op->test.skip.empty() || op->is(kImpure) || !has_several(*op)) continue;
    for_each_case(*op, [&](OpCase& item) {
      for (const bool constant : {false, true}) check(item, constant);
    });
  }
  EXPECT_GT(taken_.size(), 30u);
}

TEST_F(EveryKernel, AgreesWithTheReferenceOnConvolutions) {
  struct Case {
    Shape x, w;
    NamedAttrs attrs;
  };
  const NamedAttr padded{"pads", Ints{1, 1, 1, 1}};
  const std::vector<Case> cases = {
      {{1, 14, 13, 32}, {48, 32, 3, 3}, {padded}},
      {{2, 9, 9, 20}, {33, 20, 3, 3}, {padded, {"activation", "relu"}}},
      {{1, 20, 20, 24}, {24, 24, 1, 1}, {}},
      {{1, 15, 15, 40}, {16, 40, 1, 1}, {{"strides", Ints{2, 2}}}},
      {{1, 17, 16, 32}, {32, 1, 3, 3}, {padded, {"groups", 32}}},
      {{1, 17, 16, 32}, {32, 1, 3, 3}, {padded, {"groups", 32}, {"strides", Ints{2, 2}}}},
      {{1, 20, 20, 3}, {16, 3, 3, 3}, {padded, {"strides", Ints{2, 2}}}},
      {{1, 12, 12, 32}, {32, 8, 3, 3}, {padded, {"groups", 4}}},
      {{1, 12, 12, 16}, {32, 16, 5, 5}, {}},
  };
  const Op& op = get_op("conv");
  for (const Case& c : cases) {
    OpCase item;
    item.op = &op;
    item.attrs = c.attrs;
    item.attrs.emplace_back("layout", "channels_last");
    item.label = to_string(c.x) + " x " + to_string(c.w);
    uint64_t seed = 3;
    for (const Shape& shape : {c.x, c.w, Shape{c.w[0]}})
      item.inputs.emplace_back(TestTensor(DType::kF32, shape).fill(++seed, -1, 1));
    for (const bool constant : {false, true}) check(item, constant);
  }
  EXPECT_GT(taken_["conv onednn "], 0u);
  if (taken_.contains("conv winograd ") || taken_.contains("conv winograd 2x2")) {  // not on SSE4
    EXPECT_EQ(taken_["conv winograd 2x2"], 2u);
    EXPECT_EQ(taken_["conv winograd 4x4"], 2u);
  }
}

}  // namespace
}  // namespace anymps::testing
