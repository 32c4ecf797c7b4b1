// SPDX-License-Identifier: Apache-2.0
// Convolutions of f64 and integers and their gradients, against the reference.
#include <gtest/gtest.h>

#include <cstring>

#include "against_reference.h"
#include "run_cpu.h"

namespace anymps {
namespace {

using testing::dtypes_of;
using testing::expect_same;
using testing::inputs_of;
using testing::KernelCase;
using testing::TestInputs;
using testing::TestTensor;
using Ints = std::vector<int64_t>;

// Every sample that the record's checks let through for the dtype.
int run_samples(const char* op_name, DType dtype) {
  const Op& op = get_op(op_name);
  int count = 0;
  for (const Sample& sample : op.test.samples) {
    SCOPED_TRACE(fmt::format("{} {} {}", op_name, name(dtype), sample.label));
    const TestInputs inputs = inputs_of(op, sample, dtype);
    const Attrs attrs(op, sample.attrs);
    if (op.attr_index("activation") >= 0 && dtype != DType::kF64 &&
        attrs.s("activation") != "none" && attrs.s("activation") != "relu")
      continue;
    KernelCase test{op_name, "typed", inputs, sample.attrs};
    const auto result = testing::run_cpu_kernel(test);
    if (result.why == "nothing to sum over") continue;
    expect_same(test, 1e-12);
    for (size_t i = 0; i < 2; ++i) {
      KernelCase strided = test;
      strided.inputs[i] = strided.inputs[i]->scrambled();
      if (testing::run_cpu_kernel(strided).why.find("lie apart") != std::string::npos) continue;
      expect_same(strided, 1e-12);
    }
    ++count;
  }
  return count;
}

TEST(TypedConvolutions, Forward) {
  for (const DType dtype : dtypes_of(bit(DType::kF64) | kInt))
    EXPECT_GE(run_samples("conv", dtype), 10) << name(dtype);
}

TEST(TypedConvolutions, Transposed) {
  for (const DType dtype : {DType::kF64, DType::kI32, DType::kU8})
    EXPECT_GE(run_samples("conv_transpose", dtype), 5) << name(dtype);
}

TEST(TypedConvolutions, Gradients) {
  EXPECT_GE(run_samples("conv_data_gradient", DType::kF64), 5);
  EXPECT_GE(run_samples("conv_weights_gradient", DType::kF64), 5);
}

// More pixels than a slab holds, in both layouts, with results that do not depend on threads.
TEST(TypedConvolutions, LargeImages) {
  for (const bool last : {false, true}) {
    const Shape image = last ? Shape{2, 96, 60, 40} : Shape{2, 40, 96, 60};
    const Shape result = last ? Shape{2, 96, 60, 6} : Shape{2, 6, 96, 60};
    const NamedAttrs attrs{{"pads", Ints{2, 2, 2, 2}},
                           {"layout", last ? "channels_last" : "channels_first"}};
    const TestTensor x = TestTensor(DType::kF64, image).fill(1),
                     w = TestTensor(DType::kF64, {6, 40, 5, 5}).fill(2),
                     dy = TestTensor(DType::kF64, result).fill(3);
    expect_same({"conv", "typed", {x, w}, attrs}, 1e-11);
    NamedAttrs of_weights = attrs;
    of_weights.push_back({"shape", Ints{6, 40, 5, 5}});
    KernelCase test{"conv_weights_gradient", "typed", {dy, x}, of_weights};
    expect_same(test, 1e-11);
    std::vector<TestTensor> results;
    for (const int threads : {1, 2, 3}) {
      test.threads = threads;
      results.push_back(testing::run_cpu_kernel(test).outputs.at(0));
      EXPECT_EQ(std::memcmp(results[0].ptr(), results.back().ptr(), results[0].desc().bytes()), 0);
    }
  }
}

}  // namespace
}  // namespace anymps
