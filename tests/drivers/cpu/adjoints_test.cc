// SPDX-License-Identifier: Apache-2.0
// Kernels that send elements back to where they came from, and those of windows, regions and
// states, against the reference: sizes that take several threads, and every mode.
#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

TEST(CpuAdjoints, PadGradientInEveryMode) {
  const Ints pads = {0, 5, 20, 1, 3, 11};
  for (const char* mode : {"constant", "reflect", "edge", "wrap", "symmetric", "anti_wrap"})
    for (DType dtype : {DType::kF32, DType::kF16, DType::kI8, DType::kC64}) {
      const NamedAttrs attrs = {{"pads", pads}, {"mode", mode}};
      const TestTensor dy = TestTensor(dtype, {9, 50, 60}).fill(1, 0, 2);
      expect_as_reference("pad_gradient", {dy}, attrs, 2e-3);
      expect_as_reference("pad_gradient", {dy.scrambled()}, attrs, 2e-3);
    }
}

TEST(CpuAdjoints, ResizeGradient) {
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const Shape& x : {Shape{2, 3, 11, 50}, Shape{2, 3, 40, 7}})
      expect_as_reference("resize_gradient", {random_f32({2, 3, 30, 20}), random_f32(x)},
                          {{"mode", mode}}, 1e-5);
}

TEST(CpuAdjoints, TopKGradient) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF64})
    for (bool largest : {false, true}) {
      const TestTensor x = TestTensor(dtype, {30, 100, 3}).fill(2, -4, 4);
      const NamedAttrs attrs = {{"axis", 1}, {"largest", largest}};
      expect_as_reference("top_k_gradient", {TestTensor(dtype, {30, 20, 3}).fill(1), x}, attrs);
      expect_as_reference("top_k_gradient",
                          {TestTensor(dtype, {30, 100, 3}).fill(1).scrambled(), x.scrambled()},
                          attrs);
    }
}

TEST(CpuAdjoints, MaxUnpool) {
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

TEST(CpuWindows, StencilsInEveryModeAndBorder) {
  for (const char* reduce : {"sum", "product", "min", "max", "arg_min", "arg_max"})
    for (const char* border : {"constant", "reflect", "edge", "wrap", "symmetric", "anti_wrap"}) {
      const NamedAttrs attrs = {{"reduce", reduce},
                                {"border", border},
                                {"value", 0.5},
                                {"padding", "same_upper"},
                                {"dilations", Ints{1, 2}}};
      const TestTensor x = random_f32({3, 20, 30}, 1, 0.5, 2),
                       weights = random_f32({3, 4}, 2, 0.5, 2);
      expect_as_reference("stencil", {x, weights}, attrs, 1e-5);
      expect_as_reference("stencil", {x.scrambled(), weights.scrambled()}, attrs, 1e-5);
    }
  const TestInputs halves = {TestTensor(DType::kF16, {5}), TestTensor(DType::kF16, {3})};
  EXPECT_FALSE(prepare_cpu("stencil", halves, {{"value", 1e6}}).kernel) << "not a half";
}

TEST(CpuRegions, MaxRoiPool) {
  TestTensor rois = random_f32({40, 5}, 1, 0, 19);
  for (int64_t i = 0; i < 40; ++i) {
    float* row = static_cast<float*>(rois.ptr()) + i * 5;
    row[0] = static_cast<float>(i % 3);
  }
  for (double scale : {1.0, 0.25})
    expect_as_reference("max_roi_pool", {random_f32({3, 5, 20, 15}).scrambled(), rois},
                        {{"pooled_shape", Ints{3, 4}}, {"spatial_scale", scale}});
}

TEST(CpuRegions, AffineGrid) {
  for (bool align : {false, true})
    for (const Ints& size : {Ints{3, 1, 40, 50}, Ints{3, 1, 7, 8, 9}}) {
      const auto d = static_cast<int64_t>(size.size()) - 2;
      expect_as_reference("affine_grid", {random_f32({3, d, d + 1}).scrambled()},
                          {{"size", size}, {"align_corners", align}}, 1e-6);
    }
}

TEST(CpuSparse, MatricesAndDistances) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kI16, DType::kC64}) {
    const TestTensor values = TestTensor(dtype, {300}).fill(1, 0, 3);
    expect_as_reference("sparse_to_dense",
                        {values, TestTensor(DType::kI64, {300}).fill(2, 0, 19),
                         TestTensor(DType::kI64, {300}).fill(3, 0, 29)},
                        {{"shape", Ints{30, 20}}}, 2e-3);
  }
  TestInputs outside = {random_f32({1}), TestTensor(DType::kI32, {1}, {2}),
                        TestTensor(DType::kI32, {1}, {0})};
  const Prepared prepared = prepare_cpu("sparse_to_dense", outside, {{"shape", Ints{2, 2}}});
  EXPECT_EQ(error_of([&] { run(prepared, outside); }),
            "[sparse_to_dense] place (0, 2) is outside [2, 2]");
  for (DType dtype : {DType::kI8, DType::kU16, DType::kI32, DType::kU64})
    expect_as_reference("hamming_distance",
                        {TestTensor(dtype, {30, 1, 40}).fill(1, 0, 100),
                         TestTensor(dtype, {1, 50, 40}).fill(2, 0, 100).scrambled()});
}

TEST(CpuLinearAttention, LongSequences) {
  const NamedAttrs attrs = {{"query_heads", 4}, {"heads", 2}};
  const TestTensor q = random_f32({2, 50, 64}, 1, -1, 1), k = random_f32({2, 50, 32}, 2, -0.2, 0.2),
                   v = random_f32({2, 50, 48}, 3, -1, 1),
                   past = random_f32({2, 2, 16, 24}, 4, -1, 1);
  for (const Shape& decay : {Shape{2, 50, 2}, Shape{2, 50, 32}})
    for (const Shape& beta : {Shape{2, 50, 2}, Shape{2, 50, 1}})
      expect_as_reference("linear_attention",
                          {q, k, v, past, random_f32(decay, 5, -1, 0), random_f32(beta, 6, 0, 1)},
                          attrs, 2e-5, 2);
  expect_as_reference("linear_attention", {q, k, v}, attrs, 2e-5, 1);
}

}  // namespace
}  // namespace anymps::testing
