// SPDX-License-Identifier: Apache-2.0
#include "against_reference.h"

namespace anymps {
namespace {

using testing::expect_same;
using testing::inputs_of;
using testing::KernelCase;
using testing::TestInputs;
using testing::TestTensor;
using Ints = std::vector<int64_t>;

class PoolingOnCpu : public ::testing::TestWithParam<const char*> {
 protected:
  // Each sample, changed by `change`, is refused for one of the known reasons or right.
  template <typename Change>
  void compare(DType dtype, Change change) {
    const Op& op = get_op(GetParam());
    size_t served = 0;
    for (const Sample& sample : op.test.samples) {
      SCOPED_TRACE(sample.label);
      KernelCase test{GetParam(), "onednn", inputs_of(op, sample, dtype), sample.attrs};
      change(test.inputs);
      const auto result = testing::run_cpu_kernel(test);
      if (!result.kernel) {
        EXPECT_TRUE(result.why == "rank 6" || result.why == "a window lies in the padding alone" ||
                    result.why == "counted padding with windows that stick out of it" ||
                    result.why == "a divisor of its own")
            << result.why;
        continue;
      }
      ++served;
      EXPECT_TRUE(
          same(result.outputs[0], testing::expected_of(test)[0], op.test.tolerance.of(dtype)))
          << result.kernel->detail();
    }
    EXPECT_GE(served + 3, op.test.samples.size());
  }
};

TEST_P(PoolingOnCpu, Samples) {
  compare(DType::kF32, [](TestInputs&) {});
}

TEST_P(PoolingOnCpu, SamplesWithStridedInputs) {
  compare(DType::kF32, [](TestInputs& inputs) { inputs[0] = spread(*inputs[0]); });
}

TEST_P(PoolingOnCpu, SamplesInHalfPrecision) {
  compare(DType::kBF16, [](TestInputs&) {});
  compare(DType::kF16, [](TestInputs&) {});
}

INSTANTIATE_TEST_SUITE_P(Ops, PoolingOnCpu, ::testing::Values("max_pool", "avg_pool"),
                         [](const auto& info) { return std::string(info.param); });

// Lines, which are pooled as images of one row.
TEST(PoolingOnCpuLayouts, Lines) {
  for (const char* op : {"max_pool", "avg_pool"})
    for (const char* layout : {"channels_first", "channels_last"})
      for (const int64_t channels : {1, 5, 16, 35})
        for (const Ints& window :
             {Ints{3, 2, 1, 1}, Ints{2, 2, 0, 0}, Ints{5, 1, 2, 2}, Ints{7, 3, 0, 3}}) {
          const bool last = std::string_view(layout) == "channels_last";
          const TestTensor x =
              testing::random_f32(last ? Shape{2, 101, channels} : Shape{2, channels, 101});
          const NamedAttrs attrs = {{"kernel", Ints{window[0]}},
                                    {"strides", Ints{window[1]}},
                                    {"pads", Ints{window[2], window[3]}},
                                    {"layout", layout}};
          expect_same({op, "onednn", {x}, attrs}, 1e-6);
          expect_same({op, "onednn", {spread(x)}, attrs}, 1e-6);
        }
}

TEST(PoolingOnCpuLayouts, Bytes) {
  const NamedAttrs windows[] = {
      {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}},
      {{"kernel", Ints{2, 3}}, {"strides", Ints{1, 2}}, {"dilations", Ints{3, 2}}},
      {{"kernel", Ints{4, 4}},
       {"strides", Ints{5, 5}},
       {"pads", Ints{3, 3, 3, 3}},
       {"ceil_mode", true}},
      {{"kernel", Ints{5}}, {"strides", Ints{2}}, {"pads", Ints{2, 2}}},
      {{"kernel", Ints{2, 2, 3}}, {"strides", Ints{2, 1, 2}}, {"pads", Ints{1, 0, 1, 1, 0, 1}}}};
  for (NamedAttrs attrs : windows)
    for (const DType dtype : {DType::kU8, DType::kI8})
      for (const int64_t channels : {1, 5, 131}) {
        const auto* kernel = std::get_if<Ints>(&attrs[0].value);
        Shape last{2};
        for (size_t i = 0; i < kernel->size(); ++i) last.push_back(12 + static_cast<int64_t>(i));
        Shape first = last;
        first.insert(1, channels);
        last.push_back(channels);
        const double low = dtype == DType::kI8 ? -128 : 0;
        expect_same(
            {"max_pool", "bytes", {TestTensor(dtype, first).fill(1, low, low + 255)}, attrs}, 0);
        NamedAttrs turned = attrs;
        turned.push_back({"layout", "channels_last"});
        expect_same(
            {"max_pool", "bytes", {TestTensor(dtype, last).fill(2, low, low + 255)}, turned}, 0);
      }
}

TEST(PoolingOnCpuLayouts, RefusesIndices) {
  KernelCase test{"max_pool",
                  "onednn",
                  {TestTensor(DType::kF32, {1, 2, 6, 6}).fill(1)},
                  {{"kernel", Ints{2, 2}}},
                  2};
  EXPECT_EQ(testing::run_cpu_kernel(test).why, "no indices");
}

}  // namespace
}  // namespace anymps
