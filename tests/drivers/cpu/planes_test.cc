// SPDX-License-Identifier: Apache-2.0
// Convolutions, their gradients and batch_norm on channels-first images where they lie, against the
// reference.
#include "against_reference.h"
#include "drivers/cpu/linear/gemm_simd.h"

namespace anymps {
namespace {

using testing::expect_same;
using testing::TestTensor;
using Ints = std::vector<int64_t>;

TestTensor values(const Shape& shape, uint64_t seed) {
  return TestTensor(DType::kF32, shape).fill(seed, -2, 2);
}

struct PlaneCase {
  const char* label;
  Shape x, w, y;
  NamedAttrs attrs;
};

// The convolution and both gradients, through the kernel `name`.
void expect_all_same(const PlaneCase& c, const char* name) {
  SCOPED_TRACE(c.label);
  for (const int threads : {1, 2}) {
    const auto run = [&](const char* op, TestTensor a, TestTensor b, const Shape* result) {
      SCOPED_TRACE(op);
      NamedAttrs attrs = c.attrs;
      if (result) attrs.emplace_back("shape", Ints(result->begin(), result->end()));
      expect_same({op, name, {std::move(a), std::move(b)}, attrs, 1, {}, {}, threads}, 2e-4);
    };
    if (c.y.back() >= 12 || name == std::string_view("planes"))  // short rows are oneDNN's
      run("conv", values(c.x, 1), values(c.w, 2), nullptr);
    run("conv_data_gradient", values(c.y, 3), values(c.w, 2), &c.x);
    run("conv_weights_gradient", values(c.y, 3), values(c.x, 1), &c.w);
  }
}

TEST(PlanesOnCpu, PointwiseConvolutions) {
  if (!cpu::gemm_is_here()) GTEST_SKIP() << "no AVX2";
  const PlaneCase cases[] = {
      {"fewer results", {3, 20, 12, 13}, {7, 20, 1, 1}, {3, 7, 12, 13}, {}},
      {"more results", {2, 5, 17, 16}, {70, 5, 1, 1}, {2, 70, 17, 16}, {}},
      {"many channels, one image", {1, 130, 10, 10}, {65, 130, 1, 1}, {1, 65, 10, 10}, {}},
      {"one channel", {2, 1, 300}, {1, 1, 1}, {2, 1, 300}, {}},
      {"three axes", {1, 3, 5, 6, 7}, {4, 3, 1, 1, 1}, {1, 4, 5, 6, 7}, {}},
  };
  for (const PlaneCase& c : cases) expect_all_same(c, "planes");
}

TEST(PlanesOnCpu, DepthwiseConvolutions) {
  const auto window = [](int64_t groups, Ints strides, Ints pads, Ints dilations) {
    return NamedAttrs{{"groups", groups},
                      {"strides", std::move(strides)},
                      {"pads", std::move(pads)},
                      {"dilations", std::move(dilations)}};
  };
  const PlaneCase cases[] = {
      {"3x3", {2, 3, 9, 70}, {3, 1, 3, 3}, {2, 3, 9, 70}, window(3, {1, 1}, {1, 1, 1, 1}, {1, 1})},
      {"small planes",
       {2, 5, 7, 7},
       {5, 1, 3, 3},
       {2, 5, 7, 7},
       window(5, {1, 1}, {1, 1, 1, 1}, {1, 1})},
      {"strides",
       {2, 4, 11, 39},
       {4, 1, 3, 3},
       {2, 4, 6, 20},
       window(4, {2, 2}, {1, 1, 1, 1}, {1, 1})},
      {"strides that differ, a rest",
       {1, 2, 12, 23},
       {2, 1, 2, 5},
       {1, 2, 4, 11},
       window(2, {3, 2}, {0, 2, 1, 1}, {1, 1})},
      {"dilations",
       {2, 2, 10, 33},
       {2, 1, 3, 4},
       {2, 2, 8, 14},
       window(2, {1, 2}, {1, 0, 1, 0}, {2, 2})},
      {"more padding than window",
       {1, 2, 4, 5},
       {2, 1, 1, 2},
       {1, 2, 8, 10},
       window(2, {1, 1}, {2, 3, 2, 3}, {1, 1})},
  };
  for (const PlaneCase& c : cases) expect_all_same(c, "depthwise_planes");
}

// Beside an infinity, and at the end of a row, the other elements are right.
TEST(PlanesOnCpu, InfinitiesStayInTheirWindows) {
  TestTensor x = values({1, 2, 6, 21}, 1);
  std::vector<double> elements = x.values();
  elements[2 * 21] = std::numeric_limits<double>::infinity();  // the first of a row
  x.set(elements);
  const NamedAttrs attrs = {{"groups", 2}};
  expect_same({"conv", "depthwise_planes", {x, values({2, 1, 3, 3}, 2)}, attrs}, 2e-4);
  const NamedAttrs shaped = {{"groups", 2}, {"shape", Ints{2, 1, 3, 3}}};
  expect_same({"conv_weights_gradient", "depthwise_planes", {values({1, 2, 4, 19}, 3), x}, shaped},
              2e-4);
}

TEST(PlanesOnCpu, BatchNorm) {
  const TestTensor x = values({2, 5, 7, 9}, 1), mean = values({5}, 2), gamma = values({5}, 4),
                   beta = values({5}, 5);
  const TestTensor variance = TestTensor(DType::kF32, {5}).fill(3, 0.1, 3);
  for (const bool affine : {true, false}) {
    testing::TestInputs inputs = {x, mean, variance};
    if (affine) inputs.insert(inputs.end(), {gamma, beta});
    expect_same({"batch_norm", "simd", inputs, {}}, 1e-5);
    expect_same({"batch_norm", "simd", inputs, {{"epsilon", 0.5}}}, 1e-5);
  }
}

}  // namespace
}  // namespace anymps
