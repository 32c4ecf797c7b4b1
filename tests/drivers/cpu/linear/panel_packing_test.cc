// SPDX-License-Identifier: Apache-2.0
// Panels of plain matrices against plain loops: lanes and depths beside multiples of what is
// transposed at a time, both ways in which a matrix can lie, with factors and without; and weights
// that are scaled while they are packed against those that were scaled before.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "drivers/cpu/against_reference.h"
#include "drivers/cpu/linear/packing/panel_packing.h"

namespace anymps {
namespace {

using cpu::pack_panel;
using cpu::PlainPanel;
using testing::KernelCase;
using testing::KernelResult;
using testing::random_f32;
using testing::TestInputs;
using testing::TestTensor;

TEST(PanelPacking, WritesWhatPlainLoopsWrite) {
  constexpr float kGuard = -77;
  for (const int64_t lanes : {1, 3, 4, 5, 8, 11, 16, 23, 31, 48, 64, 70})
    for (const int64_t depth : {1, 2, 4, 7, 16, 63, 64, 65, 131, 200})
      for (const bool dense_depth : {true, false})
        for (const bool scaled : {false, true}) {
          SCOPED_TRACE(
              fmt::format("{} lanes, depth {}, {}, {}", lanes, depth, dense_depth, scaled));
          const int64_t block = (lanes + 15) / 16 * 16 + (depth % 2) * 16;
          // Just as much memory as there are elements: a sanitizer sees what is read beside them.
          std::vector<float> plain(static_cast<size_t>(lanes * depth));
          for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<float>(i) / 3;
          std::vector<double> factors(static_cast<size_t>(lanes));
          for (size_t i = 0; i < factors.size(); ++i)
            factors[i] = std::sqrt(static_cast<double>(i + 2));
          std::vector<float> packed(static_cast<size_t>(block * depth + 1), kGuard);
          PlainPanel panel{plain.data(), dense_depth ? depth : 1, lanes, dense_depth ? 1 : lanes,
                           depth};
          if (scaled) panel.factors = factors.data();
          pack_panel(panel, block, packed.data());
          for (int64_t p = 0; p < depth; ++p)
            for (int64_t lane = 0; lane < block; ++lane) {
              double expected = 0;
              if (lane < lanes) {
                expected =
                    plain[static_cast<size_t>(lane * panel.lane_stride + p * panel.depth_stride)];
                if (scaled) expected *= factors[static_cast<size_t>(lane)];
              }
              ASSERT_EQ(packed[static_cast<size_t>(p * block + lane)], static_cast<float>(expected))
                  << p << " " << lane;
            }
          EXPECT_EQ(packed.back(), kGuard);
        }
}

// Weights that say what they are made of, and those that do not: the same bits. The elements that
// are promised are never made.
void expect_same_bits(KernelCase test) {
  const TestTensor plain = *test.inputs[1];
  const std::vector<double> values = plain.values();
  const auto outputs = static_cast<size_t>(plain.shape()[0]), each = values.size() / outputs;
  std::vector<double> factors, scaled;
  for (size_t i = 0; i < outputs; ++i) factors.push_back(std::sqrt(static_cast<double>(i + 2)));
  for (size_t i = 0; i < values.size(); ++i) scaled.push_back(values[i] * factors[i / each]);
  TestTensor product(DType::kF32, plain.shape());
  test.inputs[1] = product.set(scaled);
  const KernelResult before = testing::run_cpu_kernel(test);
  test.make_constant = [&](const TestTensor& tensor) {
    auto constant =
        Constant::lazy(tensor.dtype(), tensor.shape(), [](std::byte*) { ADD_FAILURE(); });
    constant->set_scaled({KernelCase::copied(plain), factors});
    return constant;
  };
  const KernelResult now = testing::run_cpu_kernel(test);
  if (!before.kernel && before.why.starts_with("only for AVX2")) GTEST_SKIP();
  ASSERT_TRUE(before.kernel && now.kernel) << before.why << now.why;
  EXPECT_EQ(
      std::memcmp(before.outputs[0].ptr(), now.outputs[0].ptr(), before.outputs[0].desc().bytes()),
      0);
}

TEST(PanelPacking, WeightsThatAreScaledOnTheWay) {
  const NamedAttrs last = {{"layout", "channels_last"}};
  const TestTensor x = random_f32({1, 9, 8, 21}, 1);
  expect_same_bits({"conv", "gemm", {x, random_f32({70, 21, 1, 1}, 2)}, last, 1, {1}});
  NamedAttrs padded = last;
  padded.push_back({"pads", std::vector<int64_t>{1, 1, 1, 1}});
  for (const char* tiles : {"2", "4", "2 late", "4 late"}) {
    setenv("ANYMPS_WINOGRAD", tiles, 1);
    expect_same_bits({"conv", "winograd", {x, random_f32({70, 21, 3, 3}, 2)}, padded, 1, {1}});
  }
  unsetenv("ANYMPS_WINOGRAD");
}

}  // namespace
}  // namespace anymps
