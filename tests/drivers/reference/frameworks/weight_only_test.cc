// SPDX-License-Identifier: Apache-2.0
// Products with weights of few bits, with the numbers of torch's _weight_int4pack_mm and
// _weight_int8pack_mm before they are rounded to bf16.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

constexpr int64_t kDepth = 32, kColumns = 4;

TestTensor two_rows() {
  Row x;
  for (int64_t i = 0; i < kDepth; ++i) x.push_back(static_cast<double>(i * 5 % 9 - 4) / 4);
  for (int64_t i = 0; i < kDepth; ++i) x.push_back(static_cast<double>(i * 2 % 7 - 3) / 2);
  return f32({2, kDepth}, x);
}

TEST(TorchWeightOnly, FourBits) {
  Row w;
  for (int64_t n = 0; n < kColumns; ++n)
    for (int64_t i = 0; i < kDepth; i += 2)
      w.push_back(static_cast<double>((i * 7 + n * 3) % 16 * 16 + ((i + 1) * 7 + n * 3) % 16));
  const TestTensor y = run_reference(
      "weight_only_matmul",
      {two_rows(), TestTensor(DType::kU8, {kColumns, kDepth / 2}, w),
       f32({1, kColumns}, {0.5, 0.75, 1, 1.25}), f32({1, kColumns}, {-1, -0.875, -0.75, -0.625})},
      {{"bits", 4}, {"group", kDepth}});
  EXPECT_EQ(y.values(), (Row{-29.625, -6.75, 37.875, 56.25, 11.5, 29.25, 23, -31.25}));
}

TEST(TorchWeightOnly, EightBits) {
  Row w;
  for (int64_t n = 0; n < kColumns; ++n)
    for (int64_t i = 0; i < kDepth; ++i)
      w.push_back(static_cast<double>((i * 11 + n * 5) % 255 - 127));
  const TestTensor y = run_reference("weight_only_matmul",
                                     {two_rows(), TestTensor(DType::kI8, {kColumns, kDepth}, w),
                                      f32({kColumns}, {0.5, 0.75, 1, 1.25})});
  EXPECT_EQ(y.values(), (Row{82.25, -25.6875, -41.75, 97.8125, -9.75, -110.25, -147, -24.375}));
}

TEST(TorchWeightOnly, SaysWhatIsWrong) {
  const auto message = [](const TestInputs& inputs, const NamedAttrs& attrs) {
    return error_of([&] { run_reference("weight_only_matmul", inputs, attrs); });
  };
  const TestTensor x = f32({1, 6}, {1, 2, 3, 4, 5, 6}), w = TestTensor(DType::kI8, {2, 6}),
                   scales = f32({2}, {1, 1});
  EXPECT_EQ(message({x, w, scales}, {{"bits", 3}}),
            "[weight_only_matmul] bits is 3, must be 4 or 8");
  EXPECT_EQ(message({x, w, scales}, {{"group", 4}}),
            "[weight_only_matmul] group is 4, must be 0 or divide the 6 of a row");
  EXPECT_EQ(message({x, w, scales}, {{"bits", 4}}),
            "[weight_only_matmul] input 'w' has shape [2, 6], must be [2, 3]");
}

}  // namespace
}  // namespace anymps::testing
