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

TEST(CpuPoolingPlain, GivenSizes) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kF64})
    for (const char* layout : {"channels_first", "channels_last"}) {
      const TestTensor x = TestTensor(dtype, {3, 20, 9, 301}).fill(1);
      const NamedAttrs attrs = {{"output_size", Ints{7, 4}}, {"layout", layout}};
      expect_as_reference("adaptive_avg_pool", {x}, attrs, 2e-3);
      expect_as_reference("adaptive_max_pool", {x}, attrs, 0, 2);
      const Shape y =
          std::string(layout) == "channels_first" ? Shape{3, 20, 7, 4} : Shape{3, 7, 4, 301};
      expect_as_reference("adaptive_avg_pool_gradient", {TestTensor(dtype, y).fill(2), x}, attrs,
                          4e-3);
    }
  expect_as_reference("fractional_max_pool",
                      {random_f32({4, 5, 30, 40}), random_f32({4, 5, 2}, 3, 0, 0.99)},
                      {{"kernel", Ints{3, 2}}, {"output_size", Ints{11, 13}}}, 0, 2);
}

TEST(CpuPoolingPlain, PlacesWithinPlanes) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF64})
    for (int stride : {1, 2, 3})
      for (int dilation : {1, 2}) {
        const NamedAttrs attrs = {{"kernel", Ints{3, 2}},
                                  {"strides", Ints{2, stride}},
                                  {"dilations", Ints{1, dilation}},
                                  {"pads", Ints{1, 1, 1, 0}},
                                  {"indices", "global_2d"}};
        TestTensor x = TestTensor(dtype, {2, 5, 14, 30}).fill(1, -3, 3);
        for (int i = 0; i < 30; ++i) x.put({1, 2, i % 14, i}, i % 4 ? kNan : -kInf);
        expect_as_reference("max_pool", {x}, attrs, 0, 2);
      }
  const TestTensor places = TestTensor(DType::kI64, {2, 5, 6, 7}).fill(2, -1, 79);
  for (const char* reduce : {"add", "set"})
    expect_as_reference("max_unpool", {random_f32({2, 5, 6, 7}), places},
                        {{"kernel", Ints{1, 1}},
                         {"shape", Ints{2, 5, 8, 10}},
                         {"indices", "global_2d"},
                         {"reduce", reduce}},
                        1e-6);
}

}  // namespace
}  // namespace anymps::testing
