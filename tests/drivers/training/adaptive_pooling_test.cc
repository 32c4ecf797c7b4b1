// SPDX-License-Identifier: Apache-2.0
// Pooling to a given size; numbers from PyTorch.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

TestTensor remainders(Shape shape, int64_t factor, int64_t modulus) {
  TestTensor tensor(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < tensor.count(); ++i)
    tensor.data<float>()[i] = static_cast<float>(i * factor % modulus);
  return tensor;
}

TEST(ReferenceAdaptivePooling, OneAxis) {
  const TestTensor x = f32({1, 1, 7}, {1, -2, 6, 2, 15, -12, 7});
  const NamedAttrs attrs = {{"output_size", Ints{3}}};
  EXPECT_TRUE(same(run_reference("adaptive_avg_pool", {x}, attrs),
                   f32({1, 1, 3}, {5.0 / 3, 23.0 / 3, 10.0 / 3}), 1e-6));
  const auto max = run_reference_all("adaptive_max_pool", {x}, attrs);
  EXPECT_EQ(max[0].values(), (Row{6, 15, 15}));
  EXPECT_EQ(max[1].values(), (Row{2, 4, 4}));
}

TEST(ReferenceAdaptivePooling, PlacesAndNan) {
  const TestTensor x = f32({1, 1, 4, 3}, {1, 5, 2, 7, kNan, 0, 3, 3, 9, kNan, 4, 1});
  const auto max = run_reference_all("adaptive_max_pool", {x}, {{"output_size", Ints{2, 2}}});
  EXPECT_TRUE(same(max[0], f32({1, 1, 2, 2}, {kNan, kNan, kNan, 9})));
  EXPECT_EQ(max[1].values(), (Row{4, 4, 9, 8}));
}

TEST(ReferenceAdaptivePooling, Fractional) {
  const auto two = run_reference_all("fractional_max_pool",
                                     {remainders({1, 1, 5, 6}, 1, 7), f32({1, 1, 2}, {0.3, 0.7})},
                                     {{"kernel", Ints{2, 2}}, {"output_size", Ints{2, 3}}});
  EXPECT_EQ(two[0].values(), (Row{6, 3, 5, 5, 6, 2}));
  EXPECT_EQ(two[1].values(), (Row{6, 3, 5, 19, 20, 23}));
  const auto three = run_reference_all(
      "fractional_max_pool", {remainders({1, 1, 4, 3, 5}, 7, 11), f32({1, 1, 3}, {0.3, 0.7, 0.9})},
      {{"kernel", Ints{2, 2, 2}}, {"output_size", Ints{2, 1, 3}}});
  EXPECT_EQ(three[0].values(), (Row{10, 9, 10, 10, 10, 10}));
  EXPECT_EQ(three[1].values(), (Row{25, 6, 14, 36, 36, 58}));
}

TEST(ReferenceAdaptivePooling, AverageWithADivisor) {
  const TestTensor x = f32({1, 1, 3, 3}, {0, 1, 2, 6, 0, 1, 5, 6, 0});
  const TestTensor y =
      run_reference("avg_pool", {x},
                    {{"kernel", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}, {"divisor_override", 3}});
  EXPECT_TRUE(
      same(y,
           f32({1, 1, 4, 4}, {0.0, 1.0 / 3, 1.0, 2.0 / 3, 2.0, 7.0 / 3, 4.0 / 3, 1.0, 11.0 / 3,
                              17.0 / 3, 7.0 / 3, 1.0 / 3, 5.0 / 3, 11.0 / 3, 2.0, 0.0}),
           1e-6));
}

TEST(ReferenceAdaptivePooling, Errors) {
  EXPECT_EQ(error_of([] {
              run_reference("adaptive_avg_pool", {f32({1, 1, 3}, {1, 2, 3})},
                            {{"output_size", Ints{2, 2}}});
            }),
            "[adaptive_avg_pool] x has shape [1, 1, 3], but output_size has 2 entries: it must "
            "have one for each of 1 to 3 spatial axes");
}

}  // namespace
}  // namespace anymps::testing
