// SPDX-License-Identifier: Apache-2.0
// Bytes in steps of a scale: quotients on both sides of a half, and programs between bytes.
#include <cmath>
#include <limits>

#include "drivers/cpu/run_cpu.h"
#include "support/program.h"

namespace anymps::testing {
namespace {

using Steps = std::vector<ProgramStep>;

// The numbers about each half of a step, and those that are not numbers.
std::vector<float> about_halves(float scale) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> numbers = {0,      -0.0f,     1e30f,      -1e30f,
                                1e-40f, kInfinity, -kInfinity, std::nanf("")};
  for (int k = -700; k <= 700; ++k) {
    float number = (static_cast<float>(k) + 0.5f) * scale;
    for (int i = 0; i < 3; ++i) number = std::nextafter(number, -kInfinity);
    for (int i = 0; i < 7; ++i, number = std::nextafter(number, kInfinity))
      numbers.push_back(number);
    numbers.push_back(static_cast<float>(k) * scale);
  }
  return numbers;
}

TestTensor tensor_of(const std::vector<float>& numbers) {
  TestTensor tensor(DType::kF32, {static_cast<int64_t>(numbers.size())});
  std::copy(numbers.begin(), numbers.end(), static_cast<float*>(tensor.ptr()));
  return tensor;
}

constexpr float kScales[] = {0.0157f, 1.0f / 3, 0.1f,   0.0078125f, 3.7e-3f, 1,
                             250.7f,  -0.3f,    1e-38f, 1e-42f,     3e38f};

TEST(CpuSteps, QuotientsAreThoseOfADivision) {
  for (const float scale : kScales)
    for (const DType to : {DType::kU8, DType::kI8})
      for (const double zero : {0.0, 127.0, -5.0}) {
        if (to == DType::kU8 && zero < 0) continue;
        SCOPED_TRACE(fmt::format("scale {}, zero {}, {}", scale, zero, name(to)));
        expect_as_reference(
            "quantize", {tensor_of(about_halves(scale))},
            {{"dtype", to}, {"scale", static_cast<double>(scale)}, {"zero_point", zero}}, 0);
      }
}

TEST(CpuSteps, ProgramsBetweenBytes) {
  for (const float scale : kScales)
    for (const DType type : {DType::kU8, DType::kI8})
      for (const bool zeros : {false, true}) {
        SCOPED_TRACE(fmt::format("scale {}, {}, zeros {}", scale, name(type), zeros));
        const double step = static_cast<double>(scale);
        const ProgramStep to_f32 = {"cast", {x(0)}, {{"dtype", DType::kF32}}};
        const ProgramStep to_byte = {"cast", {t(zeros ? 6 : 4)}, {{"dtype", type}}};
        Steps steps = {to_f32};
        if (zeros) steps.push_back({"sub", {t(0), number(3)}});
        const int at = zeros ? 1 : 0;
        steps.push_back({"mul", {t(at), number(step)}});
        steps.push_back({"add", {t(at + 1), x(1)}});
        steps.push_back({"div", {t(at + 2), number(0.75 * step)}});
        steps.push_back({"rint", {t(at + 3)}});
        if (zeros) steps.push_back({"add", {t(at + 4), number(9)}});
        steps.push_back(to_byte);
        const Ints words = program(steps);
        SCOPED_TRACE(printed(words));
        const double low = type == DType::kI8 ? -128 : 0;
        expect_as_reference(
            "fused_elementwise",
            {TestTensor(type, {1000}).fill(1, low, low + 255),
             TestTensor(DType::kF32, {1000}).fill(2, -90 * std::abs(step), 90 * std::abs(step))},
            {{"program", words}}, 0);
      }
}

// All pairs of bytes, with and without zero points, one of which is no whole number: where a sum
// lies half way between two steps, too.
TEST(CpuSteps, SumsOfBytes) {
  for (const float scale : kScales)
    for (const DType type : {DType::kU8, DType::kI8})
      for (const double zero : {0.0, 3.0, 9.5}) {
        SCOPED_TRACE(fmt::format("scale {}, {}, zero {}", scale, name(type), zero));
        const auto step = static_cast<double>(scale);
        const Ints words = program({{"cast", {x(0)}, {{"dtype", DType::kF32}}},
                                    {"sub", {t(0), number(zero)}},
                                    {"mul", {t(1), number(step)}},
                                    {"cast", {x(1)}, {{"dtype", DType::kF32}}},
                                    {"mul", {t(3), number(0.5 * step)}},
                                    {"add", {t(2), t(4)}},
                                    {"div", {t(5), number(step)}},
                                    {"rint", {t(6)}},
                                    {"add", {t(7), number(zero)}},
                                    {"cast", {t(8)}, {{"dtype", type}}}});
        SCOPED_TRACE(printed(words));
        TestTensor first(type, {65536 + 77}), second = first;
        for (int64_t i = 0; i < first.count(); ++i) {
          static_cast<uint8_t*>(first.ptr())[i] = static_cast<uint8_t>(i);
          static_cast<uint8_t*>(second.ptr())[i] = static_cast<uint8_t>(i / 256);
        }
        expect_as_reference("fused_elementwise", {first, second}, {{"program", words}}, 0);
      }
}

// What others read stays, and so do numbers that are no constants.
TEST(CpuSteps, ProgramsThatAreNotJoined) {
  const TestTensor bytes = TestTensor(DType::kU8, {300}).fill(1, 0, 255);
  const TestTensor floats = TestTensor(DType::kF32, {300}).fill(2, 0.1, 2);
  const ProgramStep to_f32 = {"cast", {x(0)}, {{"dtype", DType::kF32}}};
  expect_as_reference("fused_elementwise", {bytes},
                      {{"program", program({to_f32,
                                            {"sub", {t(0), number(7)}},
                                            {"mul", {t(1), number(0.25)}},
                                            {"mul", {t(2), t(1)}},
                                            {"mul", {t(3), t(0)}}})}},
                      0);
  expect_as_reference("fused_elementwise", {bytes, floats},
                      {{"program", program({to_f32,
                                            {"sub", {t(0), x(1)}},
                                            {"mul", {t(1), x(1)}},
                                            {"div", {t(2), x(1)}},
                                            {"rint", {t(3)}},
                                            {"cast", {t(4)}, {{"dtype", DType::kU8}}}})}},
                      0);
}

// Out of range, between whole numbers, not numbers.
TEST(CpuSteps, CastsToBytes) {
  for (const DType to : {DType::kU8, DType::kI8})
    expect_as_reference("cast", {tensor_of(about_halves(1))}, {{"dtype", to}}, 0);
  for (const DType from : {DType::kU8, DType::kI8})
    expect_as_reference("cast",
                        {TestTensor(from, {777}).fill(3, from == DType::kI8 ? -128 : 0, 127)},
                        {{"dtype", DType::kF32}}, 0);
}

}  // namespace
}  // namespace anymps::testing
