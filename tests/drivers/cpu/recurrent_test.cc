// SPDX-License-Identifier: Apache-2.0
#include "against_reference.h"

namespace anymps {
namespace {

using testing::inputs_of;
using testing::KernelCase;
using testing::TestInputs;

class RecurrentOnCpu : public ::testing::TestWithParam<const char*> {
 protected:
  // Each sample, with lengths and clipping taken away by `change` if it likes, is right or refused
  // for a known reason.
  template <typename Change>
  size_t compare(DType dtype, Change change) {
    const Op& op = get_op(GetParam());
    size_t served = 0;
    for (const Sample& sample : op.test.samples) {
      SCOPED_TRACE(sample.label);
      KernelCase test{GetParam(),   "onednn",          inputs_of(op, sample, dtype),
                      sample.attrs, op.main_outputs(), {1, 2, 3}};
      change(test);
      const auto result = testing::run_cpu_kernel(test);
      if (!result.kernel) {
        EXPECT_TRUE(result.why == "sequences of several lengths" || result.why == "clipping" ||
                    result.why == "peepholes" || result.why == "other activations" ||
                    result.why == "the input is empty")
            << result.why;
        continue;
      }
      ++served;
      const auto expected = testing::expected_of(test);
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(same(result.outputs[i], expected[i], op.test.tolerance.of(dtype)))
            << "output " << i << " " << result.kernel->detail();
    }
    return served;
  }
};

void drop_lengths(KernelCase& test) {
  if (test.inputs.size() > 4) test.inputs[4] = std::nullopt;
  std::erase_if(test.attrs, [](const NamedAttr& attr) { return attr.name == "clip"; });
}

TEST_P(RecurrentOnCpu, Samples) {
  EXPECT_GE(compare(DType::kF32, [](KernelCase&) {}), 3u);
}

TEST_P(RecurrentOnCpu, AllDirectionsAndLayouts) {
  EXPECT_GE(compare(DType::kF32, drop_lengths), 6u);
}

TEST_P(RecurrentOnCpu, HalfPrecision) { EXPECT_GE(compare(DType::kBF16, drop_lengths), 6u); }

TEST_P(RecurrentOnCpu, RefusesWeightsOfTheRun) {
  const Op& op = get_op(GetParam());
  KernelCase test{GetParam(), "onednn", inputs_of(op, op.test.samples[0], DType::kF32),
                  op.test.samples[0].attrs, op.main_outputs()};
  EXPECT_EQ(testing::run_cpu_kernel(test).why, "weights that are not constant");
}

INSTANTIATE_TEST_SUITE_P(Ops, RecurrentOnCpu, ::testing::Values("lstm", "gru", "rnn"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace anymps
