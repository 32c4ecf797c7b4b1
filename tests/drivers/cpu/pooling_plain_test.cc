// SPDX-License-Identifier: Apache-2.0
// Pooling without oneDNN, its gradients, and unpooling against the reference.
#include "drivers/cpu/against_reference.h"
#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

TestTensor images(Shape shape, DType dtype = DType::kF32, uint64_t seed = 5) {
  return TestTensor(dtype, std::move(shape)).fill(seed, -1, 1);
}

TEST(CpuPooling, PlainKernels) {
  const NamedAttrs window{
      {"kernel", Ints{3, 2}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 1, 1}}};
  expect_same({"max_pool", "plain", {images({2, 3, 11, 12})}, window, 2}, 0);
  NamedAttrs norm = window;
  norm.emplace_back("p", 3);
  expect_same({"lp_pool", "plain", {images({2, 3, 11, 12})}, norm}, 1e-6);
  for (const char* op : {"max_pool_gradient", "avg_pool_gradient", "lp_pool_gradient"})
    expect_same({op, "plain", {images({2, 3, 6, 6}), images({2, 3, 11, 12})}, window}, 1e-5);
  NamedAttrs counted = window;
  counted.emplace_back("count_include_pad", true);
  counted.emplace_back("ceil_mode", true);
  expect_same(
      {"avg_pool_gradient", "plain", {images({2, 3, 6, 6}), images({2, 3, 11, 12})}, counted},
      1e-5);
}

TEST(CpuPooling, MaxUnpool) {
  const TestTensor x = random_f32({4, 6, 20, 20});
  for (const char* reduce : {"set", "add"})
    for (DType index : {DType::kI32, DType::kI64}) {
      NamedAttrs attrs = {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"reduce", reduce}};
      const TestTensor anywhere = TestTensor(index, x.shape()).fill(2, -1, 4 * 6 * 41 * 41 - 1);
      expect_as_reference("max_unpool", {x, anywhere}, attrs, 1e-6);
      attrs.push_back({"indices", "global_2d"});
      const TestTensor inside = TestTensor(index, x.shape()).fill(2, -1, 41 * 41 - 1);
      expect_as_reference("max_unpool", {x.scrambled(), inside}, attrs, 1e-6);
      attrs.back().value = "local_2d";
      expect_as_reference("max_unpool", {x, TestTensor(index, x.shape()).fill(2, -1, 8)}, attrs,
                          1e-6);
    }
  TestInputs inputs = {random_f32({1, 1, 1, 1}), TestTensor(DType::kI64, {1, 1, 1, 1}, {9})};
  const Prepared prepared = prepare_cpu("max_unpool", inputs, {{"kernel", Ints{2, 2}}});
  EXPECT_NE(error_of([&] { run(prepared, inputs); }), "");
}

}  // namespace
}  // namespace anymps::testing
